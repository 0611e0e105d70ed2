// Pieces of models by the names that the field has for them, built of ops and HIR blocks.
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
/// act(x w + bias).
Expr linear_bias_act(Operand x, Operand w, Operand bias, ActivationKind activation);
/// {x w1, x w2}, as one product where the policy is Direct.
std::pair<Expr, Expr> shared_matmul_pair(Operand x, Operand w1, Operand w2);
/// (silu(x w_gate) * (x w_up)) w_down.
Expr swiglu_ffn(Operand x, Operand w_up, Operand w_gate, Operand w_down);
/// The same with both weights in one, w [K, 2 N]: up first, or gate first.
Expr fused_swiglu_ffn(Operand x, Operand w, Operand w_down, bool gate_first = false);
/// x w + scale (x a) b; x [.., K], w [K, N], a [K, R], b [R, N].
Expr lora_matmul(Operand x, Operand w, Operand a, Operand b, double scale);
/// Rotary position of the first n_rot elements of each head of x [B, S, H D], paired i with i + n_rot / 2.
Expr rope_n(Operand x, Operand cos, Operand sin, std::int64_t head_dim, std::int64_t n_rot);

/// Rotary position in two directions. Tokens [B, end_x end_y repeat_factor, H D] stand row by row, each place
/// repeat_factor times; pairs (2c, 2c + 1) of the first half of a head turn by column * f_c, those of the second by
/// row * f_c, f_c = theta^(-4c / D). D is a multiple of 4.
struct AxialRope2d {
  std::int64_t end_x = 1, end_y = 1, head_dim = 4, num_heads = 1;
  double theta = 10000;
  std::int64_t repeat_factor = 1;
};
/// InvalidArgument for extents below 1, a head_dim that is no multiple of 4, a theta that is not above 0; ShapeMismatch
/// for another x.
Expr axial_rope2d(Operand x, const AxialRope2d& form);

/// What attends to what, by name: "none", "causal" or "sliding:<n>" (a query and the n keys before it).
struct AttentionKind {
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
};
/// InvalidArgument for another text.
AttentionKind attention_kind(std::string_view text);

/// The documented name of causal_conv1d with its context given.
Expr depthwise_conv1d_causal(Operand x, Operand w, Operand left_pad);

/// The draft head of Qwen3.5: from the embedding of the token just drawn and the hidden state of the model, both
/// [B, S, E], the logits [B, V] of the token behind the last one. concat(norm(embed), norm(hidden)) w_in goes through
/// one decoder layer whose attention has a gate: w_q [E, H 2 D] gives, for each head, D numbers of q and D of the gate,
/// and y * sigmoid(gate) goes into w_o. Weights are [in, out]; Qwen keeps gammas of its norms less 1.
struct Qwen35MtpHead {
  Expr embed, hidden;                            // [B, S, E]
  Expr embed_norm, hidden_norm, w_in;            // [E], [E], [2 E, E]
  Expr ln1, w_q, w_k, w_v, w_o, q_norm, k_norm;  // [E], .., [H D, E], [D], [D]
  Expr cos, sin;                                 // tables of Rope
  Expr ln2, w_gate, w_up, w_down;                // [E], [E, F], [E, F], [F, E]
  Expr norm, w_head;                             // [E], [E, V]
  std::optional<Expr> mask{};                    // Bool, in the place of causal: see ops::Attention
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1, n_rot = 0;
  double eps = 1e-6;
};
Expr qwen35_mtp_head(const Qwen35MtpHead& head, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::nn
