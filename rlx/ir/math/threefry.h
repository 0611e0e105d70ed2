// Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

namespace rlx {
namespace {  // NOLINT(google-build-namespaces): a file compiled for another processor keeps its own copy

struct ThreefryWords {
  std::uint32_t high, low;
};
/// The rotations of the rounds in even and odd groups, and the constant of the third key word.
[[maybe_unused]] constexpr int kThreefryRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
[[maybe_unused]] constexpr std::uint32_t kThreefryParity = 0x1BD11BDAU;

/// The two words of a key and a counter.
[[maybe_unused]] constexpr ThreefryWords threefry2x32(std::uint32_t k0, std::uint32_t k1, std::uint32_t x0,
                                                      std::uint32_t x1) {
  const std::uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ kThreefryParity};
  x0 += keys[0];
  x1 += keys[1];
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (const int r : kThreefryRotations[group % 2]) {
      x0 += x1;
      x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}
/// `bits` random bits (8, 16, 32 or 64) of the 64-bit counter `at`.
[[maybe_unused]] constexpr std::uint64_t threefry_bits(std::uint32_t k0, std::uint32_t k1, std::uint64_t at, int bits) {
  const ThreefryWords w = threefry2x32(k0, k1, static_cast<std::uint32_t>(at >> 32), static_cast<std::uint32_t>(at));
  if (bits == 64) return std::uint64_t{w.high} << 32 | w.low;
  return (w.high ^ w.low) & (~std::uint64_t{0} >> (64 - bits));
}

}  // namespace
}  // namespace rlx
