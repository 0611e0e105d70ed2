// Special functions, computed in F64 for F32 and F64. CHLO's functions are used where they are accurate to some units
// in the last place.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/backends/tpu/expression.h"

namespace rlx::tpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Term nearest(const Term& x) { return x.apply("round_nearest_even"); }
/// The sum over k >= 0 of (q + k)^-s, for q > 0.
Term zeta(const Term& q, double s) { return q.like(s).apply("chlo.zeta", q); }

}  // namespace

// Around its roots 1 and 2 it is the distance to them times a Chebyshev series, as CHLO has an absolute error relative
// to 1 there.
Term lgamma(const Term& given) {
  static constexpr double kAtOne[] = {
      -0.5772156649015329,   0.8224670334241131,   -0.4006856343865412,  0.2705808084278366,   -0.20738555102616543,
      0.1695571769888392,    -0.1440498970225762,  0.12550967018227932,  -0.11133425250711947, 0.10009942900736879,
      -0.09095443749385229,  0.08335461458595932,  -0.07692398168109266, 0.07141895655769624,  -0.0667857419916784,
      0.06267540247447202,   -0.05771329482430375, 0.05402684381687545,  -0.05998208640697898, 0.05945369312534371,
      -0.014018465256740777, 0.00471934060040921,  -0.14615630186062883, 0.1597915748331983,   0.15451312846864573,
      -0.17487580734478056,  -0.22572465091022628, 0.23325420200258892};
  static constexpr double kAtTwo[] = {
      0.42278433509846713,     0.32246703342411326,    -0.06735230105319814,   0.020580808427780335,
      -0.007385551028668096,   0.002890510331036772,   -0.0011927539120033873, 0.0005096695153484373,
      -0.00022315475069647703, 9.945767440096764e-05,  -4.492635166770342e-05, 2.0505584372896933e-05,
      -9.438454884054723e-06,  4.3847319318293745e-06, -2.044935323180052e-06, 9.199898075671394e-07,
      -4.303234692956732e-07,  2.7880013392491846e-07, -1.341570273460026e-07};
  const Term x = given.to(DType::F64), to_one = x - 1.0, to_two = x - 2.0;
  const Term near = select(x < 1.5, to_one * polynomial(to_one, kAtOne), to_two * polynomial(to_two, kAtTwo));
  return select((x >= 0.5) & (x <= 2.5), near, x.apply("chlo.lgamma")).to(given.dtype());
}

// The same formula as in ir/math/special_functions.h, with all branches evaluated. Around the root CHLO has an absolute
// error relative to 1.
Term digamma(const Term& given) {
  static constexpr double kSeries[] = {
      0.951055876031833,      -0.2118137106407303,     0.060135621060193475,  -0.018550615381735008,
      0.005936795278436479,   -0.0019350666648613071,  0.0006368880282849916, -0.00021074841138175561,
      6.995020506384849e-05,  -2.3258242519113285e-05, 7.741156049273805e-06, -2.578093954045772e-06,
      8.59134317611421e-07,   -2.863161166883193e-07,  9.500659034300503e-08, -3.162911147408454e-08,
      1.1039363482759935e-08, -3.7083753242807277e-09, 8.657533672812613e-10, -2.7580994814377e-10,
      2.478695345606839e-10,  -8.50550766013261e-11};
  static constexpr double kFar[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12};
  const Term x = given.to(DType::F64), below = x < 0.0;
  const Term turn = x - nearest(x);
  const Term cotangent = turn.like(-std::numbers::pi) / (turn * std::numbers::pi).apply("tan");
  const Term a = select(below, 1.0 - x, x);
  const Term v = 1.0 / (a * a);
  const Term far = log(a) - 0.5 / a - v * polynomial(v, kFar);
  const Term small = a < 1.0;
  Term near = select(small, a + 1.0, min(a, 10.0)), sum = select(small, -1.0 / a, a.like(0));
  for (int i = 0; i < 8; ++i) {
    const Term above = near > 2.0, next = near - 1.0;
    sum = sum + select(above, 1.0 / next, 0.0);
    near = select(above, next, near);
  }
  // The root in two parts. `rest` depends on x, as XLA would fold two constants into one.
  const Term rest = select(near == near, 9.549995429965697e-17, near);
  const Term distance = (near - 1.4616321449683622) - rest;
  const Term mid = sum + distance * polynomial(near * 2.0 - 3.0, kSeries);
  const Term y = select(a < 10.0, mid, far) + select(below, cotangent, 0.0);
  const Term pole = below & (turn == 0.0);
  return select(pole, kNan, select(x == 0.0, -1.0 / x, y)).to(given.dtype());
}

// The same formula as in ir/math/special_functions.h. Below 0 it uses the sum over all integers, which is periodic.
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
  Term power = 1.0 / x;  // the value at +-0
  if (even > 0) power = abs(power);
  z = select(x == 0.0, power, z);
  return (z * (even * std::tgamma(s))).to(given.dtype());
}

Term sinc(const Term& x) {
  const Term n = nearest(x), turn = (x - n) * std::numbers::pi;
  const Term y = turn.apply("sine") / (x * std::numbers::pi);
  return select(x == 0.0, 1.0, select(n.apply("remainder", n.like(2)) == 0.0, y, -y));
}

// F64: computed from the larger number and the ratio, whose square does not overflow.
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
