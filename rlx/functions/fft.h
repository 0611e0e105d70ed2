// Fourier transforms as numpy.fft has them, short-time transforms as torch.stft, convolution and spectra.
//
// Values that are no floats are taken as F32, halves too; a transform of F32 is C64, of F64 C128. `n` cuts the axis to
// its first n elements or fills it with zeros; without it the axis stays as long as it is. Errors: InvalidArgument for
// a length below 1 or an axis that is out of range; a length beside a symbolic extent is Unsupported unless both are
// equal.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/fft.h"

namespace rlx::fft {

using Length = std::optional<Dim>;
/// Lengths of several axes, the last ones where `axes` is empty; no lengths: the axes as long as they are.
struct Axes {
  std::vector<std::int64_t> axes{};
  std::vector<Dim> lengths{};
};

/// y_k = sum_j x_j exp(-2 pi i j k / n) along `axis`; numpy.fft.fft.
Expr fft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// Its inverse; numpy.fft.ifft.
Expr ifft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The first n / 2 + 1 elements of the transform of real x: the others are their conjugates. numpy.fft.rfft.
Expr rfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The n reals, 2 (m - 1) without n, whose rfft is x [.., m]; numpy.fft.irfft.
Expr irfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The real transform of a signal that is its own conjugate mirrored, of which x is the first half; numpy.fft.hfft.
Expr hfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// Its inverse; numpy.fft.ihfft.
Expr ihfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);

/// Along several axes, all of them where none are named; numpy.fft.fftn, ifftn, rfftn, irfftn. The last axis named is
/// the one that rfftn halves.
Expr fftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr ifftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr rfftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr irfftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
/// The same along the last two axes.
Expr fft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr ifft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr rfft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr irfft2(Operand x, FftNorm norm = FftNorm::Backward);

/// The frequencies of the elements of fft of n samples `spacing` apart: [0, 1, .., -n/2, .., -1] / (spacing n). That at
/// n / 2 of an even n is negative, as numpy.fft.fftfreq has it. F32 or F64.
Tensor fftfreq(std::int64_t n, double spacing = 1, DType dtype = DType::F32);
/// The same of rfft: [0, 1, .., n / 2] / (spacing n).
Tensor rfftfreq(std::int64_t n, double spacing = 1, DType dtype = DType::F32);
/// x with the element of frequency 0 in the middle of each axis, all of them where none are named; numpy.fft.fftshift.
Expr fftshift(Operand x, std::vector<std::int64_t> axes = {});
/// And back; the two differ where an extent is odd.
Expr ifftshift(Operand x, std::vector<std::int64_t> axes = {});

// -- the documented helpers --

/// fft (ifft) along one axis.
Expr fft_axis(Operand x, std::int64_t axis, bool inverse = false);
/// fft (ifft) along the last axis with a norm.
Expr fft_norm(Operand x, FftNorm norm, bool inverse = false);
/// x with zeros behind the last axis up to a power of two.
Expr pad_last_axis_to_pow2(Operand x);
/// The real and the imaginary part of a spectrum.
std::pair<Expr, Expr> split_spectrum(Operand x);
/// ifft of a spectrum in two parts.
Expr ifft_spectrum(Operand re, Operand im);
/// The whole spectrum of reals [.., n] (rfft is half of it), and of a batch [B, n].
Expr fft_real(Operand x);
Expr fft_batch_real(Operand x);
/// Complex values [.., n] as reals [.., 2 n]: all real parts, then all imaginary parts; and back.
Expr to_real_blocks(Operand x);
Expr from_real_blocks(Operand x);
/// |fft(x)|^2 / n along the last axis; of reals the first n / 2 + 1 elements.
Expr psd(Operand x);
Expr psd_real(Operand x);
/// re^2 + im^2 of complex numbers, x^2 of others.
Expr complex_norm_sq(Operand x);

// -- convolution --

/// What of the a + b - 1 elements of a convolution of a and b elements stays: all, those around the middle as many as x
/// has, or those for which neither is padded.
enum class ConvolutionPart : std::uint8_t { Full, Same, Valid };
/// The linear convolution of x [.., a] and w [.., b] along the last axis, whose leading axes broadcast, by transforms
/// of a fast length; scipy.signal.fftconvolve.
Expr fft_conv1d(Operand x, Operand w, ConvolutionPart part = ConvolutionPart::Full);
/// The least length from n on without prime factors above 7, or 11 for complex transforms as good.
std::int64_t next_fast_len(std::int64_t n);

// -- windows: F64 tensors [n] --

/// 0.5 - 0.5 cos and 0.54 - 0.46 cos of 2 pi j / n, or / (n - 1) where symmetric.
Tensor hann_window(std::int64_t n, bool symmetric = false);
Tensor hamming_window(std::int64_t n, bool symmetric = false);
/// 0.42 - 0.5 cos + 0.08 cos of twice the angle.
Tensor blackman_window(std::int64_t n, bool symmetric = false);
/// I0(beta sqrt(1 - (2 j / n - 1)^2)) / I0(beta).
Tensor kaiser_window(std::int64_t n, double beta, bool symmetric = false);

}  // namespace rlx::fft
