// Op structs of Fourier transforms.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dim.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

/// What a transform takes and gives.
enum class FftKind : std::uint8_t {
  Complex,      // complex -> complex of the same shape
  Real,         // real -> the half of the complex spectrum that is not the mirror image of the other
  RealInverse,  // that half -> real
};
template <>
struct EnumNames<FftKind> {
  static constexpr std::string_view values[] = {"c2c", "r2c", "c2r"};
};

/// How a transform of n points in all is scaled, after NumPy: Backward 1 forward and 1/n inverse, Ortho 1/sqrt(n) both,
/// Forward 1/n forward and 1 inverse, None 1 both.
enum class FftNorm : std::uint8_t { Backward, Ortho, Forward, None };
template <>
struct EnumNames<FftNorm> {
  static constexpr std::string_view values[] = {"backward", "ortho", "forward", "none"};
};

namespace ops {

/// The discrete Fourier transform along `axes`, each of any length from 1 on:
/// y_k = scale * sum_j x_j exp(-2 pi i j k / n), with + where it is inverse.
/// c2c: x C64 or C128, any axes, `inverse` as given.
/// r2c: x F32 or F64 -> C64 or C128; forward; the last of `axes` has n / 2 + 1 elements in the result.
/// c2r: x C64 or C128 -> F32 or F64; inverse; the last of `axes` has n / 2 + 1 elements in x and n, the one entry of
/// `length`, in the result. Imaginary parts that a real result leaves no room for (at 0, and at n / 2 of an even n) are
/// taken as 0.
/// Numbers: numpy.fft's, torch.fft's and jax.numpy.fft's of the same name. A NaN or an infinity leaves its line NaN or
/// infinite.
struct Fft {
  RLX_OP(Fft);
  FftKind fn = FftKind::Complex;
  std::vector<std::int64_t> axes{};
  bool inverse = false;
  FftNorm norm = FftNorm::Backward;
  Dims length{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
