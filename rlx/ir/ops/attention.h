// Op structs of attention.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/block_schemes.h"

// clang-format off
namespace rlx {

namespace ops {

/// Scaled dot-product attention of each head: softmax(mask(softcap(q k^T * scale))) v. Inputs: q, k, v, [mask], [kv_len
/// I32 [B]], [q_len I32 [B]], [sinks [H] or [B, H]]. k and v share a float dtype, which may differ from q's. Results: y
/// in q's dtype, with v_head_dim elements per head; lse [B, H, S_q], the logsumexp of the scores, in the accumulator
/// dtype of q.
/// kv_heads divides num_heads: each kv head serves num_heads / kv_heads query heads. In C++ braces it defaults to
/// num_heads. scale defaults to head_dim^-0.5, v_head_dim to head_dim. softcap c replaces a score s by c tanh(s / c).
/// kv_len defaults to S_k and q_len to S_q; values are clamped to [0, S_k] and [0, S_q]. Keys from kv_len on are not
/// read. Query rows from q_len on give zeros and lse -inf. Query i of batch element b has position i' = kv_len[b] -
/// q_len[b] + i. Causal: key j is visible if j <= i'. SlidingWindow: key j is visible if i' - window <= j <= i'.
/// Custom: the mask is Bool, or float with a key visible where it is >= 0.5. Bias: the float mask is added to the
/// scaled scores, and -inf hides a key. Custom and Bias masks broadcast to [B, H, S_q, S_k] from the right: rank 2 is
/// [S_q, S_k], a key mask is [B, 1, 1, S_k]. A sink is one more score of each row, without a value. A fully masked row
/// gives zeros, and lse is -inf or the sink. k and v of a hidden key do not affect the results, even where they are
/// NaN.
struct Attention {
  RLX_OP(Attention);
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
  std::optional<std::int64_t> v_head_dim{};
  OperandMask present{};  // which of kv_len, q_len and sinks are given; `mask` None: no mask
};
/// Attention of the tokens of B requests over a paged KV cache. Inputs: q [T, H, D], k_pool [P, page, KV, D], v_pool
/// [P, page, KV, v_head_dim], block_table I32 [B, M], kv_len I32 [B], q_start I32 [B + 1], [mask [T, W]], [sinks [H]].
/// Results: y [T, H, v_head_dim], lse [T, H].
/// Request b has the tokens [q_start[b], q_start[b + 1]). Its key j is row j % page of page block_table[b, j / page];
/// page numbers are clamped to the pool. Its token i has position kv_len[b] - q_len + i, as in Attention. Keys from
/// kv_len on are not read. Tokens of no request, such as those from q_start[B] on, give zeros and lse -inf.
/// The mask covers the new tokens of a request alone (draft trees): column w is the new token w of the request. Older
/// keys are visible, and new keys from W on are hidden.
/// With a block scheme the pools are U8 [P, page, KV, row bytes], and each row of a head holds the blocks of its
/// numbers (see ops::Quantize). `round_q` is for Q8_0 pools alone: it allows a device to round q * scale to 8 bits in
/// blocks of 32 for the matmul with the keys. A row of q with a non-finite element then gives NaN.
struct PagedAttention {
  RLX_OP(PagedAttention);
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  std::optional<std::int64_t> v_head_dim{};
  QuantScheme pool_scheme = QuantScheme::Affine;  // Affine: the pools hold unquantized numbers
  bool round_q = false;                           // the scores of Q8_0 keys may use q rounded to 8 bits
  OperandMask present{};                          // whether sinks are given; `mask` None: no mask
};
/// Cotangents of Attention. Inputs: q, k, v, dy, [mask], [kv_len], [q_len], [sinks], [dlse]. Results: dq, dk, dv, then
/// dmask for a Bias mask, then dsinks if there are sinks. dk and dv of a hidden key are zero, whatever k and v hold
/// there; but a NaN in dy reaches dv of every key below kv_len.
struct AttentionBackward {
  RLX_OP(AttentionBackward);
  std::int64_t num_heads = 1, kv_heads = num_heads, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
  std::optional<std::int64_t> v_head_dim{};
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
