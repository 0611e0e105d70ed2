// The Gumbel noise for drawing tokens: -log(-log(u)), where u comes from the bits of a counter.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

namespace rlx {

/// Gumbel noise from random bits. u is in [tiny, 1) with as many bits as the fraction of T has, as in
/// jax.random.gumbel.
template <class T>
struct Gumbel {
  static constexpr bool kWide = std::is_same_v<T, double>;
  static constexpr int kBits = kWide ? 64 : 32, kFraction = kWide ? 52 : 23;

  static std::uint64_t whole(std::uint64_t bits) { return bits >> (kBits - kFraction); }
  static T noise(std::uint64_t bits) {
    constexpr T kStep = kWide ? T(0x1p-52) : T(0x1p-23);
    const T u = std::max(static_cast<T>(whole(bits)) * kStep, std::numeric_limits<T>::min());
    const T inner = static_cast<T>(std::log(static_cast<double>(u)));
    return -static_cast<T>(std::log(-static_cast<double>(inner)));
  }
  /// An upper bound of the noise: -log(u) >= 1 - u, which is a whole number of steps, and its logarithm is at least
  /// that of its highest bit.
  static T most(std::uint64_t bits) {
    const int highest = std::bit_width((std::uint64_t{1} << kFraction) - whole(bits)) - 1;
    return static_cast<T>(kFraction - highest) * std::numbers::ln2_v<T> + kSlack;
  }
  static constexpr T kSlack = T(1e-3);  // far above the rounding error of a sum that matters
  static constexpr T kMost = static_cast<T>(kFraction) * std::numbers::ln2_v<T> + kSlack;
};

}  // namespace rlx
