// Fourier transforms. The functions follow numpy.fft; fft_conv1d follows SciPy.
//
// Floats other than F64, integers and Bool are computed in F32. A transform of F32 is C64, of F64 C128. `n` crops the
// axis to n elements or pads it with zeros at its end; without `n` the axis keeps its extent. Errors: InvalidArgument
// for a length below 1 or an axis out of range; Unsupported for a length of an axis with a symbolic extent, unless both
// are equal.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/fft.h"

namespace rlx::fft {

using Length = std::optional<Dim>;
/// Axes of a transform over several axes, and their lengths. Empty `axes` are the last axes, one per length. Empty
/// `lengths` keep the extents.
struct Axes {
  std::vector<std::int64_t> axes{};
  std::vector<Dim> lengths{};
};

/// The discrete Fourier transform y_k = sum_j x_j exp(-2 pi i j k / n) along `axis`; numpy.fft.fft.
Expr fft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The inverse of fft; numpy.fft.ifft.
Expr ifft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The transform of a real x: its first n / 2 + 1 elements, which determine the others by conjugation; numpy.fft.rfft.
/// DTypeMismatch for a complex x.
Expr rfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The inverse of rfft: n real numbers; n defaults to 2 (m - 1) for x [.., m]; numpy.fft.irfft.
Expr irfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The real transform of a Hermitian-symmetric signal of n elements, of which x holds the first half; numpy.fft.hfft.
Expr hfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);
/// The inverse of hfft; numpy.fft.ihfft.
Expr ihfft(Operand x, Length n = {}, std::int64_t axis = -1, FftNorm norm = FftNorm::Backward);

/// Transforms over several axes, all axes by default; numpy.fft.fftn, ifftn, rfftn, irfftn. rfftn halves the last of
/// the axes.
Expr fftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr ifftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr rfftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
Expr irfftn(Operand x, const Axes& axes = {}, FftNorm norm = FftNorm::Backward);
/// Transforms over the last two axes; numpy.fft.fft2, ifft2, rfft2, irfft2.
Expr fft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr ifft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr rfft2(Operand x, FftNorm norm = FftNorm::Backward);
Expr irfft2(Operand x, FftNorm norm = FftNorm::Backward);

/// The frequencies of the elements of fft for n samples at distance `spacing`: [0, 1, .., -n/2, .., -1] / (spacing n).
/// Element n / 2 of an even n is negative; numpy.fft.fftfreq. dtype is a float.
Tensor fftfreq(std::int64_t n, double spacing = 1, DType dtype = DType::F32);
/// The frequencies of the elements of rfft: [0, 1, .., n / 2] / (spacing n); numpy.fft.rfftfreq. dtype is a float.
Tensor rfftfreq(std::int64_t n, double spacing = 1, DType dtype = DType::F32);
/// x rotated so that the element of frequency 0 is in the middle of each of `axes`, all axes by default;
/// numpy.fft.fftshift.
Expr fftshift(Operand x, std::vector<std::int64_t> axes = {});
/// The inverse of fftshift; the two differ for odd extents.
Expr ifftshift(Operand x, std::vector<std::int64_t> axes = {});

// -- helpers under their documented names --

/// fft, or ifft with `inverse`, along one axis.
Expr fft_axis(Operand x, std::int64_t axis, bool inverse = false);
/// fft, or ifft with `inverse`, along the last axis with a norm.
Expr fft_norm(Operand x, FftNorm norm, bool inverse = false);
/// x padded with zeros at the end of its last axis, to a power of two. Unsupported for a symbolic extent.
Expr pad_last_axis_to_pow2(Operand x);
/// {real part, imaginary part} of a complex spectrum.
std::pair<Expr, Expr> split_spectrum(Operand x);
/// ifft of a spectrum that is given as real and imaginary part.
Expr ifft_spectrum(Operand re, Operand im);
/// The full spectrum of real x [.., n]; rfft gives half of it. fft_batch_real takes a batch [B, n] only. DTypeMismatch
/// for a complex x.
Expr fft_real(Operand x);
Expr fft_batch_real(Operand x);
/// Complex values [.., n] as reals [.., 2 n], all real parts before all imaginary parts. from_real_blocks is the
/// inverse.
Expr to_real_blocks(Operand x);
Expr from_real_blocks(Operand x);
/// The power spectrum |fft(x)|^2 / n along the last axis. psd_real takes a real x and gives its first n / 2 + 1
/// elements.
Expr psd(Operand x);
Expr psd_real(Operand x);
/// |x|^2: re^2 + im^2 of a complex x, x^2 otherwise.
Expr complex_norm_sq(Operand x);

// -- convolution --

/// The part of the a + b - 1 elements of a convolution of lengths a and b that is kept. Full: all. Same: the middle a
/// elements, as many as x has. Valid: the elements that use no zero padding.
enum class ConvolutionPart : std::uint8_t { Full, Same, Valid };
/// The linear convolution of x [.., a] and w [.., b] along the last axis, by transforms of a fast length; leading axes
/// broadcast. scipy.signal.fftconvolve.
Expr fft_conv1d(Operand x, Operand w, ConvolutionPart part = ConvolutionPart::Full);
/// The smallest fast transform length >= n, a product of 2, 3, 5 and 7. InvalidArgument for n < 1, and where no such
/// length fits in 64 bits.
std::int64_t next_fast_len(std::int64_t n);

// -- windows: F64 tensors [n]; InvalidArgument for n < 1 --

/// hann_window is 0.5 - 0.5 cos(t), hamming_window is 0.54 - 0.46 cos(t), with t = 2 pi j / n, or 2 pi j / (n - 1) with
/// `symmetric`.
Tensor hann_window(std::int64_t n, bool symmetric = false);
Tensor hamming_window(std::int64_t n, bool symmetric = false);
/// 0.42 - 0.5 cos(t) + 0.08 cos(2 t), with t as in hann_window.
Tensor blackman_window(std::int64_t n, bool symmetric = false);
/// I0(beta sqrt(1 - (2 j / n - 1)^2)) / I0(beta), with n - 1 for n if `symmetric`; I0 is the modified Bessel function.
/// InvalidArgument for beta outside [0, 700].
Tensor kaiser_window(std::int64_t n, double beta, bool symmetric = false);

}  // namespace rlx::fft
