// What Attention, AttentionBackward and FusedAttentionBlock share: the checks, the layouts, the mask and the
// probabilities.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The attributes of the attention ops.
struct AttentionSpec {
  std::int64_t num_heads, kv_heads, head_dim;
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
  return {op.num_heads, op.kv_heads, op.head_dim, op.mask, op.window, op.scale, op.softcap, op.layout};
}

constexpr bool takes_mask(MaskKind kind) { return kind == MaskKind::Custom || kind == MaskKind::Bias; }
/// For InputSpec::present_when: the operand at `Place` is there when the kind of mask takes one.
template <class Op, int Place>
std::uint32_t mask_present(const void* op) {
  return takes_mask(static_cast<const Op*>(op)->mask) ? 1U << Place : 0;
}

/// Axis of the sequence in q, k and v.
constexpr int sequence_axis(HeadLayout layout) { return layout == HeadLayout::HeadsFirst ? 2 : 1; }

/// Checks the attributes alone.
std::optional<Diagnostic> check_attention_attrs(const InferContext& c, const AttentionSpec& spec);
/// Checks a mask of the attention over [batch, num_heads, queries, keys].
std::optional<Diagnostic> check_attention_mask(const InferContext& c, const AttentionSpec& spec, const Shape& mask,
                                               const Dim& batch, const Dim& queries, const Dim& keys);
/// Checks attributes and the operands q, k, v at 0, 1, 2, the others of their dtype up to `num_dense`, and the mask.
std::optional<Diagnostic> check_attention(const InferContext& c, const AttentionSpec& spec, int num_dense);

/// The dims of a mask as [B or 1, H or 1, S_q or 1, S_k or 1]: right-aligned, so that rank 2 is [S_q, S_k].
Dims mask_dims4(const Shape& mask);

/// q, k, v with heads split and the attention weights, in the accumulator dtype.
struct AttentionGraph {
  Expr q;              // [B, KV, G, S_q, D]
  Expr k, v;           // [B, KV, S_k, D]
  Expr tanh;           // tanh(s / softcap) [B, KV, G, S_q, S_k]; invalid without a softcap
  Expr probabilities;  // [B, KV, G, S_q, S_k]; zeros at hidden keys and so in fully masked rows
};
/// Appends the scores, mask and softmax; `mask` is used when the kind takes one.
AttentionGraph build_attention(Graph& g, const AttentionSpec& spec, Expr q, Expr k, Expr v, std::optional<Expr> mask);
/// probabilities v, [B, KV, G, S_q, D]. With a mask a key of weight 0 adds nothing even where v is NaN or infinite.
Expr weigh_values(Graph& g, const AttentionSpec& spec, const AttentionGraph& a);
/// With a mask: x where it is finite, else 0; x without one. For factors whose other side is 0 at what is hidden, and
/// NaN or 0 wherever x is not finite.
Expr behind_mask(const AttentionSpec& spec, Expr x);
/// x in op layout -> [B, heads / group, group, S, D] ([B, heads, S, D] when group is 0).
Expr split_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, std::int64_t group);
/// The inverse: [B, KV, G, S, D] or [B, KV, S, D] -> `dims` in op layout.
Expr merge_heads(Graph& g, const AttentionSpec& spec, Expr x, std::int64_t heads, const Dims& dims);

}  // namespace rlx
