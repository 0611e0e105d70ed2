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

/// softmax(mask(softcap(q k^T * scale))) v per head. Inputs: q, k, v, [mask], [kv_len I32 [B]], [q_len I32 [B]],
/// [sinks [H] or [B, H]]. Results: y, of q's dtype with v_head_dim elements a head, and lse [B, H, S_q], the log of the
/// sum of exp(scores) in the dtype that q accumulates in. kv_heads divides num_heads: each kv head serves num_heads /
/// kv_heads query heads. scale defaults to head_dim^-0.5; softcap c: c tanh(s / c). v_head_dim: head_dim unless said.
/// k and v share a float dtype, which need not be q's.
/// Lengths, of S_k and S_q where absent, are clamped to them: keys from kv_len on are not read; rows from q_len on are
/// zeros with lse -inf. Query i of b stands at position i' = kv_len[b] - q_len[b] + i; Causal: key j visible iff j <=
/// i'; SlidingWindow: i' - window <= j <= i'. Custom mask: Bool, or float visible iff >= 0.5; Bias: float, added to the
/// scaled scores, -inf hides. Both are broadcast to [B, H, S_q, S_k] from the right: rank 2 is [S_q, S_k], a mask of
/// keys [B, 1, 1, S_k]. A sink is one more score of each row, with no value. A fully masked row gives zeros (and lse
/// -inf, or the sink), and k and v of a hidden key may hold anything, NaN too.
struct Attention {
  RLX_OP(Attention);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
  std::optional<std::int64_t> v_head_dim{};
  OperandMask present{};  // of kv_len, q_len, sinks; `mask` tells of the mask
};
/// Attention of the tokens of B requests over caches in pages. Inputs: q [T, H, D], k_pool [P, page, KV, D], v_pool
/// [P, page, KV, v_head_dim], block_table I32 [B, M], kv_len I32 [B], q_start I32 [B + 1], [mask [T, W]], [sinks [H]].
/// Results: y [T, H, v_head_dim], lse [T, H]. Request b has the tokens [q_start[b], q_start[b + 1]), its key j lies in
/// page block_table[b, j / page] (clamped to the pool) at j % page, and its token i stands at position kv_len[b] -
/// q_len + i, as in Attention; keys from kv_len on are not read. Tokens of no request, those from q_start[B] on among
/// them, are zeros with lse -inf. A mask covers a request's own new tokens, whose column is their place in the request;
/// older keys are visible and new ones from W on hidden: draft trees. With a block scheme for the pools these are U8
/// [P, page, KV, row bytes], each row of a head the blocks of its numbers (see ops::Quantize). Leave to `round_q`, with
/// pools of Q8_0 alone: a device may round q, times the scale, to 8 bits in blocks of 32 for the products with keys; a
/// row of q with an element that is not finite is then NaN.
struct PagedAttention {
  RLX_OP(PagedAttention);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  std::optional<std::int64_t> v_head_dim{};
  QuantScheme pool_scheme = QuantScheme::Affine;  // Affine: the pools hold numbers
  bool round_q = false;                           // scores with keys of q8_0 may round q as those are
  OperandMask present{};                          // of sinks; `mask` tells of the mask
};
/// Cotangents of Attention. Inputs: q, k, v, dy, [mask], [kv_len], [q_len], [sinks], [dlse]. Results: dq, dk, dv, then
/// dmask for a Bias mask, then dsinks where there are sinks: zero at a hidden key, whatever its k and v hold; a NaN of
/// dy reaches dv of every key below kv_len.
struct AttentionBackward {
  RLX_OP(AttentionBackward);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
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
