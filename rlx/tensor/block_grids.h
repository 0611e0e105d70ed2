// Internal: the tables of GGUF's grid schemes. A quantized value is the index of a table row, which has 8 or 4 values.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// The rows of a grid, one after the other. Each row has `width` values.
struct BlockGrid {
  int rows = 0, width = 0;
  std::span<const std::int8_t> values;
};
/// The grid of a scheme with BlockValues::Grid. InvalidArgument for other schemes.
const BlockGrid& block_grid(QuantScheme scheme);

/// An unpacked block of a grid scheme. Element e is d * scale[e / group] * (v + delta). v is value e % width of row[e /
/// width], negated if bit e % 8 of sign[e / 8] is set. delta is that of e / 8.
struct GridBlock {
  float d = 0;
  std::array<float, 16> scale{};
  std::array<std::uint16_t, 64> row{};
  std::array<std::uint8_t, 32> sign{};
  std::array<float, 32> delta{};
};
GridBlock unpack_grid_block(const BlockLayout& l, const std::uint8_t* bytes);

/// The eight signs that seven bits stand for. The eighth makes the number of set bits even.
constexpr std::uint8_t even_signs(unsigned seven) {
  unsigned parity = seven ^ seven >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return static_cast<std::uint8_t>((seven & 127) | (parity & 1) << 7);
}

}  // namespace rlx
