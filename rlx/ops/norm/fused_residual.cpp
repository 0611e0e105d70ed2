// FusedResidualLN and FusedResidualRmsNorm: a residual sum, and its norm over the last axis. Composites.
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ops/elementwise/representable.h"

namespace rlx {
namespace {

// Operands x, residual, [bias], gamma, beta: x and residual have one shape; the vectors have its last dimension.
std::optional<Diagnostic> check_residual(const InferContext& c, double eps) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (auto e = c.check_same_dtype(0, c.num_inputs())) return e;
  if (auto e = check_representable_eps(c, eps, c.input(0).dtype())) return e;
  if (x.rank() < 1) return c.error("x must have an axis to normalise, got ", x);
  if (!(c.input(1) == x)) return c.error("the residual ", c.input(1), " must have the shape of x ", x);
  for (int i = 2; i < c.num_inputs(); ++i) {
    const std::string_view name = operand_name(c.box(), c.num_inputs(), i);
    if (c.input(i).rank() != 1 || !(c.input(i).dim(0) == x.dim(-1)))
      return c.error(name, " must be [", x.dim(-1), "] (the last dimension of x ", x, "), got ", c.input(i));
  }
  return std::nullopt;
}

Expr residual_sum(DecomposeContext& c) {
  Expr sum = c.input("x") + c.input("residual");
  return c.has("bias") ? sum + c.input("bias") : sum;
}

constexpr InputSpec kResidualInputs = inputs("x", "residual", maybe("bias"), maybe("gamma"), maybe("beta"));

// The norm of the sum. Its results from 1 on come after the sum.
template <class Norm>
void decompose_residual(DecomposeContext& c, double eps) {
  const Expr sum = residual_sum(c);
  Norm norm;
  norm.axes = {sum.rank() - 1}, norm.eps = eps;
  std::vector<std::pair<std::string_view, Expr>> operands{{"x", sum}};
  for (std::string_view name : {"gamma", "beta"})
    if (c.has(name)) operands.emplace_back(name, c.input(name));
  const Expr y = c.graph().add_named(norm, operands);
  c.set_result(0, y);
  c.set_result(1, sum);
  for (int r = 2; r < c.num_results(); ++r) c.set_result(r, y.result(static_cast<std::uint32_t>(r - 1)));
}

// FusedResidualLN returns y, the sum, mean and rstd; FusedResidualRmsNorm returns the same without the mean.
template <class Op, class Norm>
struct ResidualRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<Op>();
    if (auto e = check_residual(c, op.eps)) return *e;
    const Shape& x = c.input(0);
    Dims kept = x.dims();
    kept.back() = 1;
    const Shape stats(kept, accumulator_dtype(x.dtype()));
    Shapes out{x, x, stats};
    if (std::is_same_v<Op, ops::FusedResidualLN>) out.push_back(stats);
    return out;
  }
  static void decompose(DecomposeContext& c) { decompose_residual<Norm>(c, c.op<Op>().eps); }
  static constexpr DerivedRule vjp = by_decomposition;
  static constexpr DerivedRule jvp = by_decomposition;
  static constexpr DerivedRule batch = by_decomposition;
  static constexpr AttrField attrs[] = {field<&Op::eps>("eps"), field<&Op::present>("present")};
};

template <class Op, class Norm>
constexpr OpDef record(std::string_view name, std::string_view what, Cost (*cost)(const CostContext&)) {
  using Rules = ResidualRules<Op, Norm>;
  return {.kind = Op::kind,
          .name = name,
          .what = what,
          .inputs = kResidualInputs.masked_by<&Op::present>(),
          .attrs = Rules::attrs,
          .level = Level::Mir,
          .leaf = LeafKind::None,
          .elementwise = ElementwiseKind::No,
          .view = ViewKind::None,
          .precision = PrecisionCategory::Reduction,
          .infer = Rules::infer,
          .decompose = Rules::decompose,
          .vjp = Rules::vjp,
          .jvp = Rules::jvp,
          .batch = Rules::batch,
          .reference = by_decomposition,
          .cost = cost};
}

}  // namespace

constinit const OpDef ops::FusedResidualLN::def = record<ops::FusedResidualLN, ops::LayerNorm>(
    "fused_residual_ln", "layer_norm of x + residual [+ bias] over the last axis, and that sum.",
    flops_per_element<10>);
constinit const OpDef ops::FusedResidualRmsNorm::def = record<ops::FusedResidualRmsNorm, ops::RmsNorm>(
    "fused_residual_rms_norm", "rms_norm of x + residual [+ bias] over the last axis, and that sum.",
    flops_per_element<7>);

}  // namespace rlx
