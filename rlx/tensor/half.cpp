// Conversions of the small float formats.
#include "rlx/tensor/half.h"

#include <cmath>
#include <limits>

namespace rlx {
namespace {
// Rounds |x| to a format with `mantissa` bits and exponent bias `bias`. Returns the exponent and mantissa bits without
// the sign. The caller handles NaN, infinity and overflow. One routine serves every narrow format, because ldexp and
// nearbyint are exact.
std::uint32_t round_magnitude(float magnitude, int mantissa, int bias) {
  if (magnitude == 0.0f) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  int e = exponent - 1;
  int min_e = 1 - bias;
  if (e < min_e) e = min_e;  // subnormals share the smallest exponent
  double scaled = std::ldexp(static_cast<double>(magnitude), mantissa - e);
  auto q = static_cast<std::uint32_t>(std::nearbyint(scaled));
  // q is in [2^mantissa, 2^(mantissa+1)] for normals. A carry moves into the exponent by plain addition.
  return (static_cast<std::uint32_t>(e - min_e) << mantissa) + q;
}
}  // namespace

std::uint16_t float_to_f16_bits(float x) {
  std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  float magnitude = std::fabs(x);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  return static_cast<std::uint16_t>(sign | round_magnitude(magnitude, 10, 15));
}

float f16_bits_to_float(std::uint16_t h) {
  std::uint32_t sign = (h & 0x8000u) << 16;
  std::uint32_t exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint8_t float_to_f8e4m3_bits(float x, bool saturate) {
  auto sign = static_cast<std::uint8_t>(std::signbit(x) ? 0x80 : 0);
  if (std::isnan(x)) return static_cast<std::uint8_t>(sign | 0x7f);
  std::uint32_t bits = std::isinf(x) ? 0x7fu : round_magnitude(std::fabs(x), 3, 7);
  if (bits >= 0x7f) bits = saturate ? 0x7e : 0x7f;
  return static_cast<std::uint8_t>(sign | bits);
}

float f8e4m3_bits_to_float(std::uint8_t v) {
  int exponent = (v >> 3) & 15, mantissa = v & 7;
  float value = exponent == 15 && mantissa == 7 ? std::numeric_limits<float>::quiet_NaN()
                : exponent == 0                 ? std::ldexp(static_cast<float>(mantissa), -9)
                                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return v & 0x80 ? -value : value;
}

std::uint8_t float_to_f8e5m2_bits(float x, bool saturate) {
  auto sign = static_cast<std::uint8_t>(std::signbit(x) ? 0x80 : 0);
  if (std::isnan(x)) return static_cast<std::uint8_t>(sign | 0x7f);
  std::uint32_t bits = std::isinf(x) ? 0x7cu : round_magnitude(std::fabs(x), 2, 15);
  if (bits >= 0x7c) bits = saturate ? 0x7b : 0x7c;
  return static_cast<std::uint8_t>(sign | bits);
}

float f8e5m2_bits_to_float(std::uint8_t v) { return f16_bits_to_float(static_cast<std::uint16_t>(v << 8)); }

std::uint8_t float_to_f4e2m1_bits(float x) {
  if (std::isnan(x)) return 0;
  auto sign = static_cast<std::uint8_t>(std::signbit(x) ? 8 : 0);
  std::uint32_t bits = std::isinf(x) ? 7u : round_magnitude(std::fabs(x), 1, 1);
  return static_cast<std::uint8_t>(sign | (bits > 7 ? 7 : bits));
}

float f4e2m1_bits_to_float(std::uint8_t v) {
  constexpr float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return v & 8 ? -values[v & 7] : values[v & 7];
}

}  // namespace rlx
