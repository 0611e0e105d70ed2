// Op structs of HIR blocks, which the lowering of HIR replaces as FusionPolicy says.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// act(x w + bias). Inputs: x [.., K], w [K, N], [bias [N]].
struct Linear { RLX_OP(Linear); std::optional<ActivationKind> activation{}; bool has_bias = false; };
/// act(x w + bias), always lowered to FusedDot. Inputs: x, w, bias.
struct LinearFused { RLX_OP(LinearFused); std::optional<ActivationKind> activation{}; };
/// x w1 and x w2. Results: y1, y2.
struct SharedLinearPair { RLX_OP(SharedLinearPair); };
/// (silu(x w_gate) * (x w_up)) w_down. Inputs: x, w_up, w_gate, w_down.
struct SwiGLU { RLX_OP(SwiGLU); };
/// RmsNorm(x + residual). Inputs: x, residual, gamma, beta.
struct ResidualRmsNorm { RLX_OP(ResidualRmsNorm); double eps = 1e-6; };
/// LayerNorm(x + residual). Inputs: x, residual, gamma, beta.
struct ResidualLayerNorm { RLX_OP(ResidualLayerNorm); double eps = 1e-5; };
/// BERT's post-norm encoder layer. Inputs: x [B, S, E], w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o, ln1_gamma, ln1_beta,
/// w_up, b_up, w_down, b_down, ln2_gamma, ln2_beta, [mask]. Weights are [in, out].
struct EncoderBlock {
  RLX_OP(EncoderBlock);
  std::int64_t num_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  double eps = 1e-12;
  ActivationKind activation = ActivationKind::Gelu;
};
/// Llama's pre-norm decoder layer. Inputs: x [B, S, E], ln1_gamma, w_q, w_k, w_v, w_o, ln2_gamma, w_gate, w_up, w_down,
/// cos, sin, [mask], [ln1_beta], [ln2_beta], [q_norm [D], k_norm [D]], [b_q], [b_k], [b_v], [b_o], [k_cache, v_cache
/// [B, P, KV D] of any float dtype], [start I32 scalar]. Weights are [in, out]. q_norm and k_norm are the gammas of an
/// RmsNorm of each head before its rotation. Results: y and, with caches, the caches after this call, in their dtype.
/// Without start these are the P cached rows followed by the S new ones, [B, P + S, KV D]. With start the caches keep P
/// rows: the new rows are written from row start on, and rows below start hold the older keys. n_rot 0 rotates the
/// whole head. `activation` is that of the gate.
struct LlamaDecoderBlock {
  RLX_OP(LlamaDecoderBlock);
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1;
  MaskKind mask = MaskKind::Causal;
  double eps = 1e-6;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  std::int64_t n_rot = 0;
  RopePairing pairing = RopePairing::Half;
  ActivationKind activation = ActivationKind::Silu;
  OperandMask present{};  // which inputs after the mask are given; `mask` None: no mask
};

}  // namespace ops
}  // namespace rlx
// clang-format on
