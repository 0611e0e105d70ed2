// Misuse of signal functions and of the builder functions for complex values.
#include "rlx/functions/fft.h"
#include "rlx/functions/stft.h"
#include "rlx/ir/ops/elementwise.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

TEST_CASE("misuse: complex values and Fourier transforms") {
  Graph g;
  const Expr x = g.input("x", Shape({2, 6}, DType::F32)), z = g.input("z", Shape({2, 6}, DType::C64)),
             none = g.input("none", Shape({2, 0}, DType::C64)), code = g.input("code", Shape({4}, DType::F8E4M3));
  REFUSED("parts must be real", g.complex(z, x));
  REFUSED("do not broadcast", g.complex(x, g.input("y", Shape({5}, DType::F32))));
  REFUSED("needs a complex operand", g.add(ops::ComplexPart{}, {x}));
  REFUSED("needs f32 or f64 parts", g.add(ops::Complex{}, {z, z}));
  REFUSED("axis", g.fft(z, ops::Fft{FftKind::Complex, {2}}));
  REFUSED("c2c needs complex values", g.fft(x, ops::Fft{FftKind::Complex, {0}}));
  REFUSED("r2c needs f32 or f64", g.fft(z, ops::Fft{FftKind::Real, {0}}));
  REFUSED("needs at least one axis", g.fft(x, ops::Fft{FftKind::Real, {}}));
  REFUSED("r2c has no inverse", g.fft(x, ops::Fft{FftKind::Real, {0}, true}));
  REFUSED("c2r is an inverse transform", g.fft(z, ops::Fft{FftKind::RealInverse, {0}, false}));
  REFUSED("one entry of length", g.fft(z, ops::Fft{FftKind::RealInverse, {0}, true}));
  REFUSED("of length 9 needs 5 elements",
          g.fft(z, ops::Fft{FftKind::RealInverse, {1}, true, FftNorm::Backward, {Dim(9)}}));
  REFUSED("must be at least 1", g.fft(z, ops::Fft{FftKind::RealInverse, {1}, true, FftNorm::Backward, {Dim(0)}}));
  REFUSED("length is only for c2r", g.fft(z, ops::Fft{FftKind::Complex, {1}, true, FftNorm::Backward, {Dim(6)}}));
  REFUSED("has no points along axis 1", g.fft(none, ops::Fft{FftKind::Complex, {1}}));
  REFUSED("'norm' is out of range", g.fft(z, ops::Fft{FftKind::Complex, {1}, false, static_cast<FftNorm>(9)}));
  REFUSED("'kind' is out of range", g.fft(z, ops::Fft{static_cast<FftKind>(9), {1}}));
  REFUSED("x is a number, which has no axis", fft::fft(2.0));
  REFUSED("storage dtype", fft::fft(code));
  REFUSED("the length must be at least 1, got 0", fft::ifft(x, Dim(0)));
  REFUSED("axis", fft::ifft(x, {}, 2));
  REFUSED("is complex", fft::rfft(z));
  REFUSED("give the length n", fft::irfft(g.input("one", Shape({1}, DType::C64))));
  REFUSED("give the length n", fft::hfft(g.input("first", Shape({1}, DType::C64))));
  REFUSED("is complex", fft::ihfft(z));
  REFUSED("3 lengths for 2 axes", fft::fftn(x, {{0, 1}, {2, 3, 4}}));
  REFUSED("named twice", fft::ifftn(x, {{0, -2}, {}}));
  REFUSED("is complex", fft::rfftn(z));
  REFUSED("has no axis to transform", fft::rfftn(g.input("scalar", Shape({}, DType::F32))));
  REFUSED("3 lengths for x", fft::irfftn(z, {{}, {2, 3, 4}}));
  const Expr v = g.input("v", Shape({3}, DType::F32)), s = g.input("s", Shape({g.symbol("n")}, DType::F32));
  REFUSED("axis", fft::fft2(v));
  REFUSED("axis", fft::ifft2(v));
  REFUSED("axis", fft::rfft2(v));
  REFUSED("axis", fft::irfft2(v));
  REFUSED("of an axis of n elements", fft::fft(s, Dim(4)));
  REFUSED("n must be at least 1", fft::fftfreq(0));
  REFUSED("n must be at least 1", fft::rfftfreq(-1));
  REFUSED("the spacing of samples must be finite", fft::fftfreq(4, 0));
  REFUSED("frequencies must be floats", fft::rfftfreq(4, 1, DType::I32));
  REFUSED("axis", fft::fftshift(x, {2}));
  REFUSED("axis", fft::ifftshift(x, {-3}));
  REFUSED("axis", fft::fft_axis(x, 5));
  REFUSED("x is a number, which has no axis", fft::fft_norm(1.0, FftNorm::Ortho));
  REFUSED("symbolic", fft::pad_last_axis_to_pow2(s));
  REFUSED("a scalar has no last axis", fft::split_spectrum(1.0));
  REFUSED("parts must be real", fft::ifft_spectrum(z, z));
  REFUSED("is complex", fft::fft_real(z));
  REFUSED("a batch of signals", fft::fft_batch_real(v));
  REFUSED("a scalar has no last axis", fft::to_real_blocks(1.0));
  REFUSED("must be real [.., 2 n]", fft::from_real_blocks(v));
  REFUSED("a scalar has no last axis", fft::psd(1.0));
  REFUSED("is complex", fft::psd_real(z));
  REFUSED("x must be a value of a graph", fft::complex_norm_sq(1.0));
  REFUSED("is symbolic", fft::fft_conv1d(s, v));
  REFUSED("n must be at least 1", fft::next_fast_len(0));
  REFUSED("must be at least 1", fft::hann_window(0));
  REFUSED("must be at least 1", fft::hamming_window(-1));
  REFUSED("must be at least 1", fft::blackman_window(0));
  REFUSED("beta must be in [0, 700]", fft::kaiser_window(4, -1));
}

TEST_CASE("misuse: short-time transforms and spectra") {
  Graph g;
  const Expr x = g.input("x", Shape({2, 20}, DType::F32)), z = g.input("z", Shape({2, 5, 3}, DType::C64));
  REFUSED("the signal must have at least one axis", fft::stft(1.0, {}));
  REFUSED("shorter than a frame", fft::stft(x, {.n_fft = 32, .center = false}));
  REFUSED("too short for padding by", fft::stft(x, {.n_fft = 400}));
  REFUSED("each must be at least 1", fft::stft(x, {.n_fft = 0}));
  REFUSED("win_length 9 is larger than n_fft 8", fft::stft(x, {.n_fft = 8, .win_length = 9}));
  REFUSED("must be [win_length]", fft::stft(x, {.n_fft = 8, .window = x}));
  REFUSED("the spectrum must be complex", fft::istft(x, {.n_fft = 8}));
  REFUSED("must have 9 frequencies", fft::istft(z, {.n_fft = 16}));
  REFUSED("the length must be at least 1, got 0", fft::istft(z, {.n_fft = 8}, 0));
  REFUSED("shorter than a frame", fft::welch(x, {.nperseg = 32}));
  REFUSED("less than nperseg", fft::welch(x, {.nperseg = 8, .noverlap = 8}));
  REFUSED("nperseg must be at least 1", fft::welch(x, {.nperseg = 8, .nfft = 4}));
  REFUSED("above 0", fft::welch(x, {.fs = 0, .nperseg = 8}));
  REFUSED("the signal must be real", fft::welch(z, {.nperseg = 2}));
  REFUSED("4 peaks of 5 frequencies", fft::welch_peaks(x, 4, {.nperseg = 8}));
  REFUSED("each must be above 0", fft::mel_filterbank({.n_mels = 0}));
  REFUSED("below fmax", fft::mel_filterbank({.fmin = 9000, .fmax = 8000}));
  REFUSED("the signal must be real", fft::log_mel(z, {}));
  REFUSED("must be above 0", fft::log_mel(x, {.amin = 0}));
}
