// Internal: unpacked blocks of quantized values, and the grid of numbers that they represent.
#pragma once

#include <array>
#include <cstdint>

#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// The contents of a block: its numbers, the small integers of its groups, and the quantized values without their
/// offset.
struct UnpackedBlock {
  float d = 0, m = 0;
  std::array<int, 16> scale{}, min{};
  std::array<int, 256> q{};
};
/// The numbers of a group: y = factor * (quantized value - offset) - shift.
struct QuantizedGrid {
  float factor, shift;
};
QuantizedGrid quantized_grid(const BlockLayout& l, const UnpackedBlock& b, int group);
/// The nearest quantized value on a grid. Computed in F32, so that the op `quantize` finds the same one.
int nearest_quantized(const BlockLayout& l, const QuantizedGrid& grid, float x);
/// The largest quantized value of a plain layout.
constexpr int largest_quantized(const BlockLayout& l) { return (1 << (l.low.width + l.high.width)) - 1; }
/// Writes a block of a plain layout.
void pack_block(const BlockLayout& l, const UnpackedBlock& b, std::uint8_t* bytes);

/// x, with NaN replaced by 0 and infinities by the largest F32 number.
float finite_number(float x);
/// The nearest F16 number, never infinity or negative zero.
float nearest_f16(float x);
/// The largest scale and min of a group.
constexpr int largest_scale(const BlockLayout& l) {
  return l.scales == GroupScales::Nibbles       ? 15
         : l.scales == GroupScales::SixBitPairs ? 63
         : l.scales == GroupScales::SixBits     ? 31
                                                : 127;
}

}  // namespace rlx
