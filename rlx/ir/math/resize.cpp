// Taps of resampled axes: kernels, positions, borders.
#include "rlx/ir/math/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rlx {
namespace {

double lanczos(double x, double radius) {
  if (x >= radius) return 0;
  if (x < 1e-3) return 1;
  const double a = std::numbers::pi * x;
  return radius * std::sin(a) * std::sin(a / radius) / (a * a);
}

// The kernel at a distance x >= 0, and its reach.
double kernel_at(const ops::Interpolate& op, double x) {
  const double a = op.cubic_a;
  switch (op.fn) {
    case ResizeKind::Linear: return std::max(0.0, 1 - x);
    case ResizeKind::Cubic:  // Keys, "Cubic convolution interpolation for digital image processing" (1981)
      if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
    case ResizeKind::Lanczos3: return lanczos(x, 3);
    case ResizeKind::Lanczos5: return lanczos(x, 5);
    case ResizeKind::Nearest:
    case ResizeKind::Area: break;
  }
  return 0;
}
double reach_of(ResizeKind fn) {
  return fn == ResizeKind::Linear ? 1 : fn == ResizeKind::Cubic ? 2 : fn == ResizeKind::Lanczos3 ? 3 : 5;
}

// The position of element o of m among n elements.
double place_of(const ops::Interpolate& op, double scale, std::int64_t o, std::int64_t m, std::int64_t n) {
  const auto i = static_cast<double>(o), from = static_cast<double>(n), to = static_cast<double>(m);
  // i / scale, exact enough for floor when the scale is the ratio of the extents.
  const auto back = [&](double v) { return scale > 0 ? v / scale : v * from / to; };
  double place = 0;
  switch (op.places) {
    case ResizePlaces::HalfPixel: place = back(i + 0.5) - 0.5; break;
    case ResizePlaces::PytorchHalfPixel: place = m > 1 ? back(i + 0.5) - 0.5 : 0; break;
    case ResizePlaces::AlignCorners: place = m > 1 ? i * (from - 1) / (to - 1) : 0; break;
    case ResizePlaces::Asymmetric: place = back(i); break;
  }
  return std::clamp(place, -1e9, 1e10);
}

double rounded(ResizeRounding how, double place) {
  switch (how) {
    case ResizeRounding::Floor: return std::floor(place);
    case ResizeRounding::Ceil: return std::ceil(place);
    case ResizeRounding::HalfDown: return std::ceil(place - 0.5);
    case ResizeRounding::HalfUp: break;
  }
  return std::floor(place + 0.5);
}

ResizeTaps forward_taps(const ops::Interpolate& op, double scale, std::int64_t n, std::int64_t m) {
  ResizeTaps taps;
  const auto inside = [n](double at) {
    return static_cast<std::int32_t>(std::clamp(at, 0.0, static_cast<double>(n - 1)));
  };
  const auto add = [&](double at, double weight) {
    taps.index.push_back(inside(at));
    taps.weight.push_back(weight);
  };
  const double ratio = scale > 0 ? scale : static_cast<double>(m) / static_cast<double>(n);
  const double wide = op.antialias && ratio < 1 ? 1 / ratio : 1;
  for (std::int64_t o = 0; o < m; ++o) {
    const double place = place_of(op, scale, o, m, n);
    if (op.fn == ResizeKind::Nearest) {
      add(rounded(op.rounding, place), 1);
    } else if (op.fn == ResizeKind::Area) {
      const std::int64_t first = o * n / m, last = ((o + 1) * n + m - 1) / m;
      for (std::int64_t i = first; i < last; ++i) add(static_cast<double>(i), 1 / static_cast<double>(last - first));
    } else {
      const double reach = reach_of(op.fn) * wide;
      // Unless the kernel is widened, the number of neighbours is always the same.
      const double first = wide == 1 ? std::floor(place) - (reach - 1) : std::ceil(place - reach);
      const double last = wide == 1 ? first + 2 * reach - 1 : std::floor(place + reach);
      const bool shares = op.antialias || op.renormalize;
      const std::size_t before = taps.weight.size();
      double total = 0;
      for (double i = shares ? std::max(first, 0.0) : first;
           i <= (shares ? std::min(last, static_cast<double>(n - 1)) : last); ++i) {
        const double w = kernel_at(op, std::abs(i - place) / wide);
        total += w;
        add(i, w);
      }
      if (shares && total == 0) {  // no neighbour has a weight: use the nearest one
        taps.index.resize(before), taps.weight.resize(before);
        add(place, 1);
      } else if (shares || op.fn == ResizeKind::Lanczos3 || op.fn == ResizeKind::Lanczos5) {
        for (std::size_t t = before; t < taps.weight.size(); ++t) taps.weight[t] /= total;
      }
    }
    taps.begin.push_back(static_cast<std::int64_t>(taps.index.size()));
  }
  return taps;
}

// The transposed taps, for `n` elements in place of the outputs.
ResizeTaps transposed_taps(const ResizeTaps& taps, std::int64_t n) {
  ResizeTaps out;
  out.begin.assign(static_cast<std::size_t>(n) + 1, 0);
  for (std::int32_t i : taps.index) ++out.begin[static_cast<std::size_t>(i) + 1];
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) out.begin[i + 1] += out.begin[i];
  std::vector<std::int64_t> next(out.begin.begin(), out.begin.end() - 1);
  out.index.resize(taps.index.size()), out.weight.resize(taps.weight.size());
  for (std::int64_t o = 0; o < taps.outputs(); ++o)
    for (std::int64_t t = taps.begin[static_cast<std::size_t>(o)]; t < taps.begin[static_cast<std::size_t>(o) + 1];
         ++t) {
      const auto from = static_cast<std::size_t>(t);
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(taps.index[from])]++);
      out.index[to] = static_cast<std::int32_t>(o);
      out.weight[to] = taps.weight[from];
    }
  return out;
}

}  // namespace

std::int64_t ResizeTaps::widest() const {
  std::int64_t most = 0;
  for (std::size_t o = 0; o + 1 < begin.size(); ++o) most = std::max(most, begin[o + 1] - begin[o]);
  return most;
}

ResizeTaps resize_taps(const ops::Interpolate& op, std::size_t i, std::int64_t extent) {
  const double scale = op.scales.empty() ? 0 : op.scales[i];
  if (!op.transposed) return forward_taps(op, scale, extent, op.sizes[i]);
  return transposed_taps(forward_taps(op, scale, op.sizes[i], extent), op.sizes[i]);
}

}  // namespace rlx
