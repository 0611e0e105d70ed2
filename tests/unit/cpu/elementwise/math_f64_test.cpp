// F64 vector math of every instruction set against libm in extended precision: the ulp bounds stated in math_f64.inc,
// special values, and results that depend on their own operand alone.
#include <algorithm>
#include <bit>
#include <string>

#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"
#include "rlx/ir/functions.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

using Real = long double;
using A = ActivationKind;

std::string function_text(A fn) { return std::string(EnumNames<A>::values[static_cast<std::size_t>(fn)]); }

struct WideCase {
  A fn;
  Real (*f)(Real);
  double ulp;
};

Real softplus_w(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
Real sigmoid_w(Real x) {
  const Real e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
Real vanish_w(Real x) { return std::max(x, Real(-2000)); }
Real mish_w(Real x) {
  const Real e = std::exp(vanish_w(std::min(x, Real(60))));
  return vanish_w(x) * (e * (e + 2) / (e * (e + 2) + 2));
}
// For x / sqrt(2), rounded as in the definition.
Real gelu_w(Real x) {
  const auto z = static_cast<double>(static_cast<double>(-x) * 0.70710678118654752440);
  return 0.5L * vanish_w(x) * std::erfc(static_cast<Real>(z));
}
Real softsign_w(Real x) { return std::isinf(x) ? std::copysign(Real(1), x) : x / (1 + std::fabs(x)); }
Real tan_w(Real x) { return std::tan(x); }

const WideCase kWideCases[] = {
    {A::Exp, [](Real x) { return std::exp(x); }, 1},
    {A::Expm1, [](Real x) { return std::expm1(x); }, 1.8},
    {A::Exp2, [](Real x) { return std::exp2(x); }, 1},
    {A::Log, [](Real x) { return std::log(x); }, 0.9},
    {A::Log1p, [](Real x) { return std::log1p(x); }, 1.2},
    {A::Log2, [](Real x) { return std::log2(x); }, 1},
    {A::Log10, [](Real x) { return std::log10(x); }, 1},
    {A::Sin, [](Real x) { return std::sin(x); }, 0.9},
    {A::Cos, [](Real x) { return std::cos(x); }, 0.9},
    {A::Tan, tan_w, 2.4},
    {A::Atan, [](Real x) { return std::atan(x); }, 1.5},
    {A::Asin, [](Real x) { return std::asin(x); }, 1.6},
    {A::Acos, [](Real x) { return std::acos(x); }, 1.5},
    {A::Sinh, [](Real x) { return std::sinh(x); }, 2.4},
    {A::Cosh, [](Real x) { return std::cosh(x); }, 1.4},
    {A::Tanh, [](Real x) { return std::tanh(x); }, 2.5},
    {A::Asinh, [](Real x) { return std::asinh(x); }, 2.5},
    {A::Acosh, [](Real x) { return std::acosh(x); }, 2.5},
    {A::Atanh, [](Real x) { return std::atanh(x); }, 2},
    {A::Cbrt, [](Real x) { return std::cbrt(x); }, 0.8},
    {A::Sigmoid, sigmoid_w, 2.2},
    {A::Silu, [](Real x) { return vanish_w(x) * sigmoid_w(x); }, 2.8},
    {A::Mish, mish_w, 4.4},
    {A::Softplus, softplus_w, 2},
    {A::LogSigmoid, [](Real x) { return -softplus_w(-x); }, 2},
    {A::Erf, [](Real x) { return std::erf(x); }, 1.2},
    {A::Erfc, [](Real x) { return std::erfc(x); }, 2.8},
    {A::Gelu, gelu_w, 3.4},
    {A::Softsign, softsign_w, 1.5},
    {A::Sqrt, [](Real x) { return std::sqrt(x); }, 0.5},
    {A::Rsqrt, [](Real x) { return 1 / std::sqrt(x); }, 1.5},
    {A::Recip, [](Real x) { return 1 / x; }, 0.5},
    {A::Square, [](Real x) { return x * x; }, 0.5},
    {A::Floor, [](Real x) { return std::floor(x); }, 0},
    {A::Ceil, [](Real x) { return std::ceil(x); }, 0},
    {A::Trunc, [](Real x) { return std::trunc(x); }, 0},
    {A::Round, [](Real x) { return std::nearbyint(x); }, 0},
    {A::Neg, [](Real x) { return -x; }, 0},
    {A::Abs, [](Real x) { return std::fabs(x); }, 0},
    {A::Relu, [](Real x) { return x < 0 ? Real(0) : x; }, 0},
};

/// Doubles of every sign and exponent, including both ends of each binade, and special operands of functions.
std::vector<double> wide_sweep(int per_binade) {
  std::vector<double> out;
  std::mt19937_64 rng(11);
  for (std::uint64_t high = 0; high < 4096; ++high)
    for (int i = 0; i < per_binade + 3; ++i) {
      const std::uint64_t all = (1ULL << 52) - 1, m = i < 2 ? static_cast<std::uint64_t>(i) : i < 3 ? all : rng() & all;
      out.push_back(std::bit_cast<double>(high << 52 | m));
    }
  std::uniform_real_distribution<double> unit(-1, 1);
  for (const double span : {1.0, 3.0, 8.0, 40.0, 800.0, 1e5, 9e5})
    for (int i = 0; i < 400 * per_binade; ++i) out.push_back(unit(rng) * span);
  for (int i = -2000; i <= 2000; ++i) {  // multiples of pi / 2 and their neighbours, where sine or cosine is nearly 0
    const double x = static_cast<double>(i) * 1.5707963267948966;
    out.insert(out.end(), {x, std::nextafter(x, 1e9), std::nextafter(x, -1e9), static_cast<double>(i) * 0.5});
  }
  return out;
}

/// The error in ulp of a double at `want`, as kernel_test.h does for floats.
double wide_ulps(double got, Real want) {
  const double rounded = static_cast<double>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : 1e300;
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : std::fabs(got) > 1.797e308 || std::fabs(want) > 1.797e308L ? 1 : 1e300;
  int e = 0;
  std::frexp(rounded, &e);
  const Real unit = std::ldexp(Real(1), std::max(e - 53, -1074));
  return static_cast<double>(std::fabs(static_cast<Real>(got) - want) / unit);
}

std::vector<double> f64_run(const F64Kernels& k, A fn, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  BlockArgs args;
  args.fn = static_cast<int>(fn);
  args.params = {1, 0};
  k.unary(x.data(), nullptr, nullptr, y.data(), static_cast<int>(x.size()), args);
  return y;
}

TEST_CASE("wide math: every function over every exponent, in ulp against long doubles") {
  if (std::numeric_limits<Real>::digits < 64) return;  // no wider type to compare with
  int per_binade = 8;
  if (const char* more = std::getenv("RLX_SWEEP")) per_binade = std::atoi(more);
  const std::vector<double> values = wide_sweep(per_binade);
  for (const WideCase& c : kWideCases) {
    std::vector<Real> want(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) want[i] = c.f(static_cast<Real>(values[i]));
    for (const KernelTable* t : tables()) {
      const std::vector<double> got = f64_run(f64_kernels(t->isa), c.fn, values);
      double worst = -1, at = 0;
      int signs = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double e = wide_ulps(got[i], want[i]);
        if (!(e <= worst)) worst = e, at = values[i];
        if (got[i] == 0 && want[i] == 0 && std::signbit(got[i]) != std::signbit(want[i])) ++signs;
      }
      CAPTURE(isa_name(t->isa));
      CAPTURE(at);
      INFO(function_text(c.fn));
      CAPTURE(worst);
      if (std::getenv("RLX_SWEEP")) MESSAGE(isa_name(t->isa), " ", function_text(c.fn), " ", worst, " at ", at);
      CHECK(worst <= c.ulp);
      CHECK(signs == 0);
    }
  }
}

TEST_CASE("wide math: erfinv inverts, its ends and what lies outside") {
  std::vector<double> x = {0.0, -0.0, 1.0, -1.0, 1.5, -2.0, std::numeric_limits<double>::quiet_NaN(), 5e-324, 1e-300};
  std::mt19937_64 rng(3);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 4000; ++i) x.push_back(unit(rng));
  for (int e = 1; e <= 53; ++e)
    for (int i = 0; i < 20; ++i) x.push_back(1 - std::ldexp(1 + std::fabs(unit(rng)), -e - 1));
  x.push_back(1 - 0x1p-53);
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    const std::vector<double> y = f64_run(f64_kernels(t->isa), A::Erfinv, x);
    double worst = 0, at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Real a = std::fabs(x[i]);
      if (!(a < 1)) {
        CHECK((a == 1 ? y[i] == std::copysign(HUGE_VAL, x[i]) : std::isnan(y[i])));
        continue;
      }
      Real exact = std::fabs(y[i]);  // plus a Newton step
      const Real e = a < 0.5L ? std::erf(exact) - a : (1 - a) - std::erfc(exact);
      exact -= e * 0.886226925452758013649083741670572591L * std::exp(exact * exact);
      const double apart = wide_ulps(y[i], std::copysign(exact, static_cast<Real>(x[i])));
      if (apart > worst) worst = apart, at = x[i];
      if (x[i] == 0) CHECK(std::signbit(y[i]) == std::signbit(x[i]));
    }
    CAPTURE(at);
    CHECK(worst <= 4);
    if (std::getenv("RLX_SWEEP")) MESSAGE(isa_name(t->isa), " erfinv ", worst, " at ", at);
  }
}

struct WidePair {
  BinaryKind fn;
  Real (*f)(Real, Real);
  double ulp;
};
const WidePair kWidePairs[] = {
    {BinaryKind::Pow, [](Real a, Real b) { return std::pow(a, b); }, 1},
    {BinaryKind::Atan2, [](Real a, Real b) { return std::atan2(a, b); }, 1.8},
    {BinaryKind::Hypot, [](Real a, Real b) { return std::hypot(a, b); }, 1.1},
    {BinaryKind::Div, [](Real a, Real b) { return a / b; }, 0.5},
};

TEST_CASE("wide math: functions of two operands, special values among them") {
  if (std::numeric_limits<Real>::digits < 64) return;
  const double inf = HUGE_VAL, nan = std::numeric_limits<double>::quiet_NaN();
  const double special[] = {0.0, -0.0, 1.0,    -1.0,   2.0,     -2.0,  0.5,    -3.0,   inf,   -inf,
                            nan, 3.0,  1e-310, 1e-320, -1e-310, 1e308, -1e300, 1e-200, 709.5, 53.0};
  std::vector<double> a, b;
  for (const double x : special)
    for (const double y : special) a.push_back(x), b.push_back(y);
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 4000; ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(unit(rng) * 12));
    a.push_back(i % 3 == 0 ? unit(rng) * scale : std::fabs(unit(rng)) * scale);
    b.push_back(i % 5 == 0 ? std::nearbyint(unit(rng) * 20) : unit(rng) * 40);
  }
  for (int i = 0; i < 1000; ++i) {  // powers near 1 of large exponents, and results near the ends of the range
    a.push_back(1 + unit(rng) * 1e-3), b.push_back(unit(rng) * 7e5);
    a.push_back(std::exp(unit(rng) * 700)), b.push_back(1 + unit(rng) * 0.1);
  }
  for (const WidePair& c : kWidePairs) {
    for (const KernelTable* t : tables()) {
      std::vector<double> y(a.size());
      BlockArgs args;
      args.fn = static_cast<int>(c.fn);
      f64_kernels(t->isa).binary(a.data(), b.data(), nullptr, y.data(), static_cast<int>(a.size()), args);
      double worst = 0;
      std::size_t at = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const Real want = c.f(static_cast<Real>(a[i]), static_cast<Real>(b[i]));
        const double e = wide_ulps(y[i], want);
        if (!(e <= worst)) worst = e, at = i;
        if (y[i] == 0 && want == 0) CHECK(std::signbit(y[i]) == std::signbit(want));
      }
      CAPTURE(isa_name(t->isa));
      CAPTURE(a[at]);
      CAPTURE(b[at]);
      INFO(std::string(EnumNames<BinaryKind>::values[static_cast<std::size_t>(c.fn)]));
      CAPTURE(worst);
      CHECK(worst <= c.ulp);
    }
  }
}

TEST_CASE("wide math: the rules of the function table, where long doubles have none") {
  const std::vector<double> values = wide_sweep(2);
  for (const A fn : {A::GeluApprox, A::Sinc, A::HardSwish, A::HardSigmoid, A::LeakyRelu, A::Elu, A::Sign}) {
    for (const KernelTable* t : tables()) {
      CAPTURE(isa_name(t->isa));
      INFO(function_text(fn));
      std::vector<double> y(values.size());
      BlockArgs args;
      args.fn = static_cast<int>(fn);
      args.params = {fn == A::LeakyRelu ? 0.01 : 1.0, 0};
      f64_kernels(t->isa).unary(values.data(), nullptr, nullptr, y.data(), static_cast<int>(y.size()), args);
      int wrong = 0;
      double at = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double want = function_row(fn).real(values[i]);
        if (!(wide_ulps(y[i], static_cast<Real>(want)) <= 8)) ++wrong, at = values[i];
        if (y[i] == 0 && want == 0 && std::signbit(y[i]) != std::signbit(want)) ++wrong, at = values[i];
      }
      CAPTURE(at);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("wide math: a result depends on its own operand alone, and nothing beyond the end is touched") {
  const std::vector<double> sweep = wide_sweep(1);
  std::vector<double> values;
  for (std::size_t i = 0; i < sweep.size(); i += 7) values.push_back(sweep[i]);
  for (int f = 0; f < kNumActivationKinds; ++f) {
    const A fn = static_cast<A>(f);
    if (!f64_has(fn)) continue;
    for (const KernelTable* t : tables()) {
      CAPTURE(isa_name(t->isa));
      INFO(function_text(fn));
      const std::vector<double> all = f64_run(f64_kernels(t->isa), fn, values);
      BlockArgs args;
      args.fn = f;
      args.params = {1, 0};
      for (int n : {1, 2, 3, 5, 7, 9, 13, 16, 17}) {
        std::vector<double> y(static_cast<std::size_t>(n) + 2, 77.0);
        std::vector<double> x(values.begin() + 300 + 17 * n, values.begin() + 300 + 18 * n);
        f64_kernels(t->isa).unary(x.data(), nullptr, nullptr, y.data() + 1, n, args);
        bool same = y.front() == 77 && y.back() == 77;
        for (int i = 0; i < n; ++i)
          same = same && std::bit_cast<std::uint64_t>(y[static_cast<std::size_t>(i) + 1]) ==
                             std::bit_cast<std::uint64_t>(all[static_cast<std::size_t>(300 + 17 * n + i)]);
        CHECK(same);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
