// What the HIR blocks share: products with bias and activation, residual norms, checks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ops/attention/attention_core.h"

namespace rlx {

/// act(x w + bias) as one FusedDot; x [.., K], w [K, N].
Expr fused_linear(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation);
/// The same as a FusedDot or a chain of primitives, as the policy says.
Expr linear_into(DecomposeContext& c, Expr x, Expr w, std::optional<Expr> bias,
                 std::optional<ActivationKind> activation = std::nullopt);
/// x times several weights at once, with a bias for each or for none; Direct joins the weights along N (a fold at load
/// time) and slices the product.
std::vector<Expr> shared_linear(DecomposeContext& c, Expr x, const std::vector<Expr>& weights,
                                const std::vector<Expr>& biases);
Expr residual_layer_norm_into(DecomposeContext& c, Expr x, Expr residual, Expr gamma, Expr beta, double eps);
/// {RmsNorm(x + residual), x + residual}.
std::pair<Expr, Expr> residual_rms_norm_into(DecomposeContext& c, Expr x, Expr residual, Expr gamma,
                                             std::optional<Expr> beta, double eps);

/// The result shape of x w for x [.., K], w [K, N].
Result<Shape> infer_linear(const InferContext& c, int w_operand, const char* name);
std::optional<Diagnostic> check_activation(const InferContext& c, std::optional<ActivationKind> activation);
std::optional<Diagnostic> check_eps(const InferContext& c, double eps);
std::optional<Diagnostic> check_dims(const InferContext& c, int operand, const char* name, const Dims& dims);
/// Products of every row of x with the matrices among the operands, plus attention scores over the sequence.
Cost block_cost(const CostContext& c, std::int64_t num_heads, std::int64_t head_dim);

}  // namespace rlx
