// Mel filters and log-mel spectra with the conventions of librosa. The scale of M. Slaney's Auditory Toolbox is linear
// up to 1000 Hz (200 / 3 Hz a mel) and then logarithmic (27 mels for a factor of 6.4); HTK's is 2595 log10(1 + f /
// 700).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "rlx/functions/stft.h"
#include "rlx/ir/build/building.h"

namespace rlx::fft {

using namespace building;

namespace {

constexpr double kLinearStep = 200.0 / 3, kLogFrom = 1000, kLogFromMel = kLogFrom / kLinearStep;
double log_step() { return std::log(6.4) / 27; }

double to_mel(double f, bool htk) {
  if (htk) return 2595 * std::log10(1 + f / 700);
  return f < kLogFrom ? f / kLinearStep : kLogFromMel + std::log(f / kLogFrom) / log_step();
}
double to_hertz(double mel, bool htk) {
  if (htk) return 700 * (std::pow(10.0, mel / 2595) - 1);
  return mel < kLogFromMel ? mel * kLinearStep : kLogFrom * std::exp(log_step() * (mel - kLogFromMel));
}

}  // namespace

Tensor mel_filterbank(const MelOptions& o) {
  const double top = o.fmax == 0 ? o.sample_rate / 2 : o.fmax;
  if (!(o.sample_rate > 0) || !std::isfinite(o.sample_rate) || o.n_fft < 1 || o.n_mels < 1)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("mel_filterbank: sample_rate ", o.sample_rate, ", n_fft ", o.n_fft, ", n_mels ", o.n_mels),
                "each must be above 0");
  if (!(o.fmin >= 0) || !(top > o.fmin) || !std::isfinite(top))
    throw Error(ErrorCode::InvalidArgument, concat_text("mel_filterbank: frequencies from ", o.fmin, " to ", top),
                "fmin must be at least 0 and below fmax");
  const std::int64_t bins = o.n_fft / 2 + 1;
  Tensor out = Tensor::zeros(Shape({o.n_mels, bins}, DType::F64));  // throws for sizes beyond all memory
  const double low = to_mel(o.fmin, o.htk), high = to_mel(top, o.htk);
  std::vector<double> edges;  // triangle i has edges i, i + 1 and i + 2
  for (std::int64_t i = 0; i < o.n_mels + 2; ++i)
    edges.push_back(to_hertz(low + (high - low) * static_cast<double>(i) / static_cast<double>(o.n_mels + 1), o.htk));
  for (std::int64_t m = 0; m < o.n_mels; ++m) {
    const double* e = edges.data() + m;
    const double height = o.slaney_norm ? 2 / (e[2] - e[0]) : 1;
    for (std::int64_t k = 0; k < bins; ++k) {
      const double f = o.sample_rate * static_cast<double>(k) / static_cast<double>(o.n_fft);
      const double weight = std::max(0.0, std::min((f - e[0]) / (e[1] - e[0]), (e[2] - f) / (e[2] - e[1])));
      store_element(out.mutable_data(), DType::F64, m * bins + k, height * weight);
    }
  }
  return out;
}

Expr log_mel(Operand signal, const LogMelOptions& options) {
  const SourceLoc loc = signal.loc();
  const At at{loc};
  if (!(options.amin > 0) || !(options.ref > 0) || (options.top_db && !(*options.top_db >= 0)) || !(options.power > 0))
    fail(loc, ErrorCode::InvalidArgument,
         concat_text("log_mel: power ", options.power, ", amin ", options.amin, ", ref ", options.ref),
         "power, amin and ref must be above 0, top_db at least 0");
  StftOptions s = options.stft;
  s.n_fft = options.mel.n_fft;
  s.onesided = true;
  if (signal.is_scalar() || is_complex(signal.expr().dtype()))
    fail(loc, ErrorCode::DTypeMismatch, "log_mel: the signal must be real [.., T]");
  Graph& g = signal.expr().graph();
  if (!s.window)
    s.window = at(g.constant(hann_window(s.win_length == 0 ? std::max<std::int64_t>(1, s.n_fft) : s.win_length), loc));
  const Expr spectrum = stft(signal, s);
  Expr power = complex_norm_sq(at(spectrum));
  if (options.power != 2) power = g.pow(at(power), at(options.power / 2));
  const Expr filters = g.constant(mel_filterbank(options.mel).cast(power.dtype()), loc);
  const Expr mel = g.matmul(at(filters), at(power));
  // Decibels relative to the reference, as a difference of logarithms.
  const double scale = 10 / std::numbers::ln10;
  Expr db = g.mul(at(g.log(at(g.max(at(mel), at(options.amin))))), at(scale));
  db = g.sub(at(db), at(10 * std::log10(std::max(options.amin, options.ref))));
  if (!options.top_db) return db;
  return g.max(at(db), at(g.sub(at(g.reduce_max(at(db), {-2, -1}, true)), at(*options.top_db))));
}

}  // namespace rlx::fft
