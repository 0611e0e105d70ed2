// FFT kernels over many vectors, of every instruction set, against the defining sum: lengths whose passes work on
// blocks that fit in L1, shorter lengths, and vectors with and without gaps.
#include "rlx/backends/cpu/fft/fft_kernels.h"

#include <complex>

#include "rlx/ir/math/roots_of_unity.h"
#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

struct FftCase {
  FftVariant form;
  std::int64_t n, inner;
  bool inverse;
};

// sum_j x_j exp(-+ 2 pi i j k / n), element k.
LongDoubleComplex transformed(const std::vector<LongDoubleComplex>& x, const std::vector<LongDoubleComplex>& roots,
                              std::int64_t k, bool inverse) {
  const auto n = static_cast<std::int64_t>(x.size());
  LongDoubleComplex sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const LongDoubleComplex w = roots[static_cast<std::size_t>(j * k % n)];
    sum += long_double_product(x[static_cast<std::size_t>(j)], inverse ? std::conj(w) : w);
  }
  return sum;
}

template <class T>
void check_lines(const FftTable<T>& table, const FftCase& c) {
  CAPTURE(static_cast<int>(c.form));
  CAPTURE(c.n);
  CAPTURE(c.inner);
  const bool from_real = c.form == FftVariant::RealEven, to_real = c.form == FftVariant::ToRealEven;
  FftManyLines<T> job;
  const std::int64_t points = c.form == FftVariant::Complex ? c.n : c.n / 2;
  job.plan = fft_lanes<T>(points);
  job.form = c.form, job.inverse = c.inverse, job.scale = static_cast<T>(0.5);
  if (c.form != FftVariant::Complex) job.turns = fft_twiddles<T>(c.n);
  job.n = c.n, job.inner = c.inner, job.lines = c.inner * (c.inner == 1 ? table.lanes + 1 : 2);
  job.x_points = to_real ? c.n / 2 + 1 : c.n, job.y_points = from_real ? c.n / 2 + 1 : c.n;
  const std::int64_t x_parts = from_real ? 1 : 2, y_parts = to_real ? 1 : 2, guard = 64;
  std::vector<T> x(static_cast<std::size_t>(job.lines * job.x_points * x_parts));
  std::mt19937 rng(static_cast<unsigned>(c.n));
  std::uniform_real_distribution<T> draw(-1, 1);
  for (T& v : x) v = draw(rng);
  const T untouched = 12345.5;
  std::vector<T> y(static_cast<std::size_t>(job.lines * job.y_points * y_parts + guard), untouched);
  const std::int64_t reals = fft_lane_scratch(points + (c.form == FftVariant::Complex ? 0 : 1), table.lanes);
  std::vector<T> scratch(static_cast<std::size_t>(reals + 64 / static_cast<std::int64_t>(sizeof(T)) + guard),
                         untouched);
  T* aligned = scratch.data();
  while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
  for (std::int64_t g = 0; g < fft_groups(job, table.lanes); ++g) table.many(job, x.data(), y.data(), g, aligned);
  for (std::int64_t i = 0; i < guard; ++i) {
    CHECK(y[y.size() - 1 - static_cast<std::size_t>(i)] == untouched);
    CHECK(aligned[reals + i % (scratch.data() + scratch.size() - aligned - reals)] == untouched);
  }

  std::vector<LongDoubleComplex> roots;
  for (std::int64_t k = 0; k < c.n; ++k) roots.push_back(root_of_unity(k, c.n));
  for (const std::int64_t line : {std::int64_t{0}, job.lines - 1}) {
    const auto at = [&](std::int64_t j, std::int64_t extent) {
      return static_cast<std::size_t>(line / c.inner * extent * c.inner + line % c.inner + j * c.inner);
    };
    std::vector<LongDoubleComplex> all(static_cast<std::size_t>(c.n));
    for (std::int64_t j = 0; j < job.x_points; ++j) {
      const std::size_t i = at(j, job.x_points);
      LongDoubleComplex v = from_real ? LongDoubleComplex(x[i]) : LongDoubleComplex(x[2 * i], x[2 * i + 1]);
      if (to_real && (j == 0 || 2 * j == c.n)) v = v.real();
      all[static_cast<std::size_t>(j)] = v;
      if (to_real && j > 0) all[static_cast<std::size_t>(c.n - j)] = std::conj(v);
    }
    long double error = 0, size = 0;
    // For long vectors: elements of every SIMD vector and lane, and the last element.
    const std::int64_t step = job.y_points <= 64 ? 1 : 7;
    for (std::int64_t k = (job.y_points - 1) % step; k < job.y_points; k += step) {
      const LongDoubleComplex want = transformed(all, roots, k, c.inverse) * 0.5L;
      const std::size_t i = at(k, job.y_points);
      const LongDoubleComplex got = to_real ? LongDoubleComplex(y[i]) : LongDoubleComplex(y[2 * i], y[2 * i + 1]);
      error += std::norm(got - want), size += std::norm(want);
    }
    const long double eps = std::numeric_limits<T>::epsilon();
    const long double bound = (sizeof(T) == 4 ? 0.5L : 0.8L) * eps * std::sqrt(1 + std::log2(static_cast<double>(c.n)));
    CAPTURE(line);
    CHECK(std::sqrt(error) <= bound * std::sqrt(size));
  }
}

}  // namespace

TEST_CASE("fft kernels: many lines, by every instruction set") {
  std::vector<FftCase> cases;
  for (const std::int64_t n : {16, 256, 260, 500})
    for (const std::int64_t inner : {1, 3, 19})
      for (const bool inverse : {false, true}) cases.push_back({FftVariant::Complex, n, inner, inverse});
  for (const std::int64_t n : {30, 512, 528})
    for (const std::int64_t inner : {1, 3, 19}) {
      cases.push_back({FftVariant::RealEven, n, inner, false});
      cases.push_back({FftVariant::ToRealEven, n, inner, true});
    }
  cases.push_back({FftVariant::RealEven, 1000, 1, false});
  cases.push_back({FftVariant::ToRealEven, 1000, 1, true});
  rlx::test::Share share(3);
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!isa_supported(isa)) continue;
    CAPTURE(isa_name(isa));
    for (const FftCase& c : cases) {
      if (share.next()) check_lines(fft_kernels(isa).f32, c);
      if (share.next()) check_lines(fft_kernels(isa).f64, c);
    }
  }
}

// Any number of vectors: each has the bits that it has alone, at any address and in place.
template <class T>
void check_sixteen(const FftTable<T>& table, bool inverse) {
  constexpr std::int64_t kMost = 21;
  std::vector<T> x(32 * kMost), alone(x.size());
  std::vector<T> scratch(static_cast<std::size_t>(fft_lane_scratch(16, table.lanes) + 64));
  T* aligned = scratch.data();
  while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
  std::mt19937 rng(16);
  std::uniform_real_distribution<T> draw(-1, 1);
  for (T& v : x) v = draw(rng);
  x[32 * 2 + 5] = std::numeric_limits<T>::infinity();  // affects its own vector only
  FftManyLines<T> job;
  job.plan = fft_lanes<T>(16);
  job.n = job.x_points = job.y_points = 16, job.inverse = inverse;
  job.lines = 1;
  for (std::int64_t l = 0; l < kMost; ++l) table.many(job, x.data() + 32 * l, alone.data() + 32 * l, 0, aligned);
  for (job.lines = 1; job.lines <= kMost; ++job.lines) {
    CAPTURE(job.lines);
    std::vector<T> y = x;
    for (std::int64_t g = 0; g < fft_groups(job, table.lanes); ++g) table.many(job, y.data(), y.data(), g, aligned);
    const auto done = static_cast<std::size_t>(32 * job.lines);
    CHECK(std::memcmp(y.data(), alone.data(), done * sizeof(T)) == 0);
    CHECK(std::equal(y.begin() + static_cast<std::ptrdiff_t>(done), y.end(),
                     x.begin() + static_cast<std::ptrdiff_t>(done)));
  }
}
TEST_CASE("fft kernels: short lines give the same wherever they lie") {
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!isa_supported(isa)) continue;
    CAPTURE(isa_name(isa));
    for (const bool inverse : {false, true}) {
      check_sixteen(fft_kernels(isa).f32, inverse);
      check_sixteen(fft_kernels(isa).f64, inverse);
    }
  }
}

// A whole vector at any address and in place, with the scratch memory of steps; some elements are compared with the
// sum.
template <class T>
void check_line(const FftTable<T>& table, std::int64_t n, bool inverse) {
  CAPTURE(n);
  CAPTURE(inverse);
  const FftTwoSteps<T> plan = fft_two_steps<T>(n, table.lanes, 0.25);
  const std::int64_t between = fft_between(plan, table.lanes), guard = 64,
                     reals = between + fft_lane_scratch(std::max(plan.n1, plan.n2), table.lanes);
  const T untouched = 12345.5;
  std::vector<T> scratch(static_cast<std::size_t>(reals + 2 * guard), untouched);
  T* aligned = scratch.data();
  while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
  std::vector<T> x(static_cast<std::size_t>(2 * n)), y(x.size() + 2, untouched);
  std::mt19937 rng(static_cast<unsigned>(n));
  std::uniform_real_distribution<T> draw(-1, 1);
  for (T& v : x) v = draw(rng);
  table.line(plan, x.data(), y.data() + 1, inverse, aligned, aligned + between);
  CHECK(y.front() == untouched);
  CHECK(y.back() == untouched);
  for (std::int64_t i = 0; i < guard; ++i) CHECK(aligned[reals + i] == untouched);
  std::vector<LongDoubleComplex> all, roots;
  for (std::int64_t j = 0; j < n; ++j) {
    all.emplace_back(x[static_cast<std::size_t>(2 * j)], x[static_cast<std::size_t>(2 * j + 1)]);
    roots.push_back(root_of_unity(j, n));
  }
  long double error = 0, size = 0;
  for (std::int64_t k = 0; k < n; k += n <= 512 ? 1 : 37) {
    const auto i = static_cast<std::size_t>(2 * k + 1);
    const LongDoubleComplex want = transformed(all, roots, k, inverse) * 0.25L;
    error += std::norm(LongDoubleComplex(y[i], y[i + 1]) - want), size += std::norm(want);
  }
  const long double eps = std::numeric_limits<T>::epsilon();
  CHECK(std::sqrt(error) <= 0.8L * eps * std::sqrt(1 + std::log2(static_cast<long double>(n))) * std::sqrt(size));
  table.line(plan, x.data(), x.data(), inverse, aligned, aligned + between);
  CHECK(std::memcmp(x.data(), y.data() + 1, x.size() * sizeof(T)) == 0);
}
TEST_CASE("fft kernels: a line whole, by every instruction set") {
  std::int64_t lengths = 0;
  for (std::int64_t n = 2; n <= 1 << 14; n *= 2) lengths += fft_is_short_line(n) ? 1 : 0;
  CHECK(lengths == 5);
  rlx::test::Share share(3);
  for (const Isa isa : {Isa::Generic, Isa::Sse4, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!isa_supported(isa)) continue;
    CAPTURE(isa_name(isa));
    for (const std::int64_t n : {256, 512, 1024, 2048, 4096})
      for (const bool inverse : {false, true}) {
        if (share.next()) check_line(fft_kernels(isa).f32, n, inverse);
        if (share.next()) check_line(fft_kernels(isa).f64, n, inverse);
      }
  }
}

}  // namespace rlx::cpu::test
