// Random bytes of quantized blocks for tests, for every scheme. The blocks' scales are finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/tensor/block_schemes.h"

namespace rlx::test {

/// A byte of a linear congruential generator, the same as in tests/parity/gguf_blocks.py.
inline std::byte next_byte(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<std::byte>(state >> 24);
}

/// Fills whole blocks of `scheme` with random bytes. Scales are 0.1 or close to it.
inline void fill_blocks(QuantScheme scheme, std::span<std::byte> bytes, std::uint32_t seed) {
  const BlockLayout& l = block_layout(scheme);
  for (std::byte& b : bytes) b = next_byte(seed);
  const auto put = [&](std::size_t at, unsigned bits) {
    bytes[at] = static_cast<std::byte>(bits & 255);
    bytes[at + 1] = static_cast<std::byte>(bits >> 8);
  };
  constexpr unsigned kTenth = 0x2e66, kTenthF32 = 0x3dcd;
  for (std::size_t block = 0; block < bytes.size(); block += static_cast<std::size_t>(l.bytes)) {
    const std::size_t d = block + static_cast<std::size_t>(l.d_at < 0 ? 0 : l.d_at);
    if (l.unit == BlockUnit::F32) {
      put(d + 2, kTenthF32);
    } else if (l.unit == BlockUnit::HalfE8M0) {
      bytes[d] = std::byte{125};
    } else if (l.d_at >= 0) {
      put(d, kTenth);
    } else if (l.codes == BlockValues::Grid) {  // the scale is in the upper four bits of four words
      for (std::size_t k = 0; k < 4; ++k)
        bytes[block + 49 + 2 * k] =
            (bytes[block + 49 + 2 * k] & std::byte{15}) | static_cast<std::byte>((kTenth >> 4 * k & 15) << 4);
    }
    if (l.m_at >= 0) put(block + static_cast<std::size_t>(l.m_at), kTenth);
  }
}

}  // namespace rlx::test
