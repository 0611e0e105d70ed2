// Shared parts of the HIR blocks.
#include "rlx/ops/quant/block_parts.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/elementwise/elementwise.h"
#include "rlx/ops/elementwise/representable.h"

namespace rlx {
namespace {

// The epilogue act(acc + bias) for an accumulator like `acc`.
Subgraph bias_act_epilogue(const Shape& acc, const std::optional<Shape>& bias,
                           std::optional<ActivationKind> activation) {
  auto body = std::make_shared<Graph>("epilogue");
  Expr y = body->input("acc", acc);
  if (bias) y = y + body->input("bias", *bias);
  if (activation) y = body->activation(*activation, y);
  body->set_outputs({y});
  return body;
}

Expr linear_chain(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation) {
  Expr y = g.matmul(x, w);
  if (bias) y = y + *bias;
  return activation ? g.activation(*activation, y) : y;
}

double rows_of(const Shape& x) {
  return static_cast<double>(x.num_elements()) / std::max(1.0, static_cast<double>(x.dim(-1).value()));
}

}  // namespace

Expr fused_linear(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation) {
  const std::int64_t last = x.rank() - 1;
  const ops::DotGeneral dims{{last}, {0}, {}, {}};
  if (!bias && !activation) return g.dot_general(x, w, dims);
  Dims acc(x.shape().dims().begin(), x.shape().dims().end() - 1);
  acc.push_back(w.dim(1));
  std::vector<Value> operands{x, w};
  if (bias) operands.push_back(*bias);
  return g.add(ops::FusedDot{dims.lhs_contract,
                             dims.rhs_contract,
                             {},
                             {},
                             bias_act_epilogue(Shape(acc, x.dtype()),
                                               bias ? std::optional(bias->shape()) : std::nullopt, activation)},
               operands);
}

Expr linear_into(DecomposeContext& c, Expr x, Expr w, std::optional<Expr> bias,
                 std::optional<ActivationKind> activation) {
  return c.policy() == FusionPolicy::Direct ? fused_linear(c.graph(), x, w, bias, activation)
                                            : linear_chain(c.graph(), x, w, bias, activation);
}

std::vector<Expr> shared_linear(DecomposeContext& c, Expr x, const std::vector<Expr>& weights,
                                const std::vector<Expr>& biases) {
  Graph& g = c.graph();
  std::vector<Expr> out;
  if (c.policy() == FusionPolicy::Fusable) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      out.push_back(
          linear_chain(g, x, weights[i], biases.empty() ? std::nullopt : std::optional(biases[i]), std::nullopt));
    return out;
  }
  Expr y = fused_linear(g, x, g.concat(weights, 1), biases.empty() ? std::nullopt : std::optional(g.concat(biases, 0)),
                        std::nullopt);
  Dim start = 0;
  for (const Expr& w : weights) {
    out.push_back(g.narrow(y, -1, start, w.dim(1)));
    start = start + w.dim(1);
  }
  return out;
}

Expr residual_layer_norm_into(DecomposeContext& c, Expr x, Expr residual, Expr gamma, Expr beta, double eps) {
  if (c.policy() == FusionPolicy::Direct)
    return c.graph().add_named(ops::FusedResidualLN{eps, {}},
                               {{"x", x}, {"residual", residual}, {"gamma", gamma}, {"beta", beta}});
  return c.graph().layer_norm(x + residual, gamma, beta, eps);
}

std::pair<Expr, Expr> residual_rms_norm_into(DecomposeContext& c, Expr x, Expr residual, Expr gamma,
                                             std::optional<Expr> beta, double eps) {
  if (c.policy() == FusionPolicy::Direct) {
    std::vector<std::pair<std::string_view, Expr>> operands{{"x", x}, {"residual", residual}, {"gamma", gamma}};
    if (beta) operands.emplace_back("beta", *beta);
    Expr y = c.graph().add_named(ops::FusedResidualRmsNorm{eps, {}}, operands);
    return {y, y.result(1)};
  }
  Expr sum = x + residual;
  return {c.graph().rms_norm(sum, gamma, beta, eps), sum};
}

Result<Shape> infer_linear(const InferContext& c, int w_operand, const char* name) {
  const Shape &x = c.input(0), &w = c.input(w_operand);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
  if (x.rank() < 1) return c.error("x must be [.., K], got ", x);
  if (w.rank() != 2 || !(w.dim(0) == x.dim(-1)))
    return c.error(name, " must be [", x.dim(-1), ", N] for x ", x, ", got ", w);
  return x.with_dim(x.rank() - 1, w.dim(1));
}

std::optional<Diagnostic> check_activation(const InferContext& c, std::optional<ActivationKind> activation) {
  if (activation && !contains(function_row(*activation).dtypes, DType::F32))
    return c.attr_error("activation '", enum_name(*activation), "' takes ",
                        dtypes_text(function_row(*activation).dtypes), ", but the result of the matmul is float");
  return std::nullopt;
}

std::optional<Diagnostic> check_eps(const InferContext& c, double eps) {
  return check_representable_eps(c, eps, c.input(0).dtype());
}

std::optional<Diagnostic> check_dims(const InferContext& c, int operand, const char* name, const Dims& dims) {
  if (c.input(operand).dims() != dims) return c.error(name, " must be ", dims_text(dims), ", got ", c.input(operand));
  return std::nullopt;
}

Cost block_cost(const CostContext& c, std::int64_t num_heads, std::int64_t head_dim) {
  const double rows = rows_of(c.inputs[0]);
  double dense = 0;
  for (std::size_t i = 1; i < c.inputs.size(); ++i)
    if (c.inputs[i].rank() == 2 && c.inputs[i].dtype() == c.inputs[0].dtype())
      dense += static_cast<double>(c.inputs[i].num_elements());
  const double scores = rows * static_cast<double>(c.inputs[0].dim(1).value()) * static_cast<double>(num_heads);
  return c.with_flops(2 * rows * dense + scores * (4 * static_cast<double>(head_dim) + 6));
}

}  // namespace rlx
