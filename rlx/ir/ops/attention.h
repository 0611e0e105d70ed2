// Op structs of attention.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// softmax(mask(softcap(q k^T * scale))) v per head. Inputs: q, k, v [, mask]. kv_heads divides num_heads: each kv head
/// serves num_heads / kv_heads query heads. scale defaults to head_dim^-0.5; softcap c: c tanh(s / c).
/// Query i stands at key position i + (S_k - S_q); Causal: key j visible iff j <= i'; SlidingWindow: i' - window <= j
/// <= i'. Custom mask: Bool, or float visible iff >= 0.5; Bias: float, added to the scaled scores, -inf hides. Both are
/// broadcast to [B, H, S_q, S_k] from the right: rank 2 is [S_q, S_k], a mask of keys [B, 1, 1, S_k]. A fully masked
/// row gives zeros, and k and v of a hidden key may hold anything, NaN too.
struct Attention {
  RLX_OP(Attention);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
};
/// Cotangents of Attention. Inputs: q, k, v, dy [, mask]. Results: dq, dk, dv (and dmask for a Bias mask): zero at a
/// hidden key, whatever its k and v hold; a NaN of dy reaches dv of every key.
struct AttentionBackward {
  RLX_OP(AttentionBackward);
  std::int64_t num_heads = 1, kv_heads = 1, head_dim = 1;
  MaskKind mask = MaskKind::None;
  std::int64_t window = 0;
  std::optional<double> scale{}, softcap{};
  HeadLayout layout = HeadLayout::Merged;
};

}  // namespace ops
}  // namespace rlx
// clang-format on
