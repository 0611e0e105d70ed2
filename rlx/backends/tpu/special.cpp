// Special functions: of F32 and F64 in F64, where what CHLO makes of them is good to some units in the last place.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/backends/tpu/expression.h"

namespace rlx::tpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Term nearest(const Term& x) { return x.apply("round_nearest_even"); }
/// sum over k >= 0 of (q + k)^-s, q > 0.
Term zeta(const Term& q, double s) { return q.like(s).apply("chlo.zeta", q); }

}  // namespace

Term erfc(const Term& given) {
  const Term x = given.to(DType::F64), tail = erfc_f64(abs(x));
  return select(x < 0.0, 2.0 - tail, tail).to(given.dtype());
}

Term lgamma(const Term& x) { return x.to(DType::F64).apply("chlo.lgamma").to(x.dtype()); }

Term digamma(const Term& given) {
  const Term x = given.to(DType::F64);
  return select(x == 0.0, -1.0 / x, x.apply("chlo.digamma")).to(given.dtype());
}

// As the row of the table (ir/special_functions.h): below 0 by the sum over all integers, which repeats.
Term polygamma(const Term& given, double order) {
  if (order == 0) return digamma(given);
  const Term x = given.to(DType::F64);
  const double s = order + 1, even = std::fmod(s, 2) == 0 ? 1 : -1;
  const Term below = x <= 0.0, floor = x.apply("floor"), r = x - floor, pole = r == 0.0;
  const Term first = zeta(select(below, select(pole, 0.5, r), x), s);
  const Term turned = select(below & (r > 0.0), (floor + 1.0) - x, 0.5);
  const Term rest = zeta(turned, s) - zeta(1.0 - select(below, x, 0.0), s);
  Term z = select(below, even > 0 ? first + rest : first - rest, first);
  z = select(below & pole, even > 0 ? HUGE_VAL : kNan, z);
  z = select(x == HUGE_VAL, 0.0, z);
  Term power = 1.0 / x;  // at +-0
  if (even > 0) power = abs(power);
  z = select(x == 0.0, power, z);
  return (z * (even * std::tgamma(s))).to(given.dtype());
}

Term sinc(const Term& x) {
  const Term n = nearest(x), turn = (x - n) * std::numbers::pi;
  const Term y = turn.apply("sine") / (x * std::numbers::pi);
  return select(x == 0.0, 1.0, select(n.apply("remainder", n.like(2)) == 0.0, y, -y));
}

// F64: of the larger and the ratio, whose square does not overflow.
Term hypot(const Term& given_a, const Term& given_b) {
  const Term a = abs(given_a), b = abs(given_b);
  const Term infinite = (a == HUGE_VAL) | (b == HUGE_VAL);
  if (a.dtype() != DType::F64) {
    const Term x = a.to(DType::F64), y = b.to(DType::F64);
    return select(infinite, HUGE_VAL, sqrt(x * x + y * y).to(a.dtype()));
  }
  const Term high = max(a, b), ratio = min(a, b) / select(high == 0.0, 1.0, high);
  return select(infinite, HUGE_VAL, high * sqrt(ratio * ratio + 1.0));
}

Term logaddexp(const Term& given_a, const Term& given_b) {
  const Term a = given_a.to(DType::F64), b = given_b.to(DType::F64);
  const Term high = max(a, b), low = min(a, b);
  const Term y = high + log1p(exp(low - high));
  return select(abs(high) == HUGE_VAL, high, y).to(given_a.dtype());
}

}  // namespace rlx::tpu
