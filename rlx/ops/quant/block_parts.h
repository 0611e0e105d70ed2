// Shared parts of the HIR blocks: matmuls with bias and activation, residual norms, checks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ops/attention/attention_core.h"

namespace rlx {

/// act(x w + bias) as one FusedDot; x [.., K], w [K, N].
Expr fused_linear(Graph& g, Expr x, Expr w, std::optional<Expr> bias, std::optional<ActivationKind> activation);
/// The same for a decomposition: a chain of primitives with FusionPolicy::Fusable, else one FusedDot.
Expr linear_into(DecomposeContext& c, Expr x, Expr w, std::optional<Expr> bias,
                 std::optional<ActivationKind> activation = std::nullopt);
/// x w_i + b_i for several weights w_i [K, N_i]; `biases` is empty or has one per weight. FusionPolicy::Direct computes
/// one matmul with the weights concatenated along N, once when they are set, and slices its result.
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
/// The matmuls of all rows of x with the matrices among the operands, plus attention scores over the sequence.
Cost block_cost(const CostContext& c, std::int64_t num_heads, std::int64_t head_dim);

}  // namespace rlx
