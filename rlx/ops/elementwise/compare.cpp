// Compare and Where: Bool results of two operands, and the choice between two operands by a Bool one.
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
    return false;  // unordered; infer refuses it
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

  static void samples(SampleSet& s) {
    for (Kind fn : {Kind::Eq, Kind::Ne, Kind::Lt, Kind::Le, Kind::Gt, Kind::Ge}) {
      ops::Compare op{fn};
      std::string name(enum_name(fn));
      auto add = [&](DType t, Fill fill, std::int64_t bound) {
        s.add_discrete(concat_text(name, " ", dtype_name(t)),
                       {{Shape({3, 5}, t), fill, bound}, {Shape({5}, t), fill, bound}}, op);
      };
      for (DType t : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8, DType::I32, DType::I64})
        add(t, Fill::Small, 1);
      for (DType t : {DType::U8, DType::U64}) add(t, Fill::Index, 3);
      add(DType::Bool, Fill::Boolean, 1);
    }
    s.add_discrete("eq c64", {{Shape({6}, DType::C64), Fill::Small}, {Shape({6}, DType::C64), Fill::Small}},
                   ops::Compare{Kind::Eq});
    s.add_discrete("no elements", {Shape({0}, DType::F32), Shape({2, 1}, DType::F32)}, ops::Compare{Kind::Lt});
    s.add_discrete("scalars", {Shape({}, DType::F32), Shape({}, DType::F32)}, ops::Compare{Kind::Lt});
  }
  static constexpr AttrField attrs[] = {field<&ops::Compare::fn>("fn", AttrPlace::Mnemonic)};
};

struct WhereRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (c.input(0).dtype() != DType::Bool) return c.dtype_error("cond must be bool, got ", c.input(0));
    if (auto bad = c.check_same_dtype(1, 3)) return *bad;
    if (dtype_bits(c.input(1).dtype()) < 8) return c.dtype_error("cannot pick among packed elements, got ", c.input(1));
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

  static void samples(SampleSet& s) {
    auto cond = [](Dims dims) { return SampleInput(Shape(std::move(dims), DType::Bool), Fill::Boolean); };
    s.add("f32", {cond({2, 3}), Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}, ops::Where{});
    s.add("f64 column of conditions", {cond({2, 1}), Shape({3}, DType::F64), Shape({2, 3}, DType::F64)}, ops::Where{});
    s.add("scalar operands", {cond({4}), Shape({}, DType::F32), Shape({1}, DType::F32)}, ops::Where{});
    s.add("scalar condition", {cond({}), Shape({2, 1}, DType::F32), Shape({1, 2}, DType::F32)}, ops::Where{});
    s.add("no elements", {cond({0}), Shape({2, 1}, DType::F32), Shape({}, DType::F32)}, ops::Where{});
    s.add("c64", {cond({4}), Shape({4}, DType::C64), Shape({}, DType::C64)}, ops::Where{});
    for (DType t : {DType::BF16, DType::F16, DType::I8, DType::I32, DType::I64, DType::U8})
      s.add_discrete(std::string(dtype_name(t)),
                     {cond({5}), {Shape({5}, t), Fill::Index, 9}, {Shape({}, t), Fill::Index, 9}}, ops::Where{});
    s.add_discrete("bool", {cond({4}), cond({4}), cond({1})}, ops::Where{});
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
                                        .cost = flops_per_element<1>,
                                        .samples = CompareRules::samples};

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
                                      .cost = flops_per_element<1>,
                                      .samples = WhereRules::samples};

}  // namespace rlx
