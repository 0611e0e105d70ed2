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

/// The operand and result of a transform.
enum class FftKind : std::uint8_t {
  Complex,      // complex -> complex of the same shape
  Real,         // real -> the non-redundant half of the complex spectrum, n / 2 + 1 elements
  RealInverse,  // that half -> real
};
template <>
struct EnumNames<FftKind> {
  static constexpr std::string_view values[] = {"c2c", "r2c", "c2r"};
};

/// The scale of a transform over n points in all, as numpy.fft's `norm`. Backward: 1 forward, 1 / n inverse. Ortho: 1 /
/// sqrt(n) both ways. Forward: 1 / n forward, 1 inverse. None: 1 both ways.
enum class FftNorm : std::uint8_t { Backward, Ortho, Forward, None };
template <>
struct EnumNames<FftNorm> {
  static constexpr std::string_view values[] = {"backward", "ortho", "forward", "none"};
};

namespace ops {

/// The discrete Fourier transform along `axes`, each of any length from 1 on: y_k = scale * sum_j x_j exp(-2 pi i j k /
/// n), with a positive exponent for the inverse.
/// c2c: x C64 or C128 -> the same dtype; `inverse` selects the direction.
/// r2c: x F32 or F64 -> C64 or C128, forward. The last of `axes` has n / 2 + 1 elements in the result.
/// c2r: x C64 or C128 -> F32 or F64, inverse. The last of `axes` has n / 2 + 1 elements in x and n in the result; n is
/// the one entry of `length`. The imaginary parts of element 0, and of element n / 2 for an even n, are ignored,
/// because the result is real.
/// The numbers are those of numpy.fft, torch.fft and jax.numpy.fft. A transformed vector that holds a NaN or an
/// infinity has a result that is not finite.
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
