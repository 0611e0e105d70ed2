// Pooling kernels of every instruction set beside plain loops: windows of all kinds over lines, planes and channels,
// cut into units in every way, with NaN and infinities.
#include "rlx/backends/cpu/window/windows_kernels.h"

#include <algorithm>
#include <initializer_list>

#include "tests/support/needs.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr ReduceKind kFunctions[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod};

std::int64_t results_of(const WindowF32& w) {
  std::int64_t count = w.outer * w.inner;
  for (int a = 0; a < w.rank; ++a) count *= w.m[a];
  return count;
}

/// The result at index `at` of the windowed axes, in double, and the sum of the magnitudes of its terms.
struct Want {
  double value, terms;
};
Want want_of(const WindowF32& w, const Buffer& x, std::int64_t outer, const std::int64_t* at, std::int64_t channel) {
  const bool max = w.fn == ReduceKind::Max, extremum = max || w.fn == ReduceKind::Min;
  Want out{extremum ? (max ? -HUGE_VAL : HUGE_VAL) : w.fn == ReduceKind::Prod ? 1.0 : 0.0, 0};
  std::int64_t index[kWindowMaxAxes] = {};
  for (bool more = true; more;) {
    std::int64_t element = outer;
    bool inside = true;
    for (int a = 0; a < w.rank; ++a) {
      const WindowAxis& axis = w.axes[a];
      const std::int64_t place = at[a] * axis.stride + index[a] * axis.dilation - axis.low;
      inside = inside && place >= 0 && place % axis.base == 0 && place / axis.base < w.n[a];
      element = element * w.n[a] + place / axis.base;
    }
    if (inside) {
      const double v = static_cast<double>(x[element * w.inner + channel]);
      if (extremum) {
        if (std::isnan(v) || (max ? v > out.value : v < out.value)) out.value = v;
        if (std::isnan(v)) return out;
      } else {
        out.value = w.fn == ReduceKind::Prod ? out.value * v : out.value + v;
      }
      out.terms += std::abs(v);
    }
    int a = w.rank - 1;
    while (a >= 0 && ++index[a] == w.axes[a].window) index[a--] = 0;
    more = a >= 0;
  }
  if (w.fn == ReduceKind::Sum) out.value *= static_cast<double>(w.factor);
  if (w.fn == ReduceKind::Prod) out.terms = std::abs(out.value);
  return out;
}

/// Runs all units, cut at random if `dice` is given.
void run_units(const WindowKernels& kernels, WindowF32 w, Buffer& y, std::mt19937* dice) {
  w.y = y.data();
  Buffer scratch(static_cast<std::int64_t>(kernels.scratch_bytes(w) / sizeof(float)) + 1, kNan);
  const std::int64_t all = w.outer * w.units();
  for (std::int64_t begin = 0; begin < all;) {
    const std::int64_t end = dice == nullptr ? all : std::min<std::int64_t>(all, begin + 1 + (*dice)() % 9);
    kernels.run(w, begin, end, scratch.data());
    begin = end;
  }
  CHECK(scratch.intact());
}

void check_windows(Isa isa, WindowF32 w, std::mt19937& dice) {
  for (int a = 0; a < w.rank; ++a) w.m[a] = w.axes[a].outputs(w.n[a]);
  if (results_of(w) == 0 || w.outer * w.x_size() > 60000) return;
  INFO(isa_name(isa), ", rank ", w.rank, ", inner ", w.inner, ", fn ", static_cast<int>(w.fn));
  for (int a = 0; a < w.rank; ++a)
    INFO("axis ", a, ": n ", w.n[a], " window ", w.axes[a].window, " stride ", w.axes[a].stride, " low ", w.axes[a].low,
         " high ", w.axes[a].high, " base ", w.axes[a].base, " dilation ", w.axes[a].dilation);
  Buffer x(w.outer * w.x_size()), y(results_of(w), 7), parts(results_of(w), 7);
  randomize(x, dice(), 0.5F, 1.5F);
  const bool extremum = w.fn == ReduceKind::Max || w.fn == ReduceKind::Min;
  if (extremum) {
    for (std::int64_t i = 0; i < x.size(); ++i)
      if (dice() % 97 == 0) x[i] = dice() % 2 == 0 ? kNan : (dice() % 2 == 0 ? kInf : -kInf);
  }
  w.x = x.data();
  const WindowKernels& kernels = window_kernels(isa);
  run_units(kernels, w, y, nullptr);
  run_units(kernels, w, parts, &dice);
  CHECK(y.intact());
  CHECK(parts.intact());
  CHECK(std::memcmp(y.data(), parts.data(), static_cast<std::size_t>(y.size()) * sizeof(float)) == 0);
  std::int64_t wrong = 0, result = 0;
  std::int64_t at[kWindowMaxAxes] = {};
  for (std::int64_t outer = 0; outer < w.outer; ++outer) {
    for (bool more = true; more;) {
      for (std::int64_t c = 0; c < w.inner; ++c, ++result) {
        const Want want = want_of(w, x, outer, at, c);
        const double got = static_cast<double>(y[result]);
        wrong += extremum ? !(got == want.value || (std::isnan(got) && std::isnan(want.value)))
                          : std::abs(got - want.value) > 4e-6 * (want.terms + std::abs(want.value));
      }
      int a = w.rank - 1;
      while (a >= 0 && ++at[a] == w.m[a]) at[a--] = 0;
      more = a >= 0;
    }
  }
  CHECK(wrong == 0);
}

WindowF32 windows_over(ReduceKind fn, std::int64_t outer, std::int64_t inner, std::initializer_list<std::int64_t> n,
                       const WindowAxis& axis) {
  WindowF32 w;
  w.fn = fn, w.outer = outer, w.inner = inner, w.rank = 0;
  for (const std::int64_t extent : n) w.n[w.rank] = extent, w.axes[w.rank++] = axis;
  return w;
}

}  // namespace

TEST_CASE("pooling kernels: the windows of networks over planes of every width") {
  std::mt19937 dice(3);
  for (const KernelTable* t : tables())
    for (const ReduceKind fn : kFunctions)
      for (const std::int64_t inner : {1, 5, 16, 67})
        for (const std::int64_t n : {2, 4, 7, 8, 16, 30, 33}) {
          const std::int64_t rows = std::min<std::int64_t>(n, 8), outer = inner == 1 ? 5 : 2;
          for (const WindowAxis& axis :
               {WindowAxis{2, 2}, {3, 2}, {3, 1}, {3, 2, 1, 1}, {3, 1, 1, 1}, {3, 3}, {5, 2, 2, 2}})
            check_windows(t->isa, windows_over(fn, outer, inner, {rows, n}, axis), dice);
          WindowF32 whole = windows_over(fn, 21, inner, {rows, n}, {});
          whole.axes[0].window = rows, whole.axes[1].window = n, whole.factor = 1 / static_cast<float>(rows * n);
          check_windows(t->isa, whole, dice);
        }
}

TEST_CASE("pooling kernels: random windows") {
  std::mt19937 dice(9);
  const int count = rlx::test::repetitions(400);
  for (const KernelTable* t : tables())
    for (int i = 0; i < count; ++i) {
      const auto draw = [&](std::int64_t from, std::int64_t to) {
        return from + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(to - from + 1));
      };
      WindowF32 w;
      w.fn = kFunctions[dice() % 4];
      w.rank = static_cast<int>(draw(1, 3));
      w.outer = draw(1, 4);
      w.inner = dice() % 2 == 0 ? 1 : draw(2, 40);
      for (int a = 0; a < w.rank; ++a) {
        w.n[a] = draw(0, w.rank == 1 ? 150 : 20);
        w.axes[a] = {draw(1, 5), draw(1, 4), draw(-1, 3), draw(-1, 3)};
        if (dice() % 5 == 0) w.axes[a].base = draw(1, 3);
        if (dice() % 5 == 0) w.axes[a].dilation = draw(1, 3);
        if (dice() % 4 == 0) w.axes[a] = {};
      }
      check_windows(t->isa, w, dice);
    }
}

}  // namespace rlx::cpu::test
