// The op struct of rotary position embedding.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// Rotary position embedding (RoPE): the first n_rot elements of each head are rotated in pairs by (cos, sin), and the
/// others are copied. Inputs: x in `layout`, cos, sin, [positions I32 [S] or [B, S]]. cos and sin are tables [R, T] or
/// [B, R, T] with T >= n_rot / 2. Element s of a sequence uses row s (then R >= S), or row positions[s], clamped to the
/// table. `inverse` rotates back, which is the transposed map.
struct Rope {
  RLX_OP(Rope);
  std::int64_t head_dim = 2, n_rot = 2;
  RopePairing pairing = RopePairing::Half;
  HeadLayout layout = HeadLayout::Merged;
  bool inverse = false;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
