// Model layers. They have their common names and are composed of ops and HIR blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/functions/sequence.h"
#include "rlx/ir/graph.h"

namespace rlx::nn {

/// x w + bias; x [.., K], w [K, N], bias [N].
Expr linear_bias(Operand x, Operand w, Operand bias);
/// act(x w + bias); x [.., K], w [K, N], bias [N].
Expr linear_bias_act(Operand x, Operand w, Operand bias, ActivationKind activation);
/// {x w1, x w2}, computed by one matmul under FusionPolicy::Direct.
std::pair<Expr, Expr> shared_matmul_pair(Operand x, Operand w1, Operand w2);
/// The SwiGLU feed-forward layer: (silu(x w_gate) * (x w_up)) w_down.
Expr swiglu_ffn(Operand x, Operand w_up, Operand w_gate, Operand w_down);
/// swiglu_ffn with w_up and w_gate concatenated in w [K, 2 N]: up first, or gate first with `gate_first`.
Expr fused_swiglu_ffn(Operand x, Operand w, Operand w_down, bool gate_first = false);
/// A matmul with a LoRA adapter: x w + scale (x a) b; x [.., K], w [K, N], a [K, R], b [R, N].
Expr lora_matmul(Operand x, Operand w, Operand a, Operand b, double scale);
/// Rotary position embedding of the first n_rot elements of each head of x [B, S, H D]; element i is paired with i +
/// n_rot / 2. See ops::Rope.
Expr rope_n(Operand x, Operand cos, Operand sin, std::int64_t head_dim, std::int64_t n_rot);

/// Options of axial_rope2d, rotary position embedding over a grid of end_x columns and end_y rows. x [B, end_x end_y
/// repeat_factor, H D] has the tokens of the grid row by row, repeat_factor tokens per grid cell. In the first half of
/// each head the pair (2c, 2c + 1) is rotated by column * f_c, in the second half by row * f_c, with f_c = theta^(-4c /
/// D).
struct AxialRope2d {
  std::int64_t end_x = 1, end_y = 1, head_dim = 4, num_heads = 1;
  double theta = 10000;
  std::int64_t repeat_factor = 1;
};
/// x rotated as AxialRope2d says. Float x [B, S, H D]. InvalidArgument if an extent is below 1, head_dim is not a
/// multiple of 4, or theta is not a finite number above 0. ShapeMismatch if x does not have the shape of the grid.
Expr axial_rope2d(Operand x, const AxialRope2d& form);

/// A kind of attention mask.
struct AttentionKind {
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
};
/// The mask of a name: "none", "causal", or "sliding:<n>" (a query sees itself and the n keys before it).
/// InvalidArgument for other texts.
AttentionKind attention_kind(std::string_view text);

/// causal_conv1d(x, w).y with left_pad [B, K - 1, C] as the context. It is the documented name.
Expr depthwise_conv1d_causal(Operand x, Operand w, Operand left_pad);

/// The multi-token prediction (MTP) head of Qwen3.5, which drafts tokens for speculative decoding. It predicts the next
/// token from the embedding of the last token drawn and the hidden state of the model, both [B, S, E].
/// concat(norm(embed), norm(hidden)) w_in goes through one decoder layer with gated attention: w_q [E, H 2 D] gives
/// each head D elements of q and D of the gate, and y * sigmoid(gate) goes into w_o. Weights are [in, out]. Files of
/// Qwen store the gammas of norms as gamma - 1; add 1.
struct Qwen35MtpHead {
  Expr embed, hidden;                            // [B, S, E]
  Expr embed_norm, hidden_norm, w_in;            // [E], [E], [2 E, E]
  Expr ln1, w_q, w_k, w_v, w_o, q_norm, k_norm;  // [E], .., [H D, E], [D], [D]
  Expr cos, sin;                                 // see ops::Rope
  Expr ln2, w_gate, w_up, w_down;                // [E], [E, F], [E, F], [F, E]
  Expr norm, w_head;                             // [E], [E, V]
  std::optional<Expr> mask{};                    // Bool; none: causal. See ops::Attention
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1, n_rot = 0;
  double eps = 1e-6;
};
/// The logits [B, V] of the head at the last of the S tokens. InvalidArgument if a size is below 1, ShapeMismatch if
/// embed is not [B, S, E].
Expr qwen35_mtp_head(const Qwen35MtpHead& head, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::nn
