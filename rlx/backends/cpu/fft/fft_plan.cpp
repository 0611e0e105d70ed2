// FFT plans: factors and twiddle factors.
#include <algorithm>

#include "rlx/backends/cpu/fft/fft_kernels.h"
#include "rlx/ir/math/roots_of_unity.h"

namespace rlx::cpu {
namespace {

using Exact = LongDoubleComplex;

// exp(-2 pi i k / n) for any k; for many k as products of two tables of about sqrt(n) roots each, 2 sqrt(n) in all.
class Roots {
 public:
  explicit Roots(std::int64_t n) : n_(n) {
    if (n <= 64) {
      for (std::int64_t k = 0; k < n; ++k) low_.push_back(root_of_unity(k, n));
      return;
    }
    while ((std::int64_t{1} << (2 * shift_)) < n) ++shift_;
    for (std::int64_t k = 0; k < std::int64_t{1} << shift_; ++k) low_.push_back(root_of_unity(k, n));
    for (std::int64_t k = 0; k <= (n - 1) >> shift_; ++k) high_.push_back(root_of_unity(k << shift_, n));
  }
  Exact operator()(std::int64_t k) const {
    if (k >= n_) k %= n_;
    if (high_.empty()) return low_[static_cast<std::size_t>(k)];
    const auto mask = (std::int64_t{1} << shift_) - 1;
    const auto high = static_cast<std::size_t>(k >> shift_), low = static_cast<std::size_t>(k & mask);
    if (low == 0) return high_[high];
    return long_double_product(high_[high], low_[low]);
  }

 private:
  std::int64_t n_;
  int shift_ = 0;
  std::vector<Exact> low_, high_;
};

template <class T>
void append(std::vector<T>& to, Exact v) {
  to.push_back(static_cast<T>(v.real()));
  to.push_back(static_cast<T>(v.imag()));
}

std::vector<std::int32_t> radices_of(std::int64_t n) {
  std::vector<std::int32_t> out;
  int twos = 0;
  while (n % 2 == 0) n /= 2, ++twos;
  // Radix 8, unless that would leave a pass of radix 2: 16 is 4 x 4, not 8 x 2.
  while (twos > 4 || twos == 3) out.push_back(8), twos -= 3;
  while (twos >= 2) out.push_back(4), twos -= 2;
  if (twos > 0) out.push_back(2);
  for (std::int64_t p = 3; n > 1; p += 2)
    while (n % p == 0) out.push_back(static_cast<std::int32_t>(p)), n /= p;
  return out;
}

// Vector operations of a butterfly, per point.
double radix_work(std::int32_t r) {
  constexpr double kPass = 6;  // loads, stores, twiddle factor
  switch (r) {
    case 2: return kPass + 2;
    case 4: return kPass + 4;
    case 8: return kPass + 8;
    default: return kPass + 2.0 + r;
  }
}

struct Split {
  std::int64_t n1 = 1, n2 = 1;
  double work = 0;
};
Split best_split(std::int64_t n, std::int64_t lanes) {
  Split best;
  if (fft_is_short_line(n)) {
    best.n1 = n >= 4096 ? 64 : n >= 1024 ? 32 : 16, best.n2 = n / best.n1;
    best.work = static_cast<double>(n / lanes) * (fft_lane_work(best.n1) + fft_lane_work(best.n2) + 10);
    return best;
  }
  for (std::int64_t n1 = 1; n1 <= n; ++n1) {
    if (n1 * n1 > 4 * n && best.work > 0) break;  // longer columns are never better
    if (n % n1 != 0) continue;
    const std::int64_t n2 = n / n1;
    const double columns = static_cast<double>((n2 + lanes - 1) / lanes * n1),
                 rows = static_cast<double>((n1 + lanes - 1) / lanes * n2);
    const double work = columns * (fft_lane_work(n1) * fft_reach(n1, lanes) + 10) +
                        rows * (fft_lane_work(n2) * fft_reach(n2, lanes) + 12);
    if (best.work == 0 || work < best.work) best = {n1, n2, work};
  }
  return best;
}

}  // namespace

bool fft_has_small_factors(std::int64_t n) {
  for (std::int64_t p = 2; p <= kFftLargestRadix && n > 1; ++p)
    while (n % p == 0) n /= p;
  return n == 1;
}

double fft_lane_work(std::int64_t n) {
  double work = 0;
  for (std::int32_t r : radices_of(n)) work += radix_work(r);
  return work;
}
double fft_reach(std::int64_t n, std::int64_t lanes) {
  const double reals =
      4 * static_cast<double>(n * lanes);  // two buffers of parts; lanes of 4 bytes, or half as many of 8
  return reals > 500e3 ? 2.5 : reals > 100e3 ? 1.5 : reals > 16e3 ? 1.2 : 1.0;
}
double fft_two_step_work(std::int64_t n, std::int64_t lanes) { return best_split(n, lanes).work; }

template <class T>
FftLanes<T> fft_lanes(std::int64_t n) {
  FftLanes<T> out;
  out.n = n;
  out.radices = radices_of(n);
  const Roots roots(n);
  std::int64_t done = 1;
  for (const std::int32_t r : out.radices) {
    const std::int64_t left = n / (done * r);
    if (r > 8 || r == 7 || r == 5 || r == 3)  // cosines and sines of an odd radix
      for (std::int64_t k = 1; k < r; ++k) append(out.roots, roots(k * (n / r)));
    if (left > 1)
      for (std::int64_t i = 0; i < left; ++i)
        for (std::int64_t c = 1; c < r; ++c) append(out.roots, roots(c * i * done));
    done *= r;
  }
  return out;
}

template <class T>
FftTwoSteps<T> fft_two_steps(std::int64_t n, std::int64_t lanes, double scale) {
  const Split split = best_split(n, lanes);
  FftTwoSteps<T> out;
  out.n = n, out.n1 = split.n1, out.n2 = split.n2;
  out.columns = fft_lanes<T>(out.n1);
  out.rows = fft_lanes<T>(out.n2);
  const Roots roots(n);
  for (std::int64_t k = 0; k < out.n1; ++k)
    for (const bool imag : {false, true})
      for (std::int64_t l = 0; l < lanes; ++l) {
        const Exact w = roots(k * l);
        out.lane_roots.push_back(static_cast<T>(imag ? w.imag() : w.real()));
      }
  for (std::int64_t j = 0; j < out.n2; j += lanes)
    for (std::int64_t k = 0; k < out.n1; ++k) append(out.block_roots, roots(k * j) * static_cast<long double>(scale));
  if (fft_is_short_line(n)) {
    out.turns.resize(static_cast<std::size_t>(2 * n) * sizeof(T) / sizeof(FftBlock<T>));
    T* turn = out.turns.data()->at;
    for (std::int64_t j = 0; j < out.n2; j += lanes)
      for (std::int64_t k = 0; k < out.n1; ++k)
        for (const bool imag : {false, true})
          for (std::int64_t l = 0; l < lanes; ++l) {
            const Exact w = roots(k * (j + l)) * static_cast<long double>(scale);
            *turn++ = static_cast<T>(imag ? w.imag() : w.real());
          }
  }
  return out;
}

template <class T>
std::vector<T> fft_twiddles(std::int64_t n) {
  const Roots roots(n);
  std::vector<T> out;
  for (std::int64_t k = 0; k <= n / 4; ++k) append(out, long_double_product({0, 0.5L}, roots(k)));
  return out;
}

std::int64_t fft_convolution_length(std::int64_t n) {
  // The cheapest of 2^a, 3 2^a, 5 2^a, 9 2^a and 15 2^a.
  std::int64_t best = 0;
  for (const std::int64_t odd : {1, 3, 5, 9, 15}) {
    std::int64_t m = odd;
    while (m < 2 * n - 1) m *= 2;
    if (best == 0 || m < best) best = m;
  }
  return best;
}

template <class T>
std::vector<T> fft_chirp(std::int64_t n) {
  const Roots roots(2 * n);
  std::vector<T> out;
  std::int64_t square = 0;  // j^2 mod 2 n
  for (std::int64_t j = 0; j < n; ++j) {
    append(out, roots(square));
    square = (square + 2 * j + 1) % (2 * n);
  }
  return out;
}

template <class T>
std::vector<T> fft_chirp_spectrum(const FftKernels& kernels, std::int64_t n, std::int64_t length, double scale) {
  const FftTable<double>& table = kernels.f64;
  const std::vector<double> chirp = fft_chirp<double>(n);
  std::vector<double> b(static_cast<std::size_t>(2 * length));
  for (std::int64_t j = 0; j < n; ++j)
    for (const std::int64_t at : {j, (length - j) % length}) {
      b[static_cast<std::size_t>(2 * at)] = chirp[static_cast<std::size_t>(2 * j)];
      b[static_cast<std::size_t>(2 * at + 1)] = -chirp[static_cast<std::size_t>(2 * j + 1)];
    }
  const auto plan = fft_two_steps<double>(length, table.lanes, scale / static_cast<double>(length));
  std::vector<double> memory(static_cast<std::size_t>(fft_between(plan, table.lanes) +
                                                      fft_lane_scratch(std::max(plan.n1, plan.n2), table.lanes) + 16));
  auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  auto* between = reinterpret_cast<double*>((address + 63) / 64 * 64);
  double* scratch = between + fft_between(plan, table.lanes);
  for (std::int64_t i = 0; i * table.lanes < plan.n2; ++i)
    table.columns(plan, {b.data(), length, false, nullptr}, false, i, between, scratch);
  for (std::int64_t i = 0; i * table.lanes < plan.n1; ++i)
    table.rows(plan, {b.data(), length, false, nullptr, false}, false, i, between, scratch);
  return std::vector<T>(b.begin(), b.end());
}

#define RLX_FFT_PLANS(T)                                                        \
  template FftLanes<T> fft_lanes<T>(std::int64_t);                              \
  template FftTwoSteps<T> fft_two_steps<T>(std::int64_t, std::int64_t, double); \
  template std::vector<T> fft_twiddles<T>(std::int64_t);                        \
  template std::vector<T> fft_chirp<T>(std::int64_t);                           \
  template std::vector<T> fft_chirp_spectrum<T>(const FftKernels&, std::int64_t, std::int64_t, double);
RLX_FFT_PLANS(float)
RLX_FFT_PLANS(double)
#undef RLX_FFT_PLANS

}  // namespace rlx::cpu
