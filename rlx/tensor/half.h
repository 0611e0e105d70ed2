// Small floats: bf16, f16 and the OCP fp8 / fp4 formats, converted with round-to-nearest-even.
#pragma once

#include <bit>
#include <cstdint>

namespace rlx {

/// Nearest bf16 of x, ties to even; NaN stays a (quiet) NaN.
inline std::uint16_t float_to_bf16_bits(float x) {
  std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float bf16_bits_to_float(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }

/// Nearest IEEE binary16 of x, ties to even; overflow gives infinity.
std::uint16_t float_to_f16_bits(float x);
float f16_bits_to_float(std::uint16_t h);

/// OCP FP8 E4M3 (bias 7, no infinity, 0x7f is NaN); values above 448 saturate when `saturate`, else become NaN.
std::uint8_t float_to_f8e4m3_bits(float x, bool saturate = true);
float f8e4m3_bits_to_float(std::uint8_t v);
/// OCP FP8 E5M2 (bias 15, IEEE-like with infinity); values above 57344 saturate when `saturate`, else become infinity.
std::uint8_t float_to_f8e5m2_bits(float x, bool saturate = true);
float f8e5m2_bits_to_float(std::uint8_t v);
/// OCP FP4 E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and negatives in the low four bits; always saturates, NaN becomes 0.
std::uint8_t float_to_f4e2m1_bits(float x);
float f4e2m1_bits_to_float(std::uint8_t v);

/// Storage of one bf16 number; arithmetic happens in float.
struct BF16 {
  std::uint16_t bits = 0;
  BF16() = default;
  BF16(float x) : bits(float_to_bf16_bits(x)) {}  // NOLINT(implicit)
  operator float() const { return bf16_bits_to_float(bits); }
};
/// Storage of one binary16 number; arithmetic happens in float.
struct F16 {
  std::uint16_t bits = 0;
  F16() = default;
  F16(float x) : bits(float_to_f16_bits(x)) {}  // NOLINT(implicit)
  operator float() const { return f16_bits_to_float(bits); }
};

}  // namespace rlx
