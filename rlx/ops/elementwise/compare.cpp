// Compare and Where: Bool comparisons of two operands, and selection between two operands by a Bool one.
#include <cstring>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/elementwise/elementwise.h"

namespace rlx {
namespace {

using Kind = CompareKind;

template <class T>
bool holds(Kind fn, const T& a, const T& b) {
  if (fn == Kind::Eq) return a == b;
  if (fn == Kind::Ne) return a != b;
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    return false;  // has no order; infer refuses it
  } else {
    switch (fn) {
      case Kind::Lt: return a < b;
      case Kind::Le: return a <= b;
      case Kind::Gt: return a > b;
      default: return a >= b;
    }
  }
}

struct CompareRules {
  static constexpr NoRule kDiscrete = none("its result is Bool");

  static Result<Shapes> infer(const InferContext& c) {
    Kind fn = c.op<ops::Compare>().fn;
    if (static_cast<std::size_t>(fn) >= std::size(EnumNames<Kind>::values))
      return c.attr_error("has an unknown function");
    if (auto bad = c.check_same_dtype(0, 2)) return *bad;
    DType dtype = c.input(0).dtype();
    if (is_storage_only(dtype)) return c.dtype_error("cannot compare ", c.input(0), ": cast it first");
    if (is_complex(dtype) && fn != Kind::Eq && fn != Kind::Ne)
      return c.dtype_error("complex numbers have no order, got ", c.input(0));
    Result<Dims> dims = broadcast_operands(c, 0, 2);
    if (!dims) return dims.error();
    return make_shapes(Shape(std::move(*dims), DType::Bool));
  }

  static void reference(const RefArgs& a) {
    Kind fn = a.op<ops::Compare>().fn;
    std::vector<std::int64_t> dims = a.out().dims();
    std::byte* out = a.out().mutable_data();
    visit_accumulator(a.in(0).dtype(), [&]<class T>(T) {
      std::vector<T> left = load_broadcast<T>(a.in(0), dims), right = load_broadcast<T>(a.in(1), dims);
      for (std::size_t i = 0; i < left.size(); ++i) out[i] = static_cast<std::byte>(holds(fn, left[i], right[i]));
    });
  }

  static constexpr NoRule vjp = kDiscrete;
  static constexpr NoRule jvp = kDiscrete;
  static void batch(BatchContext& c) {
    int rank = c.result_shape().rank();
    c.set_result(c.graph().add(c.box(), {c.aligned(0, rank), c.aligned(1, rank)}));
  }

  static constexpr AttrField attrs[] = {field<&ops::Compare::fn>("fn", AttrPlace::Mnemonic)};
};

struct WhereRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.input(0).dtype() != DType::Bool) return c.dtype_error("cond must be bool, got ", c.input(0));
    if (auto bad = c.check_same_dtype(1, 3)) return *bad;
    if (dtype_bits(c.input(1).dtype()) < 8)
      return c.dtype_error("cannot select packed 4-bit elements, got ", c.input(1));
    Result<Dims> dims = broadcast_operands(c, 0, 3);
    if (!dims) return dims.error();
    return make_shapes(Shape(std::move(*dims), c.input(1).dtype()));
  }

  static void reference(const RefArgs& a) {
    std::vector<std::int64_t> dims = a.out().dims();
    std::vector<std::int64_t> cond = broadcast_index(a.in(0).dims(), dims);
    std::vector<std::int64_t> picked[2] = {broadcast_index(a.in(1).dims(), dims),
                                           broadcast_index(a.in(2).dims(), dims)};
    std::byte* out = a.out().mutable_data();
    std::size_t size = size_bytes(a.out().dtype());
    for (std::size_t i = 0; i < cond.size(); ++i) {
      int side = a.in(0).data()[cond[i]] != std::byte{0} ? 0 : 1;
      std::memcpy(out + i * size, a.in(1 + side).data() + static_cast<std::size_t>(picked[side][i]) * size, size);
    }
  }

  static void vjp(VjpContext& c) {
    if (!c.wants(1)) return;
    Graph& g = c.graph();
    c.accumulate(1, g.where(c.input(0), c.cotangent(), 0.0));
    c.accumulate(2, g.where(c.input(0), 0.0, c.cotangent()));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(1) || c.has_tangent(2)) c.set_tangent(c.graph().where(c.input(0), c.tangent(1), c.tangent(2)));
  }
  static void batch(BatchContext& c) {
    int rank = c.result_shape().rank();
    c.set_result(c.graph().add(c.box(), {c.aligned(0, rank), c.aligned(1, rank), c.aligned(2, rank)}));
  }
};

}  // namespace

constinit const OpDef ops::Compare::def{.kind = kind,
                                        .name = "compare",
                                        .what = "An elementwise comparison, broadcast, to Bool.",
                                        .inputs = inputs("a", "b"),
                                        .attrs = CompareRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::InBodies,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::Elementwise,
                                        .infer = CompareRules::infer,
                                        .decompose = none("a primitive"),
                                        .vjp = CompareRules::vjp,
                                        .jvp = CompareRules::jvp,
                                        .batch = CompareRules::batch,
                                        .reference = CompareRules::reference,
                                        .cost = flops_per_element<1>};

constinit const OpDef ops::Where::def{.kind = kind,
                                      .name = "where",
                                      .what = "cond ? a : b, elementwise and broadcast.",
                                      .inputs = inputs("cond", "a", "b"),
                                      .attrs = {},
                                      .level = Level::Mir,
                                      .leaf = LeafKind::None,
                                      .elementwise = ElementwiseKind::InBodies,
                                      .view = ViewKind::None,
                                      .precision = PrecisionCategory::Elementwise,
                                      .infer = WhereRules::infer,
                                      .decompose = none("a primitive"),
                                      .vjp = WhereRules::vjp,
                                      .jvp = WhereRules::jvp,
                                      .batch = WhereRules::batch,
                                      .reference = WhereRules::reference,
                                      .cost = flops_per_element<1>};

}  // namespace rlx
