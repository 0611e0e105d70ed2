// Binary: elementwise functions of two broadcast operands; what each is, is its row in ir/math/binary_table.h.
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

  static void samples(SampleSet& s) {
    auto pair = [](const BinaryRow& r, Dims a, Dims b, DType t) {
      return std::vector<SampleInput>{{Shape(std::move(a), t), r.fill_a}, {Shape(std::move(b), t), r.fill_b}};
    };
    for (int i = 0; i < kNumBinaryKinds; ++i) {
      const BinaryRow& r = row(static_cast<BinaryKind>(i));
      if (r.differentiable == 0) continue;  // every sample is asked for a derivative
      ops::Binary op{r.fn};
      std::string name(enum_name(r.fn));
      if (r.real) {
        const auto add = r.differentiable == 2 ? &SampleSet::add : &SampleSet::add_discrete;
        (s.*add)(name + " f32", pair(r, {2, 3}, {2, 3}, DType::F32), op);
        (s.*add)(name + " f64 row", pair(r, {2, 3}, {3}, DType::F64), op);
        (s.*add)(name + " left scalar", pair(r, {}, {2, 2}, DType::F32), op);
        s.add_discrete(name + " bf16", pair(r, {3}, {3}, DType::BF16), op);
        s.add_discrete(name + " f16", pair(r, {3}, {3}, DType::F16), op);
      }
      if (r.complex) s.add(name + " c64", pair(r, {2, 2}, {2}, DType::C64), op);
      if (r.signed_int) {
        for (DType t : {DType::I8, DType::I32, DType::I64})
          s.add_discrete(concat_text(name, " ", dtype_name(t)),
                         {{Shape({7}, t), Fill::Small}, {Shape({2, 7}, t), Fill::Small}}, op);
        for (DType t : {DType::U8, DType::U64})
          s.add_discrete(concat_text(name, " ", dtype_name(t)),
                         {{Shape({7}, t), Fill::Index, 9}, {Shape({2, 7}, t), Fill::Index, 4}}, op);
      }
      if (contains(r.dtypes, DType::Bool))
        s.add_discrete(name + " bool",
                       {{Shape({4, 1}, DType::Bool), Fill::Boolean}, {Shape({4}, DType::Bool), Fill::Boolean}}, op);
    }
    ops::Binary mul{BinaryKind::Mul}, max{BinaryKind::Max};
    s.add("both sides stretch", {Shape({2, 1, 3}, DType::F32), Shape({4, 1}, DType::F32)}, mul);
    s.add("right scalar", {Shape({2, 3}, DType::F32), Shape({}, DType::F32)}, mul);
    s.add("scalars", {Shape({}, DType::F32), Shape({}, DType::F32)}, mul);
    s.add("size one stays", {Shape({1, 1}, DType::F32), Shape({1}, DType::F32)}, max);
    s.add("no elements", {Shape({0, 3}, DType::F32), Shape({3}, DType::F32)}, mul);
    s.add("one stretches to none", {Shape({1, 3}, DType::F32), Shape({0, 1}, DType::F32)}, max);
    s.add_discrete("ties", {{Shape({16}, DType::F32), Fill::Small}, {Shape({16}, DType::F32), Fill::Small}}, max);
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
                                       .cost = flops_per_element<1>,
                                       .samples = BinaryRules::samples};

}  // namespace rlx
