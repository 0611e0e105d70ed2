// Clamp and StopGradient.
#include "rlx/ops/elementwise/elementwise.h"

#include "rlx/ir/ops/elementwise.h"

namespace rlx {
namespace {

struct ClampRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto bad = c.check_same_dtype(0, 3)) return *bad;
    DType dtype = c.input(0).dtype();
    if (!contains(DTypes::Float | DTypes::Int, dtype))
      return c.dtype_error("needs float or integer operands, got ", c.input(0));
    Result<Dims> dims = broadcast_operands(c, 0, 3);
    if (!dims) return dims.error();
    return make_shapes(Shape(std::move(*dims), dtype));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    c.set_result(g.min(g.max(c.input(0), c.input(1)), c.input(2)));
  }

  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;

  static void samples(SampleSet& s) {
    auto in = [](Dims dims, DType t, Fill fill = Fill::Normal) { return SampleInput(Shape(std::move(dims), t), fill); };
    s.add("scalar bounds", {in({2, 4}, DType::F32), in({}, DType::F32, Fill::Unit), in({}, DType::F32, Fill::Positive)},
          ops::Clamp{});
    s.add("row bounds", {in({2, 3}, DType::F64), in({3}, DType::F64), in({2, 1}, DType::F64)}, ops::Clamp{});
    s.add("bounds stretch x", {in({1}, DType::F32), in({2, 1}, DType::F32), in({3}, DType::F32)}, ops::Clamp{});
    s.add("no elements", {in({0, 2}, DType::F32), in({}, DType::F32), in({2}, DType::F32)}, ops::Clamp{});
    s.add_discrete(
        "i32", {in({7}, DType::I32, Fill::Small), in({}, DType::I32, Fill::Small), in({7}, DType::I32, Fill::Small)},
        ops::Clamp{});
    s.add_discrete("bf16", {in({4}, DType::BF16), in({}, DType::BF16, Fill::Unit), in({}, DType::BF16, Fill::Positive)},
                   ops::Clamp{});
  }
};

struct StopGradientRules {
  static Result<Shapes> infer(const InferContext& c) { return make_shapes(c.input(0)); }
  static void reference(const RefArgs& a) { a.out() = a.in(0); }
  static void vjp(VjpContext&) {}
  static void jvp(JvpContext&) {}
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static void samples(SampleSet& s) {
    // The derivative is zero by definition, so finite differences do not apply.
    s.add_discrete("f32", {Shape({2, 3}, DType::F32)}, ops::StopGradient{});
    s.add_discrete("i64", {{Shape({}, DType::I64), Fill::Small}}, ops::StopGradient{});
    s.add_discrete("no elements", {Shape({0}, DType::F32)}, ops::StopGradient{});
  }
};

}  // namespace

constinit const OpDef ops::Clamp::def{.kind = kind,
                                      .name = "clamp",
                                      .what = "min(max(x, low), high), elementwise and broadcast.",
                                      .inputs = inputs("x", "low", "high"),
                                      .attrs = {},
                                      .level = Level::Mir,
                                      .leaf = LeafKind::None,
                                      .elementwise = ElementwiseKind::InBodies,
                                      .view = ViewKind::None,
                                      .precision = PrecisionCategory::Elementwise,
                                      .infer = ClampRules::infer,
                                      .decompose = ClampRules::decompose,
                                      .vjp = ClampRules::vjp,
                                      .jvp = ClampRules::jvp,
                                      .batch = ClampRules::batch,
                                      .reference = by_decomposition,
                                      .cost = flops_per_element<2>,
                                      .samples = ClampRules::samples};

constinit const OpDef ops::StopGradient::def{.kind = kind,
                                             .name = "stop_gradient",
                                             .what = "x, with a zero derivative.",
                                             .inputs = inputs("x"),
                                             .attrs = {},
                                             .level = Level::Mir,
                                             .leaf = LeafKind::None,
                                             .elementwise = ElementwiseKind::Yes,
                                             .view = ViewKind::Always,
                                             .precision = PrecisionCategory::Elementwise,
                                             .infer = StopGradientRules::infer,
                                             .decompose = none("a primitive"),
                                             .vjp = StopGradientRules::vjp,
                                             .jvp = StopGradientRules::jvp,
                                             .batch = StopGradientRules::batch,
                                             .reference = StopGradientRules::reference,
                                             .cost = no_cost,
                                             .samples = StopGradientRules::samples};

}  // namespace rlx
