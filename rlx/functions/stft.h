// Short-time spectra. stft follows torch.stft, welch follows scipy.signal, mel spectra follow librosa.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/functions/fft.h"

namespace rlx::fft {

/// The padding at both ends of a signal with centred frames: zeros, the signal mirrored without its border sample, or
/// the border sample.
enum class StftPad : std::uint8_t { Zeros, Reflect, Edge };

/// Options of stft and istft.
struct StftOptions {
  std::int64_t n_fft = 400;         // samples per frame
  std::int64_t hop = 0;             // samples from one frame to the next; 0: n_fft / 4
  std::int64_t win_length = 0;      // samples of the window, in the middle of the frame; 0: n_fft
  std::optional<Operand> window{};  // [win_length], real; by default ones
  bool center = true;               // pads n_fft / 2 samples at both ends: frame t is centred at sample t * hop
  StftPad pad = StftPad::Reflect;
  bool normalized = false;  // scales by 1 / sqrt(n_fft)
  bool onesided = true;     // real signals: n_fft / 2 + 1 frequencies; complex signals have all
};

/// The short-time Fourier transform of x [.., T]: complex [.., frequencies, frames], with 1 + floor((T' - n_fft) / hop)
/// frames of the padded length T'; torch.stft. ShapeMismatch for a signal shorter than a frame, or too short to mirror.
/// InvalidArgument for lengths below 1 and a window longer than a frame.
Expr stft(Operand x, const StftOptions& options);
/// The inverse of stft, [.., length], in the least-squares sense: the sum of windowed frames divided by the sum of
/// squared windows; torch.istft. `length` defaults to the samples that whole frames cover. Samples that no window
/// covers are not divided, so they are 0 in general.
Expr istft(Operand x, const StftOptions& options, std::optional<std::int64_t> length = std::nullopt);

/// The scale of welch: power spectral density (per Hz), or power spectrum.
enum class WelchScaling : std::uint8_t { Density, Spectrum };
/// How welch averages the segments: their mean, or SciPy's bias-corrected median.
enum class WelchAverage : std::uint8_t { Mean, Median };
/// Options of welch and welch_peaks.
struct WelchOptions {
  double fs = 1;                    // sampling frequency, samples per second
  std::int64_t nperseg = 256;       // samples per segment
  std::int64_t noverlap = -1;       // samples that adjacent segments share; -1: half a segment
  std::int64_t nfft = 0;            // length of a transform; 0: nperseg
  std::optional<Operand> window{};  // [nperseg]; by default a periodic Hann window
  bool detrend = true;              // subtracts the mean of each segment
  WelchScaling scaling = WelchScaling::Density;
  WelchAverage average = WelchAverage::Mean;
};
/// Welch's estimate of the one-sided power spectrum of real x [.., T]: [.., nfft / 2 + 1] at the frequencies
/// rfftfreq(nfft, 1 / fs); scipy.signal.welch. It averages the spectra of windowed segments. ShapeMismatch for a signal
/// shorter than a segment.
Expr welch(Operand x, const WelchOptions& options);
/// Results of welch_peaks.
struct WelchPeaksResult {
  Expr frequencies, powers;  // [.., count], the highest power first
};
/// The `count` highest peaks of welch(x): inner frequencies whose power exceeds that of both neighbours. Missing peaks
/// are NaN.
WelchPeaksResult welch_peaks(Operand x, std::int64_t count, const WelchOptions& options);

/// Options of mel_filterbank; sample_rate, fmin and fmax are in Hz.
struct MelOptions {
  double sample_rate = 22050;
  std::int64_t n_fft = 2048, n_mels = 128;
  double fmin = 0, fmax = 0;  // fmax 0: half the sample rate
  bool htk = false;           // the HTK scale 2595 log10(1 + f / 700); else Slaney: linear to 1 kHz, then logarithmic
  bool slaney_norm = true;    // filters have equal area; else height 1
};
/// Triangular filters on the mel scale, F64 [n_mels, n_fft / 2 + 1]; librosa.filters.mel. InvalidArgument for options
/// out of range.
Tensor mel_filterbank(const MelOptions& options);

/// Options of log_mel.
struct LogMelOptions {
  MelOptions mel{};
  StftOptions stft{};  // mel.n_fft replaces n_fft; the default window is a periodic Hann window
  double power = 2;
  double amin = 1e-10, ref = 1;
  std::optional<double> top_db = 80;  // values are at least the maximum of the signal minus top_db
};
/// The mel spectrogram of x [.., T] in dB: [.., n_mels, frames], 10 log10(mel / ref) with mel at least amin;
/// librosa.power_to_db(librosa.feature.melspectrogram). StftPad::Zeros is librosa's pad_mode "constant".
Expr log_mel(Operand x, const LogMelOptions& options);

}  // namespace rlx::fft
