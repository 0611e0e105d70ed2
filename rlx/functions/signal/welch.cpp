// Spectral densities by averaged segments: P. D. Welch, "The use of fast Fourier transform for the estimation of power
// spectra", 1967; conventions of scipy.signal.welch.
#include <cmath>
#include <limits>

#include "rlx/functions/signal/framing.h"
#include "rlx/functions/stft.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"

namespace rlx::fft {

using namespace building;

namespace {

struct Segments {
  std::int64_t n = 0, step = 0, points = 0;
};
Segments segments_of(const WelchOptions& o, SourceLoc loc) {
  Segments s{o.nperseg, 0, o.nfft == 0 ? o.nperseg : o.nfft};
  if (s.n < 1 || s.points < s.n)
    fail(loc, ErrorCode::InvalidArgument, concat_text("welch: nperseg ", s.n, ", nfft ", s.points),
         "nperseg must be at least 1, and nfft at least nperseg");
  const std::int64_t overlap = o.noverlap < 0 ? s.n / 2 : o.noverlap;
  if (overlap >= s.n)
    fail(loc, ErrorCode::InvalidArgument, concat_text("welch: noverlap ", overlap, " must be less than nperseg ", s.n));
  if (!(o.fs > 0) || !std::isfinite(o.fs))
    fail(loc, ErrorCode::InvalidArgument, concat_text("welch: fs = ", o.fs), "samples a second: above 0");
  s.step = s.n - overlap;
  return s;
}

// The median along axis -2, divided by its expected value for noise of mean 1.
Expr unbiased_median(const Expr& x, SourceLoc loc) {
  Graph& g = x.graph();
  const At at{loc};
  if (!x.dim(-2).is_static())
    fail(loc, ErrorCode::Unsupported,
         concat_text("welch: the median needs a known number of segments, got ", x.dim(-2).text()), "use the mean");
  const std::int64_t n = x.dim(-2).value();
  double bias = 1;
  for (std::int64_t k = 1; k <= (n - 1) / 2; ++k)
    bias += 1.0 / static_cast<double>(2 * k + 1) - 1.0 / static_cast<double>(2 * k);
  const Expr sorted = g.sort(at(x), -2, false);
  const std::int64_t middle = (n - 1) / 2;
  const Expr both = g.narrow(at(sorted), -2, middle, n % 2 != 0 ? 1 : 2);
  return g.mul(at(g.mean(at(both), {-2})), at(1 / bias));
}

}  // namespace

Expr welch(Operand signal, const WelchOptions& options) {
  const SourceLoc loc = signal.loc();
  if (signal.is_scalar() || signal.expr().rank() < 1 || is_complex(signal.expr().dtype()))
    fail(loc, ErrorCode::ShapeMismatch, "welch: the signal must be real [.., T]");
  Graph& g = signal.expr().graph();
  const At at{loc};
  const Segments s = segments_of(options, loc);
  Expr x = own_at(g, signal, loc);
  const DType real = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  x = frames_of(cast_at(g, x, real, loc), s.n, s.step, loc, "welch");
  if (options.detrend) x = g.sub(at(x), at(g.mean(at(x), {-1}, true)));
  const Expr window = options.window ? cast_at(g, own_at(g, *options.window, loc), real, loc)
                                     : g.constant(hann_window(s.n).cast(real), loc);
  if (window.rank() != 1 || !window.dim(0).is_static(s.n))
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text("welch: the window must be [nperseg] = [", s.n, "], got ", window.shape()));
  const Expr spectrum = rfft(at(g.mul(at(x), at(window))), Dim(s.points));
  Expr power = complex_norm_sq(at(spectrum));
  power = options.average == WelchAverage::Mean ? g.mean(at(power), {-2}) : unbiased_median(power, loc);
  // A one-sided spectrum: bins that have a mirror image count twice.
  const std::int64_t bins = s.points / 2 + 1;
  Tensor sides = Tensor::full(Shape({bins}, real), 2);
  store_element(sides.mutable_data(), real, 0, 1.0);
  if (s.points % 2 == 0) store_element(sides.mutable_data(), real, bins - 1, 1.0);
  Expr total;
  if (options.scaling == WelchScaling::Density) {
    total = g.mul(at(g.sum(at(g.mul(at(window), at(window))), {-1}, true)), at(options.fs));
  } else {
    const Expr sum = g.sum(at(window), {-1}, true);
    total = g.mul(at(sum), at(sum));
  }
  return g.mul(at(power), at(g.div(at(g.constant(std::move(sides), loc)), at(total))));
}

WelchPeaksResult welch_peaks(Operand signal, std::int64_t count, const WelchOptions& options) {
  const SourceLoc loc = signal.loc();
  const At at{loc};
  const Expr power = welch(signal, options);
  Graph& g = power.graph();
  const std::int64_t bins = power.dim(-1).value();
  if (count < 1 || count > bins - 2)
    fail(loc, ErrorCode::InvalidArgument, concat_text("welch_peaks: ", count, " peaks of ", bins, " frequencies"),
         "ask for at least 1 peak and at most two fewer than frequencies: the first and the last frequency are never "
         "peaks");
  const Expr middle = g.narrow(at(power), -1, 1, bins - 2), below = g.narrow(at(power), -1, 0, bins - 2),
             above = g.narrow(at(power), -1, 2, bins - 2);
  const Expr peak = g.bit_and(at(g.gt(at(middle), at(below))), at(g.gt(at(middle), at(above))));
  const Expr lowest = g.where(at(peak), at(middle), at(-1.0));
  const Builder::TopKResult best = g.top_k(at(lowest), count);
  const Expr found = g.ge(at(best.values), at(0.0));
  const double step = options.fs / static_cast<double>(options.nfft == 0 ? options.nperseg : options.nfft);
  const Expr place = cast_at(g, g.add(at(best.indices), at(1)), power.dtype(), loc);
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {g.where(at(found), at(g.mul(at(place), at(step))), at(none)), g.where(at(found), at(best.values), at(none))};
}

}  // namespace rlx::fft
