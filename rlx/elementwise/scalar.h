// The formulas over single doubles: the reference rules. Every function is inlined where it is called, so a file that
// is compiled for another processor, or with other rules for rounding, provides no code to other files.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#if defined(RLX_INLINE)
#error "include scalar.h outside of kernels"
#endif
#define RLX_INLINE inline __attribute__((always_inline))
#define RLX_UNROLL(n)
#define RLX_LANE_SPACE rlx::elementwise::scalar

namespace rlx::elementwise::scalar {

template <class V>
struct Lane;
template <>
struct Lane<double> {
  using Scalar = double;
  static constexpr bool kFused = false, kWider = false, kExact = true, kNative = false, kSplitHasLimits = false;
  static constexpr int kLookup = 0;
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
};
template <class V>
using ScalarOf = typename Lane<V>::Scalar;

template <class V>
RLX_INLINE V set(ScalarOf<V> x) {
  return x;
}
RLX_INLINE double fma(double a, double b, double c) { return a * b + c; }
RLX_INLINE bool both(bool a, bool b) { return a && b; }
RLX_INLINE bool either(bool a, bool b) { return a || b; }
RLX_INLINE bool any(bool mask) { return mask; }
RLX_INLINE bool is_nan(double x) { return x != x; }
RLX_INLINE double select(bool mask, double a, double b) { return mask ? a : b; }
RLX_INLINE double abs(double x) { return std::fabs(x); }
RLX_INLINE double neg(double x) { return -x; }
RLX_INLINE double copysign(double a, double b) { return std::copysign(a, b); }
RLX_INLINE double min(double a, double b) { return a < b ? a : b; }
RLX_INLINE double max(double a, double b) { return a > b ? a : b; }
RLX_INLINE double sqrt(double x) { return std::sqrt(x); }
/// 0 nearest even, 1 down, 2 up, 3 toward zero.
template <int kMode>
RLX_INLINE double round_to(double x) {
  if constexpr (kMode == 0) return std::nearbyint(x);
  if constexpr (kMode == 1) return std::floor(x);
  if constexpr (kMode == 2) return std::ceil(x);
  return std::trunc(x);
}
/// Prevents the compiler from fusing the multiplication that made x with a later addition.
RLX_INLINE double rounded(double x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}
RLX_INLINE double inverse(double x) { return 1 / x; }
/// p 2^n for integral n in about [-2200, 2100], with one rounding into the denormals.
RLX_INLINE double scale(double p, double n) {
  if (!(n == n)) return n;
  const auto k = static_cast<std::int64_t>(n), half = k >> 1;
  return p * std::bit_cast<double>((half + 1023) << 52) * std::bit_cast<double>((k - half + 1023) << 52);
}
/// x > 0 as m 2^n with m in [sqrt(1/2), sqrt(2)); other x as some numbers.
template <class V>
struct Split {
  V m, n;
};
template <int kBits>
RLX_INLINE double without_low_bits(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & (~std::uint64_t{0} << kBits));
}
template <class V>
struct Two {
  V first, second;
};
RLX_INLINE Split<double> split(double x) {
  const bool tiny = x < std::numeric_limits<double>::min();
  const auto bits = std::bit_cast<std::uint64_t>(tiny ? x * 0x1p54 : x);
  const std::uint64_t biased = (bits - 0x3fe6a09e667f3bcdULL + (1023ULL << 52)) >> 52;
  return {std::bit_cast<double>(bits - ((biased - 1023) << 52)),
          static_cast<double>(static_cast<std::int64_t>(biased) - 1023 - (tiny ? 54 : 0))};
}

}  // namespace rlx::elementwise::scalar

#include "rlx/elementwise/formulas.inc"

#undef RLX_INLINE
#undef RLX_UNROLL
#undef RLX_LANE_SPACE
