// FusedDot: dot_general followed by an elementwise epilogue, which is a sub-graph.
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/body.h"
#include "rlx/ops/dot/dot_dims.h"

namespace rlx {
namespace {

struct FusedDotRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    auto dot = infer_dot(c, dot_axes(op));
    if (!dot) return dot.error();
    return infer_epilogue(c, op.epilogue, *dot, "the matmul");
  }
  static void decompose(DecomposeContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    const Expr product = c.graph().dot_general(
        c.input(0), c.input(1), ops::DotGeneral{op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch, op.out});
    decompose_epilogue(c, *op.epilogue, product);
  }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static Cost cost(const CostContext& c) {
    const auto& op = c.op<ops::FusedDot>();
    const double per_element = static_cast<double>(op.epilogue->num_nodes());
    return c.with_flops(dot_flops(c.inputs[0], c.outputs[0], dot_axes(op)) + per_element * c.elements());
  }
  static constexpr AttrField attrs[] = {
      field<&ops::FusedDot::lhs_contract>("lhs_contract"), field<&ops::FusedDot::rhs_contract>("rhs_contract"),
      field<&ops::FusedDot::lhs_batch>("lhs_batch"),       field<&ops::FusedDot::rhs_batch>("rhs_batch"),
      field<&ops::FusedDot::epilogue>("epilogue"),         field<&ops::FusedDot::out>("out")};
};

}  // namespace

constinit const OpDef ops::FusedDot::def{.kind = kind,
                                         .name = "fused_dot",
                                         .what = "A matmul followed by an elementwise epilogue on the accumulator.",
                                         .inputs = variadic_inputs("operands", 2),
                                         .attrs = FusedDotRules::attrs,
                                         .level = Level::Mir,
                                         .leaf = LeafKind::None,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::Compute,
                                         .infer = FusedDotRules::infer,
                                         .decompose = FusedDotRules::decompose,
                                         .vjp = FusedDotRules::vjp,
                                         .jvp = FusedDotRules::jvp,
                                         .batch = FusedDotRules::batch,
                                         .reference = by_decomposition,
                                         .cost = FusedDotRules::cost};

}  // namespace rlx
