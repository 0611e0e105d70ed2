// Short-time Fourier transforms after torch.stft, spectral densities after scipy.signal, mel spectra after librosa.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/functions/fft.h"

namespace rlx::fft {

/// What stands before and behind a signal whose frames are centred: zeros, its mirror image without the end itself, or
/// the end.
enum class StftPad : std::uint8_t { Zeros, Reflect, Edge };

struct StftOptions {
  std::int64_t n_fft = 400;         // points of a frame
  std::int64_t hop = 0;             // samples from frame to frame; 0: n_fft / 4
  std::int64_t win_length = 0;      // samples that the window covers, in the middle of a frame; 0: n_fft
  std::optional<Operand> window{};  // [win_length], real; none: ones
  bool center = true;               // frame t is around sample t * hop, of a signal with n_fft / 2 more at both ends
  StftPad pad = StftPad::Reflect;
  bool normalized = false;  // times 1 / sqrt(n_fft)
  bool onesided = true;     // n_fft / 2 + 1 frequencies of real signals; complex ones have all
};

/// x [.., T] -> complex [.., frequencies, frames], frames = 1 + (T' - n_fft) / hop of the padded signal; torch.stft.
/// ShapeMismatch for a signal shorter than a frame, and for a mirror image longer than the signal; InvalidArgument for
/// lengths below 1 and a window longer than a frame.
Expr stft(Operand x, const StftOptions& options);
/// The signal [.., length] of stft(x), least squares, by the sum of windowed frames over the sum of squared windows;
/// torch.istft. Without `length` what whole frames give. Where no window reaches, the sum itself: 0 in general.
Expr istft(Operand x, const StftOptions& options, std::optional<std::int64_t> length = std::nullopt);

enum class WelchScaling : std::uint8_t { Density, Spectrum };
enum class WelchAverage : std::uint8_t { Mean, Median };
struct WelchOptions {
  double fs = 1;                    // samples a second
  std::int64_t nperseg = 256;       // samples of a segment
  std::int64_t noverlap = -1;       // samples that neighbours share; -1: half
  std::int64_t nfft = 0;            // points of a transform; 0: nperseg
  std::optional<Operand> window{};  // [nperseg]; none: a periodic Hann window
  bool detrend = true;              // takes the mean off each segment
  WelchScaling scaling = WelchScaling::Density;
  WelchAverage average = WelchAverage::Mean;
};
/// The power of real x [.., T] at the frequencies rfftfreq(nfft, 1 / fs): [.., nfft / 2 + 1], one-sided, the mean (or
/// SciPy's unbiased median) of windowed segments. scipy.signal.welch. ShapeMismatch for a signal shorter than a
/// segment.
Expr welch(Operand x, const WelchOptions& options);
struct WelchPeaksResult {
  Expr frequencies, powers;  // [.., count], the highest first
};
/// The `count` highest of the inner frequencies whose power is above that of both neighbours; NaN where there are
/// fewer.
WelchPeaksResult welch_peaks(Operand x, std::int64_t count, const WelchOptions& options);

struct MelOptions {
  double sample_rate = 22050;
  std::int64_t n_fft = 2048, n_mels = 128;
  double fmin = 0, fmax = 0;  // 0: half the sample rate
  bool htk = false;           // 2595 log10(1 + f / 700); else linear to 1 kHz and logarithmic above (Slaney)
  bool slaney_norm = true;    // triangles of equal area; else of height 1
};
/// Triangles on the mel scale [n_mels, n_fft / 2 + 1], F64; librosa.filters.mel.
Tensor mel_filterbank(const MelOptions& options);

struct LogMelOptions {
  MelOptions mel{};
  StftOptions stft{};  // its n_fft is that of mel; without a window a periodic Hann window
  double power = 2;
  double amin = 1e-10, ref = 1;
  std::optional<double> top_db = 80;  // nothing is further below the largest value of a signal
};
/// 10 log10 of the mel spectrogram of x [.., T]: [.., n_mels, frames];
/// librosa.power_to_db(librosa.feature.melspectrogram) with its pad mode "constant" where stft.pad says Zeros.
Expr log_mel(Operand x, const LogMelOptions& options);

}  // namespace rlx::fft
