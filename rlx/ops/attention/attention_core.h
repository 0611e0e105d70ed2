// Shared rules of Attention, AttentionBackward and FusedAttentionBlock: the checks, the layouts, the mask and the
// probabilities.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The score of a key that is masked for a query.
inline constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// The attributes of the attention ops.
struct AttentionSpec {
  std::int64_t num_heads, kv_heads, head_dim, v_head_dim;
  MaskKind mask;
  std::int64_t window;
  std::optional<double> scale, softcap;
  HeadLayout layout;
  /// Query heads per key head.
  std::int64_t group() const { return num_heads / kv_heads; }
  /// The factor of q k^T: `scale`, or head_dim^-0.5.
  double factor() const;
};

template <class Op>
AttentionSpec attention_spec(const Op& op) {
  return {op.num_heads, op.kv_heads, op.head_dim, op.v_head_dim.value_or(op.head_dim), op.mask, op.window,
          op.scale,     op.softcap,  op.layout};
}
/// The op of a spec, without optional operands.
template <class Op>
Op attention_op(const AttentionSpec& s) {
  Op op{s.num_heads, s.kv_heads, s.head_dim, s.mask, s.window, s.scale, s.softcap, s.layout, {}, {}};
  if (s.v_head_dim != s.head_dim) op.v_head_dim = s.v_head_dim;
  return op;
}

constexpr bool takes_mask(MaskKind kind) { return kind == MaskKind::Custom || kind == MaskKind::Bias; }
/// For InputSpec: the operand at `Place` is present when the kind of mask takes one.
template <class Op, int Place>
std::uint32_t mask_present(const void* op) {
  return takes_mask(static_cast<const Op*>(op)->mask) ? 1U << Place : 0;
}

/// The axis of the sequence in q, k and v.
constexpr int sequence_axis(HeadLayout layout) { return layout == HeadLayout::HeadsFirst ? 2 : 1; }

/// Checks only the attributes.
std::optional<Diagnostic> check_attention_attrs(const InferContext& c, const AttentionSpec& spec);
/// Checks a mask of the attention over [batch, num_heads, queries, keys].
std::optional<Diagnostic> check_attention_mask(const InferContext& c, const AttentionSpec& spec, const Shape& mask,
                                               const Dim& batch, const Dim& queries, const Dim& keys);
/// Error unless `x`, called `name`, is I32 [count].
std::optional<Diagnostic> check_lengths(const InferContext& c, std::string_view name, const Shape& x, const Dim& count);
/// Checks the attributes, the operands q, k, v at 0, 1, 2, and the optional operands of Attention.
std::optional<Diagnostic> check_attention(const InferContext& c, const AttentionSpec& spec);
/// The shapes of y and lse.
Shape attention_result(const AttentionSpec& spec, const Shape& q);
Shape lse_shape(const AttentionSpec& spec, const Shape& q);

/// The dims of a mask as [B or 1, H or 1, S_q or 1, S_k or 1]: right-aligned, so that rank 2 is [S_q, S_k].
Dims mask_dims4(const Shape& mask);

/// The operands of Attention.
struct AttentionOperands {
  Expr q, k, v;
  std::optional<Expr> mask, kv_len, q_len, sinks;
};
template <class Context>
AttentionOperands attention_operands(const Context& c) {
  return {c.input(0),
          c.input(1),
          c.input(2),
          c.optional_input("mask"),
          c.optional_input("kv_len"),
          c.optional_input("q_len"),
          c.optional_input("sinks")};
}

/// q, k and v with split heads, and the attention weights, in the accumulator dtype of q.
struct AttentionGraph {
  Expr q;                   // [B, KV, G, S_q, D]
  Expr k, v;                // [B, KV, S_k, D]
  Expr tanh;                // tanh(s / softcap) [B, KV, G, S_q, S_k]; invalid without a softcap
  Expr scores;              // [B, KV, G, S_q, S_k], -inf where masked
  Expr probabilities;       // [B, KV, G, S_q, S_k]; 0 at masked keys, so 0 in fully masked rows
  Expr sinks;               // [B or 1, KV, G, 1, 1]; invalid without sinks
  Expr sink_probabilities;  // [B, KV, G, S_q, 1]; invalid without sinks
  std::optional<Expr> row;  // with q_len: Bool [B, 1, 1, S_q, 1], true for rows below q_len
  bool hides = false;       // some key may be masked for some query
};
/// Appends the scores, mask and softmax. `mask` is used when the kind of mask takes one.
AttentionGraph build_attention(Graph& g, const AttentionSpec& spec, const AttentionOperands& in);
/// probabilities v, [B, KV, G, S_q, D]. A masked key of weight 0 adds nothing, even when v is NaN or infinite there.
/// That takes a matmul of three times the width. With `may_branch` and many keys, it runs only when v holds such a
/// value.
Expr weigh_values(Graph& g, const AttentionSpec& spec, const AttentionGraph& a, bool may_branch);
/// log(sum(exp(scores))) [B, H, S_q]; -inf for rows where every key is masked.
Expr log_sum_exp(Graph& g, const AttentionSpec& spec, const AttentionGraph& a);
/// x, with 0 for elements that are not finite if keys may be masked. So a product with a factor that is 0 at masked
/// keys is 0 there, not NaN. Wherever x is not finite, the other factor must be NaN or 0.
Expr behind_mask(const AttentionGraph& a, Expr x);
/// x in op layout -> [B, heads / group, group, S, depth] ([B, heads, S, depth] when group is 0).
Expr split_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, std::int64_t group,
                 std::int64_t depth);
/// The inverse of split_heads: [B, KV, G, S, D] or [B, KV, S, D] -> `dims` in op layout.
Expr merge_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, const Dims& dims);

}  // namespace rlx
