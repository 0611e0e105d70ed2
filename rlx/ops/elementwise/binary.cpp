// Binary: elementwise functions of two broadcast operands. The row of each function is in ir/math/binary_table.h.
#include "rlx/ir/functions.h"
#include "rlx/ops/elementwise/elementwise.h"

namespace rlx {
namespace {

using C = std::complex<double>;
using I = std::int64_t;
using U = std::uint64_t;

const BinaryRow& row(BinaryKind fn) { return binary_row(fn); }

template <class T, class F>
void map_pairs(const RefArgs& a, F fn) {
  std::vector<std::int64_t> dims = a.out().dims();
  std::vector<T> left = load_broadcast<T>(a.in(0), dims);
  const std::vector<T> right = load_broadcast<T>(a.in(1), dims);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = fn(left[i], right[i]);
  store_all(a.out(), left);
}

struct BinaryRules {
  static Result<Shapes> infer(const InferContext& c) {
    const BinaryKind fn = c.op<ops::Binary>().fn;
    if (static_cast<int>(fn) >= kNumBinaryKinds) return c.attr_error("has an unknown function");
    if (auto bad = c.check_same_dtype(0, 2)) return *bad;
    DType dtype = c.input(0).dtype();
    if (!contains(row(fn).dtypes, dtype))
      return c.dtype_error("needs ", dtypes_text(row(fn).dtypes), " operands, got ", c.input(0));
    Result<Dims> dims = broadcast_operands(c, 0, 2);
    if (!dims) return dims.error();
    return make_shapes(Shape(std::move(*dims), dtype));
  }

  static void reference(const RefArgs& a) {
    const BinaryRow& r = row(a.op<ops::Binary>().fn);
    DType dtype = a.in(0).dtype();
    int bits = dtype_bits(dtype);
    if (is_complex(dtype))
      map_pairs<C>(a, r.complex);
    else if (is_signed_int(dtype))
      map_pairs<I>(a, [&](I x, I y) { return r.signed_int(x, y, bits); });
    else if (is_float(dtype))
      map_pairs<double>(a, r.real);
    else
      map_pairs<U>(a, [&](U x, U y) { return r.unsigned_int(x, y, bits); });
  }

  static void vjp(VjpContext& c) {
    const BinaryRow& r = row(c.op<ops::Binary>().fn);
    if (!c.wants(0) || r.da == kBinaryFlat) return;
    Expr a = c.input(0), b = c.input(1), y = c.output(), ct = c.cotangent();
    c.accumulate(0, r.da(c.graph(), a, b, y, ct));
    c.accumulate(1, r.db(c.graph(), a, b, y, ct));
  }
  static void jvp(JvpContext& c) {
    const BinaryRow& r = row(c.op<ops::Binary>().fn);
    Expr a = c.input(0), b = c.input(1), y = c.output();
    if (c.has_tangent(0)) c.add_tangent(0, r.da(c.graph(), a, b, y, c.tangent(0)));
    if (c.has_tangent(1)) c.add_tangent(0, r.db(c.graph(), a, b, y, c.tangent(1)));
  }
  static void batch(BatchContext& c) {
    int rank = c.result_shape().rank();
    Graph& g = c.graph();
    c.set_result(g.add(c.box(), {c.aligned(0, rank), c.aligned(1, rank)}));
  }

  static constexpr AttrField attrs[] = {field<&ops::Binary::fn>("fn", AttrPlace::Mnemonic)};
};

}  // namespace

constinit const OpDef ops::Binary::def{.kind = kind,
                                       .name = "binary",
                                       .what = "An elementwise function of two operands, broadcast: add, mul, max, ...",
                                       .inputs = inputs("a", "b"),
                                       .attrs = BinaryRules::attrs,
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::InBodies,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Elementwise,
                                       .infer = BinaryRules::infer,
                                       .decompose = none("a primitive"),
                                       .vjp = BinaryRules::vjp,
                                       .jvp = BinaryRules::jvp,
                                       .batch = BinaryRules::batch,
                                       .reference = BinaryRules::reference,
                                       .cost = flops_per_element<1>};

}  // namespace rlx
