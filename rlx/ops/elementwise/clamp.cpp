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
};

struct StopGradientRules {
  static Result<Shapes> infer(const InferContext& c) { return make_shapes(c.input(0)); }
  static void reference(const RefArgs& a) { a.out() = a.in(0); }
  static void vjp(VjpContext&) {}
  static void jvp(JvpContext&) {}
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
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
                                      .cost = flops_per_element<2>};

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
                                             .cost = no_cost};

}  // namespace rlx
