// The op struct of rotary position.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

/// Which elements rope rotates together: (i, i + n_rot/2), or (2i, 2i + 1).
enum class RopePairing : std::uint8_t { Half, Interleaved };
template <> struct EnumNames<RopePairing> { static constexpr std::string_view values[] = {"half", "interleaved"}; };

namespace ops {

/// Rotary position: the first n_rot elements of each head are rotated pairwise by (cos, sin), the rest copied. Inputs:
/// x in `layout`, cos, sin, [positions I32 [S] or [B, S]]. cos, sin: [R, T] or [B, R, T] with T >= n_rot / 2. Element s
/// of a sequence takes row s (R >= S), or row positions[s], clamped. `inverse` rotates back (the transpose).
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
