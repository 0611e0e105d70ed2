// Internal: blocks of codes unpacked, and the grid that their numbers span.
#pragma once

#include <array>
#include <cstdint>

#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// What a block says: its numbers, the small integers of groups, the codes without their offset.
struct UnpackedBlock {
  float d = 0, m = 0;
  std::array<int, 16> scale{}, min{};
  std::array<int, 256> q{};
};
/// A group's numbers: y = factor * (code - offset) - shift.
struct CodeGrid {
  float factor, shift;
};
CodeGrid code_grid(const BlockLayout& l, const UnpackedBlock& b, int group);
/// The nearest code on a grid. In F32, so that the op `quantize` finds the same one.
int nearest_code(const BlockLayout& l, const CodeGrid& grid, float x);
/// The largest code of a plain layout.
constexpr int largest_code(const BlockLayout& l) { return (1 << (l.low.width + l.high.width)) - 1; }
/// Writes a block of a plain layout.
void pack_block(const BlockLayout& l, const UnpackedBlock& b, std::uint8_t* bytes);

/// x without NaN (0) and infinities (the largest F32 number).
float finite_number(float x);
/// The nearest F16 number, no infinity and no negative zero.
float nearest_f16(float x);
/// The largest scale and min of a group.
constexpr int largest_scale(const BlockLayout& l) {
  return l.scales == GroupScales::Nibbles       ? 15
         : l.scales == GroupScales::SixBitPairs ? 63
         : l.scales == GroupScales::SixBits     ? 31
                                                : 127;
}

}  // namespace rlx
