// Spectra, views of complex values, convolution by FFT, and window functions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/functions/fft.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"

namespace rlx::fft {

using namespace building;

namespace {

Graph& graph_of_signal(const Operand& x, const char* what) {
  if (x.is_scalar() || x.expr().rank() == 0)
    fail(x.loc(), ErrorCode::InvalidArgument, concat_text(what, ": a scalar has no last axis"),
         "give an array with at least one axis");
  return x.expr().graph();
}

std::int64_t static_extent(const Expr& x, SourceLoc loc, const char* what) {
  if (!x.dim(-1).is_static())
    fail(loc, ErrorCode::Unsupported, concat_text(what, ": the last axis of ", x.shape(), " is symbolic"),
         "bind the symbol first");
  return x.dim(-1).value();
}

// The power |x|^2 / n of transforms x [.., k] of n points.
Expr power(const Expr& spectrum, const Dim& n, SourceLoc loc) {
  Graph& g = spectrum.graph();
  const At at{loc};
  const Expr size = complex_norm_sq(at(spectrum));
  return g.div(at(size), at(cast_at(g, dim_value(g, n, DType::I64), size.dtype(), loc)));
}

}  // namespace

Expr fft_axis(Operand x, std::int64_t axis, bool inverse) { return inverse ? ifft(x, {}, axis) : fft(x, {}, axis); }
Expr fft_norm(Operand x, FftNorm norm, bool inverse) { return inverse ? ifft(x, {}, -1, norm) : fft(x, {}, -1, norm); }
Expr pad_last_axis_to_pow2(Operand x) {
  Graph& g = graph_of_signal(x, "pad_last_axis_to_pow2");
  const At at{x.loc()};
  const Expr e = own_at(g, x, x.loc());
  const std::int64_t n = static_extent(e, x.loc(), "pad_last_axis_to_pow2");
  std::int64_t to = 1;
  while (to < n) to *= 2;
  std::vector<std::int64_t> low(static_cast<std::size_t>(e.rank()), 0), high = low;
  high.back() = to - n;
  return to == n ? e : g.pad(at(e), low, high, at(g.constant(Tensor::zeros(Shape({}, e.dtype())), x.loc())));
}
std::pair<Expr, Expr> split_spectrum(Operand x) {
  Graph& g = graph_of_signal(x, "split_spectrum");
  return {g.real(x), g.imag(x)};
}
Expr ifft_spectrum(Operand re, Operand im) {
  Graph& g = graph_of_signal(re, "ifft_spectrum");
  return ifft(At{re.loc()}(g.complex(re, im)));
}
Expr fft_real(Operand x) {
  if (!x.is_scalar() && is_complex(x.expr().dtype()))
    fail(x.loc(), ErrorCode::DTypeMismatch, concat_text("fft_real: x ", x.expr().shape(), " is complex"), "use fft");
  return fft(x);
}
Expr fft_batch_real(Operand x) {
  if (x.is_scalar() || x.expr().rank() != 2)
    fail(x.loc(), ErrorCode::ShapeMismatch, "fft_batch_real: x must be a batch of signals [B, n]",
         "use fft_real for other ranks");
  return fft_real(x);
}
Expr to_real_blocks(Operand x) {
  Graph& g = graph_of_signal(x, "to_real_blocks");
  return g.concat({g.real(x), g.imag(x)}, -1, {}, x.loc());
}
Expr from_real_blocks(Operand x) {
  Graph& g = graph_of_signal(x, "from_real_blocks");
  const At at{x.loc()};
  const Expr e = own_at(g, x, x.loc());
  const auto half = exact_div(e.dim(-1), 2);
  if (!half || is_complex(e.dtype()))
    fail(x.loc(), ErrorCode::ShapeMismatch,
         concat_text("from_real_blocks: x must be real [.., 2 n], the real parts and then the imaginary parts, got ",
                     e.shape()));
  return g.complex(at(g.narrow(at(e), -1, 0, *half)), at(g.narrow(at(e), -1, *half, *half)));
}
Expr complex_norm_sq(Operand x) {
  if (x.is_scalar())
    fail(x.loc(), ErrorCode::InvalidArgument, "complex_norm_sq: x must be a value of a graph, got a number",
         "make the number a value: g.scalar(x)");
  Graph& g = x.expr().graph();
  const At at{x.loc()};
  const Expr e = own_at(g, x, x.loc());
  if (!is_complex(e.dtype())) return g.mul(at(e), at(e));
  const Expr re = g.real(at(e)), im = g.imag(at(e));
  return g.add(at(g.mul(at(re), at(re))), at(g.mul(at(im), at(im))));
}
Expr psd(Operand x) {
  graph_of_signal(x, "psd");
  return power(fft(x), x.expr().dim(-1), x.loc());
}
Expr psd_real(Operand x) {
  graph_of_signal(x, "psd_real");
  return power(rfft(x), x.expr().dim(-1), x.loc());
}

// -- convolution --

std::int64_t next_fast_len(std::int64_t n) {
  if (n < 1) throw Error(ErrorCode::InvalidArgument, concat_text("next_fast_len: n must be at least 1, got ", n));
  // Tries all products of powers of 7, 5 and 3 below n, each times the smallest power of 2 that reaches n. Near 2^62
  // such lengths are so far apart that counting up from n would not end.
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto least = static_cast<std::uint64_t>(n);
  std::uint64_t best = kMost + 1;
  for (std::uint64_t sevens = 1;; sevens *= 7) {
    for (std::uint64_t fives = sevens;; fives *= 5) {
      for (std::uint64_t odd = fives;; odd *= 3) {
        std::uint64_t m = odd;
        while (m < least) m *= 2;  // below 2^64: least has 63 bits
        best = std::min(best, m);
        if (odd >= least || odd > kMost / 3) break;
      }
      if (fives >= least || fives > kMost / 5) break;
    }
    if (sevens >= least || sevens > kMost / 7) break;
  }
  if (best > kMost)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("next_fast_len: the next fast length after ", n, " does not fit 64 bits"));
  return static_cast<std::int64_t>(best);
}

Expr fft_conv1d(Operand x, Operand w, ConvolutionPart part) {
  constexpr const char* kName = "fft_conv1d";
  Graph& g = graph_of_signal(x, kName);
  graph_of_signal(w, kName);
  const At at{x.loc()};
  const Expr a = own_at(g, x, x.loc()), b = own_at(g, w, x.loc());
  const std::int64_t na = static_extent(a, x.loc(), kName), nb = static_extent(b, x.loc(), kName);
  if (na < 1 || nb < 1)
    fail(x.loc(), ErrorCode::ShapeMismatch,
         concat_text(kName, ": ", a.shape(), " and ", b.shape(), " have no elements"));
  const std::int64_t whole = na + nb - 1;
  const bool complex = is_complex(a.dtype()) || is_complex(b.dtype());
  std::int64_t n = next_fast_len(whole);
  if (!complex && n % 2 != 0)
    n = next_fast_len(n + 1) % 2 == 0 ? next_fast_len(n + 1) : n;  // a real transform of even
                                                                   // length computes pairs of
                                                                   // reals as complex numbers
  Expr y;
  if (complex) {
    y = ifft(at(g.mul(at(fft(at(a), Dim(n))), at(fft(at(b), Dim(n))))));
  } else {
    y = irfft(at(g.mul(at(rfft(at(a), Dim(n))), at(rfft(at(b), Dim(n))))), Dim(n));
  }
  std::int64_t first = 0, count = whole;
  if (part == ConvolutionPart::Same) first = (nb - 1) / 2, count = na;
  if (part == ConvolutionPart::Valid) first = std::min(na, nb) - 1, count = std::max(na, nb) - std::min(na, nb) + 1;
  y = g.narrow(at(y), -1, first, count);
  const auto t = promote(a.dtype(), b.dtype());
  return t && is_float(*t) ? cast_at(g, y, *t, x.loc()) : y;
}

// -- windows --

namespace {

template <class F>
Tensor window_of(std::int64_t n, bool symmetric, const char* what, F&& value) {
  if (n < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(what, ": the number of points must be at least 1, got ", n));
  Tensor out = Tensor::zeros(Shape({n}, DType::F64));
  const double length = static_cast<double>(symmetric ? n - 1 : n);
  for (std::int64_t j = 0; j < n; ++j)
    store_element(out.mutable_data(), DType::F64, j, n == 1 ? 1.0 : value(static_cast<double>(j) / length));
  return out;
}
double cosine(double turns) { return std::cos(2 * std::numbers::pi * turns); }

// The modified Bessel function I0, by its power series.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 1000 && term > sum * 1e-18; ++k) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}

}  // namespace

Tensor hann_window(std::int64_t n, bool symmetric) {
  return window_of(n, symmetric, "hann_window", [](double t) { return 0.5 - 0.5 * cosine(t); });
}
Tensor hamming_window(std::int64_t n, bool symmetric) {
  return window_of(n, symmetric, "hamming_window", [](double t) { return 0.54 - 0.46 * cosine(t); });
}
Tensor blackman_window(std::int64_t n, bool symmetric) {
  return window_of(n, symmetric, "blackman_window",
                   [](double t) { return 0.42 - 0.5 * cosine(t) + 0.08 * cosine(2 * t); });
}
Tensor kaiser_window(std::int64_t n, double beta, bool symmetric) {
  if (!(beta >= 0) || beta > 700)
    throw Error(ErrorCode::InvalidArgument, concat_text("kaiser_window: beta must be in [0, 700], got ", beta));
  const double peak = bessel_i0(beta);
  return window_of(n, symmetric, "kaiser_window", [&](double t) {
    return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / peak;
  });
}

}  // namespace rlx::fft
