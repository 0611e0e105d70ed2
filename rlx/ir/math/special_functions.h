// Scalar special functions of the function tables, in double. They are C expressions, compiled and kept as text;
// function_table.h includes this file.
#pragma once

#include <math.h>  // NOLINT: the expressions are C, their names are global

#include <string_view>

namespace rlx {
namespace {  // NOLINT(google-build-namespaces): see function_table.h

/// Defines double NAME PARAMS BODY, and NAME_in_c with its text.
#define RLX_SPECIAL(name, params, ...)                                           \
  inline double name params __VA_ARGS__ constexpr std::string_view name##_in_c = \
      "double " #name #params " " #__VA_ARGS__;

// sin(pi x) / (pi x) by the distance to the next integer, which is exact: 0 at all integers except 0.
RLX_SPECIAL(sinc, (double x), {
  const double r = x - nearbyint(x);
  const double y = sin(3.14159265358979324 * r) / (3.14159265358979324 * x);
  return x == 0 ? 1.0 : fmod(nearbyint(x), 2) == 0 ? y : -y;
})

// The derivative of log |Gamma|. In [1, 2] it is the distance to its root 1.46.. times a Chebyshev series, which keeps
// the digits around the root. Elsewhere it uses psi(x + 1) = psi(x) + 1 / x, the asymptotic series (DLMF 5.11.2) and
// reflection (5.5.4).
RLX_SPECIAL(digamma, (double x), {
  if (x == 0) return -1 / x;
  double y = 0;
  if (x < 0) {
    const double r = x - nearbyint(x);
    if (!(r != 0)) return NAN;
    y = -3.14159265358979324 / tan(3.14159265358979324 * r);
    x = 1 - x;
  }
  if (x >= 10) {
    const double v = 1 / (x * x);
    double t = 0.083333333333333333;
    t = 0.021092796092796093 - t * v;
    t = 0.0075757575757575758 - t * v;
    t = 0.0041666666666666667 - t * v;
    t = 0.003968253968253968 - t * v;
    t = 0.0083333333333333333 - t * v;
    t = 0.083333333333333333 - t * v;
    return y + (log(x) - 0.5 / x - t * v);
  }
  if (x < 1) {
    y -= 1 / x;
    x += 1;
  }
  double sum = 0;
  for (; x > 2; x -= 1) sum += 1 / (x - 1);
  const double w = 2 * x - 3;
  const double c[] = {0.951055876031833,      -0.2118137106407303,     0.060135621060193475,  -0.018550615381735008,
                      0.005936795278436479,   -0.0019350666648613071,  0.0006368880282849916, -0.00021074841138175561,
                      6.995020506384849e-05,  -2.3258242519113285e-05, 7.741156049273805e-06, -2.578093954045772e-06,
                      8.59134317611421e-07,   -2.863161166883193e-07,  9.500659034300503e-08, -3.162911147408454e-08,
                      1.1039363482759935e-08, -3.7083753242807277e-09, 8.657533672812613e-10, -2.7580994814377e-10,
                      2.478695345606839e-10,  -8.50550766013261e-11};
  const double v = w * w;
  double p = c[20];
  double q = c[21];
  for (int i = 18; i >= 0; i -= 2) {
    p = p * v + c[i];
    q = q * v + c[i + 1];
  }
  p += w * q;
  return y + (sum + (x - 1.4616321449683622 - 9.549995429965697e-17) * p);
})

// The sum of (q + k)^-s over k >= 0 for integers s > 1 and q > 0: terms, then Euler-Maclaurin (DLMF 25.11.5).
RLX_SPECIAL(zeta_above, (double s, double q), {
  double y = 0;
  double w = q;
  for (; w < 12 || w < s + 10; w += 1) {
    const double term = pow(w, -s);
    y += term;
    if (!(term > y * 1e-18)) return y;
  }
  const double last = pow(w, -s);
  y += pow(w, 1 - s) / (s - 1) + 0.5 * last;
  const double b[] = {0.083333333333333333,   -0.0013888888888888889,  3.3068783068783069e-05, -8.2671957671957672e-07,
                      2.0876756987868099e-08, -5.2841901386874932e-10, 1.3382536530684679e-11, -3.3896802963225829e-13,
                      8.5860620562778446e-15, -2.1748686985580619e-16, 5.5090028283602295e-18, -1.3954464685812523e-19};
  double f = s * last / w;
  for (int i = 0; i < 12; ++i) {
    y += b[i] * f;
    f *= (s + 2 * i + 1) * (s + 2 * i + 2) / (w * w);
  }
  return y;
})

// The n-th derivative of digamma for whole n: (-1)^(n+1) n! times the sum of (x + k)^-(n+1) over k >= 0. For x below 0
// that sum is the sum over all integers, which is periodic in x, minus the sum over k < 0.
RLX_SPECIAL(polygamma, (double x, double n), {
  if (n == 0) return digamma(x);
  const double s = n + 1;
  const double even = fmod(s, 2) == 0 ? 1.0 : -1.0;
  if (x == 0) return even * pow(x, -s);
  double z = 0;
  if (x > 0) {
    z = x == HUGE_VAL ? 0.0 : zeta_above(s, x);
  } else {
    const double r = x - floor(x);
    if (!(r >= 0)) return NAN;
    if (r == 0) return even > 0 ? HUGE_VAL : NAN;
    z = zeta_above(s, r) + even * (zeta_above(s, floor(x) + 1 - x) - zeta_above(s, 1 - x));
  }
  return even * tgamma(s) * z;
})

// log(1 + x) - x without loss of digits for small x.
RLX_SPECIAL(log1p_rest, (double x), {
  if (fabs(x) > 0.5) return log1p(x) - x;
  const double t = x / (2 + x);
  const double v = t * t;
  double p = 0;
  for (int i = 20; i > 0; --i) p = 1.0 / (2 * i + 1) + p * v;
  return 2 * t * v * p - x * t;
})

// x^a e^-x / Gamma(a + 1), for large a by Stirling's series around x = a. Far below a the difference x - a has lost the
// digits of x.
RLX_SPECIAL(gamma_front, (double a, double x), {
  if (a < 10) return pow(x, a) * exp(-x) / tgamma(a + 1);
  const double v = 1 / (a * a);
  double t = 0.0064102564102564103;
  t = 0.0019175269175269175 - t * v;
  t = 0.00084175084175084175 - t * v;
  t = 0.00059523809523809524 - t * v;
  t = 0.00079365079365079365 - t * v;
  t = 0.0027777777777777778 - t * v;
  t = 0.083333333333333333 - t * v;
  const double m = (x - a) / a;
  const double u = m < -0.5 ? log(x / a) - m : log1p_rest(m);
  return exp(a * u - t / a) / sqrt(6.28318530717958648 * a);
})

// The regularised incomplete gamma functions of a > 0 and 0 < x < infinity: P (which = 0), Q (1), dP/da (2). For x
// below a + 1 by the series of P (DLMF 8.11.4), above by the continued fraction of Q (8.9.2) after Lentz, each together
// with its derivative. For very large a by Temme's expansion (8.12.3).
RLX_SPECIAL(gamma_part, (double a, double x, int which), {
  if (a >= 1e6) {
    const double m = (x - a) / a;
    const double h = -2 * log1p_rest(m);
    const double e = m < 0 ? -sqrt(h) : sqrt(h);
    const double g = exp(-0.5 * a * h) / sqrt(6.28318530717958648 * a);
    const double c0 =
        -1.0 / 3 + e * (1.0 / 12 + e * (-2.0 / 135 + e * (1.0 / 864 + e * (1.0 / 2835 - e * 139.0 / 777600))));
    const double c1 = -1.0 / 540 + e * (-1.0 / 288 + e * 25.0 / 12096);
    const double s = g * (c0 + c1 / a);
    if (which == 0) return 0.5 * erfc(-e * sqrt(0.5 * a)) - s;
    if (which == 1) return 0.5 * erfc(e * sqrt(0.5 * a)) + s;
    if (!(g > 0)) return 0;
    const double l = log1p(m);
    const double slope = 1.0 / 12 + e * (-4.0 / 135 + e * (1.0 / 288 + e * 4.0 / 2835));
    const double u = fabs(e) < 1e-12 ? 1.0 : l / e;
    const double v = fabs(e) < 1e-12 ? 1.0 : m / e;
    return -g * u - s * (l - 0.5 / a) + g * slope * v / a;
  }
  const double front = gamma_front(a, x);
  if (x < a + 1) {
    double term = 1;
    double sum = 1;
    double rate = 0;
    double slope = 0;
    for (int i = 1; i < 100000; ++i) {
      term *= x / (a + i);
      rate += 1 / (a + i);
      sum += term;
      slope -= term * rate;
      if (!(term * (1 + rate) > 1e-17 * sum)) break;
    }
    if (which == 2) return front * ((log(x) - digamma(a + 1)) * sum + slope);
    return which == 0 ? front * sum : 1 - front * sum;
  }
  double b = x + 1 - a;
  double c = 1e300;
  double dc = 0;
  double d = 1 / b;
  double dd = d * d;
  double h = d;
  double dh = dd;
  for (int i = 1; i < 100000; ++i) {
    const double n = i * (a - i);
    b += 2;
    const double r = 1 / (n * d + b);
    dd = -r * r * (i * d + n * dd - 1);
    d = r;
    dc = -1 + (i - n * dc / c) / c;
    c = b + n / c;
    const double f = c * d;
    const double slope = dc * d + c * dd;
    dh = dh * f + h * slope;
    h *= f;
    if (!(fabs(f - 1) > 1e-16) && !(which == 2 && fabs(slope) > 1e-16)) break;
  }
  if (which == 2) return -front * a * ((log(x) - digamma(a)) * h + dh);
  return which == 1 ? front * a * h : 1 - front * a * h;
})
RLX_SPECIAL(igamma, (double a, double x), {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (a == HUGE_VAL && x == HUGE_VAL)) return NAN;
  if (x == 0 || a == HUGE_VAL) return 0;
  return a == 0 || x == HUGE_VAL ? 1.0 : gamma_part(a, x, 0);
})
RLX_SPECIAL(igammac, (double a, double x), {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (a == HUGE_VAL && x == HUGE_VAL)) return NAN;
  if (x == 0 || a == HUGE_VAL) return 1;
  return a == 0 || x == HUGE_VAL ? 0.0 : gamma_part(a, x, 1);
})
RLX_SPECIAL(igamma_grad_a, (double a, double x), {
  if (!(a > 0) || !(x >= 0) || (a == HUGE_VAL && x == HUGE_VAL)) return NAN;
  return x == 0 || a == HUGE_VAL || x == HUGE_VAL ? 0.0 : gamma_part(a, x, 2);
})

// log(e^a + e^b) without overflow of the exponentials.
RLX_SPECIAL(logaddexp, (double a, double b), {
  if (a == b) return a + 0.69314718055994531;
  const double r = a - b;
  return r > 0 ? a + log1p(exp(-r)) : r <= 0 ? b + log1p(exp(r)) : r;
})
#undef RLX_SPECIAL

constexpr std::string_view kSpecialHelpers[] = {sinc_in_c,       digamma_in_c,       zeta_above_in_c, polygamma_in_c,
                                                log1p_rest_in_c, gamma_front_in_c,   gamma_part_in_c, igamma_in_c,
                                                igammac_in_c,    igamma_grad_a_in_c, logaddexp_in_c};

}  // namespace
}  // namespace rlx
