// Functions of F32 and F64 in which XLA is less accurate than a few ulp. On XLA's CPU backend tanh, erf and expm1 of
// F32 are 5 to 7 ulp off, log1p of F64 is 100 ulp off, and erfc, sinh and cosh are worse near the ends of their ranges.
// The comment of each function gives the largest error that tests/unit/tpu measured.
//
// Compilers may contract a product and a sum into one rounding, but do not reorder these formulas. Formulas that XLA's
// simplifier would reorder (sums with constants, products of exponentials) are avoided.
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/backends/tpu/expression.h"
#include "rlx/ir/math/erfinv_fit.h"

namespace rlx::tpu {
namespace {

constexpr double kLn2 = std::numbers::ln2;

bool is_f64(const Term& x) { return x.dtype() == DType::F64; }
/// A constant that depends on the precision.
double by(const Term& x, double f32, double f64) { return is_f64(x) ? f64 : f32; }

Term round(const Term& x) { return x.apply("round_nearest_even"); }

/// 2^n for an integer n in the range of normal exponents.
Term power_of_two(const Term& n) {
  const bool wide = is_f64(n);
  Writer& w = n.writer();
  const Term biased = n.to(wide ? DType::I64 : DType::I32) + (wide ? 1023.0 : 127.0);
  const Term bits = biased.apply("shift_left", biased.like(wide ? 52 : 23));
  return {w, w.bitcast(bits.value(), n.dtype())};
}

/// x without the low half of its significand, so that products of two such numbers are exact.
Term head_of(const Term& x) {
  Writer& w = x.writer();
  const DType t = is_f64(x) ? DType::U64 : DType::U32;
  const Hlo mask = w.broadcast(w.scalar_bits(t, is_f64(x) ? ~0x7ffffffULL : 0xfffff000U), x.value().dims, {});
  return {w, w.bitcast(w.both(w.bitcast(x.value(), t), mask), x.dtype())};
}

/// An unevaluated sum of two numbers. The second is smaller than the last place of the first.
struct Pair {
  Term high, low;
};
Pair sum_of(const Term& larger, const Term& smaller) {
  const Term s = larger + smaller;
  return {s, (larger - s) + smaller};
}
Pair square_of(const Term& a) {
  const Term h = head_of(a);
  return sum_of(h * h, (a + h) * (a - h));
}

/// exp(r) - 1 for |r| <= ln(2) / 2.
Term expm1_reduced(const Term& r) {
  static constexpr double kF32[] = {0.4999999344364586, 0.16666520571298005, 0.04166838877704816, 0.008368724147106345,
                                    0.0013814581762046862};
  static constexpr double kF64[] = {1. / 2,       1. / 6,        1. / 24,        1. / 120,
                                    1. / 720,     1. / 5040,     1. / 40320,     1. / 362880,
                                    1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
  const Term q = is_f64(r) ? polynomial(r, kF64) : polynomial(r, kF32);
  return q * r * r + r;
}

/// exp(-u) for u >= 0 as up * down. `up` is normal down to where the smallest numbers times `u` are; `u` is clamped at
/// deep(u).
struct Decay {
  Term up, down;
};
double deep(const Term& u) { return by(u, 120, 780); }
Decay decay(const Term& u) {
  const double shift = by(u, 32, 64);
  const Term far = u > by(u, 64, 640);
  const Term s = select(far, shift, u.like(0));  // u - shift is exact here
  return {exp(s - u), select(far, std::exp(-shift), u.like(1))};
}

/// x sigmoid(u), where u has the sign of x, |u| = size, and E is exp(-size).
Term gate(const Term& x, const Term& size, const Decay& e) {
  const Term over = e.up * e.down + 1.0;
  return select(x < 0.0, max(x, -size.like(1) * deep(size)) * e.up / over * e.down, x / over);
}

/// exp(a^2 / 2) Phi(-a) in F32, where Phi is the normal distribution. It is evaluated at the multiple of 2^-19 next to
/// a, where neither a + 2.5 nor a - 2.5 is rounded: 1 / (a + 2.5) times a polynomial in (a - 2.5) / (a + 2.5), rlx's
/// own fit (relative error 3e-8). `slope` is the derivative at that point, and `rest` is the remainder of a.
struct ScaledTail {
  Term value, slope, rest;
};
ScaledTail scaled_tail(const Term& a) {
  static constexpr double kTail[] = {0.7066566348075867,     -0.4336921274662018,   0.13198786973953247,
                                     0.009237708523869514,   -0.016392327845096588, -0.0016095744213089347,
                                     0.0025382712483406067,  0.00070127536309883,   -0.0003223884850740433,
                                     -0.00016925708041526377};
  const Term at = round(a * 0x1p19) * 0x1p-19, to = at + 2.5;
  const Term value = polynomial((at - 2.5) / to, kTail) / to;
  return {value, at * value - 0.3989422804014327, a - at};
}

}  // namespace

// exp(-x^2) / (x + 2.5) times a polynomial like that of scaled_tail (relative error 2e-17).
Term erfc_f64(const Term& x) {
  static constexpr double kScaled[] = {
      1.054031820305718,       -0.8046518494391481,    0.45391411664809606,     -0.17125114524611904,
      0.02836155013199473,     0.008393044304762171,   -0.004818785523205377,   -0.00043920830010581554,
      0.0007026937233533891,   5.8308058735361604e-05, -0.00011260482456045286, -1.953333845777584e-05,
      1.8244308800215586e-05,  6.757380560429954e-06,  -2.3319948528866095e-06, -1.968137420877816e-06,
      -6.745419093408688e-09,  4.542632669297592e-07,  1.3921099556569646e-07,  -7.419956065343542e-08,
      -5.3689273590814675e-08, 6.462039521335913e-09,  1.1361665461077836e-08,  -3.4673885145664285e-11,
      -1.1394337576305021e-09};
  const Term a = min(x, 28.0), to = a + 2.5;
  const Pair z = square_of(a);
  const Term e = exp(-z.high);
  return polynomial((a - 2.5) / to, kScaled) / to * (e - e * z.low);
}

// A select that neither XLA's simplifier nor the compiler can fold prevents the contraction.
Hlo product(Writer& w, const Hlo& a, const Hlo& b) {
  const Hlo y = w.mul(a, b);
  if (y.dtype != DType::F64) return y;
  return w.select(w.compare("EQ", y, y), y, std::numeric_limits<double>::quiet_NaN());
}

Term copysign(const Term& x, const Term& s) {
  const Term size = abs(x);
  Writer& w = s.writer();
  const DType t = is_f64(s) ? DType::I64 : DType::I32;  // the sign is tested by its bit, as -0 < 0 is false
  const Term negative = Term(w, w.bitcast(s.value(), t)) < 0.0;
  return select(negative, -size, size);
}

// max 1.6 ulp
Term expm1(const Term& x) {
  const Term c = min(max(x, by(x, -30, -60)), by(x, 89, 710));  // NaN is kept
  const Term n = round(c * (1 / kLn2));
  const Term r = (c - n * by(x, 0.693359375, 0x1.62e42feep-1)) - n * by(x, -2.12194440e-4, 1.90821492927058770002e-10);
  const Term p = expm1_reduced(r);
  const Term half = power_of_two(n - 1.0);  // 2^128 would overflow before p is known
  return select(abs(x) < by(x, 1e-9, 1e-17), x, (half * p + (half - 0.5)) * 2.0);
}

// F32 2.5, F64 2.5
Term log1p(const Term& x) {
  if (!is_f64(x)) return x.apply("log_plus_one");
  static constexpr double kSeries[] = {1,       1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11, 1. / 13,
                                       1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23, 1. / 25};
  const Term s = x / (x + 2.0);  // log(1 + x) = 2 atanh(s)
  const Term near = s * 2.0 * polynomial(s * s, kSeries);
  return select(abs(x) < 1e-17, x, select(abs(x) < 0.375, near, log(x + 1.0)));
}

// max 1.5 ulp
Term tanh(const Term& x) {
  const Term a = abs(x);
  if (is_f64(x)) {
    const Term e = expm1(min(a, 20.0) * 2.0);
    return copysign(e / (e + 2.0), x);
  }
  static constexpr double kNear[] = {-0.3333326052597661, 0.13331127516691446, -0.053721066611044345,
                                     0.020590984215740186, -0.005659984807695788};
  const Term z = x * x;
  const Term near = polynomial(z, kNear) * z * a + a;
  const Term far = 1.0 - 2.0 / (exp(a + a) + 1.0);
  // NaN takes the polynomial, as XLA's exp of a NaN constant may be a number.
  return copysign(select(a >= 0.625, far, near), x);
}

// F32 1.5, F64 1
Term erf(const Term& x) {
  if (is_f64(x)) {
    Writer& w = x.writer();
    return {w, w.op("chlo.erf", x.value())};
  }
  static constexpr double kNear[] = {0.1283791670580219,     -0.3761263843465026,   0.11283781974097996,
                                     -0.026865400041806084,  0.005220945432090817,  -0.0008482828837451664,
                                     0.00011256947868987523, -9.641516011374925e-06};
  static constexpr double kFar[] = {-0.00017055203093064878, 1.129495159060096,     0.633386646560743,
                                    0.10823661933236454,     -0.025091496779984818, 0.004160526993326608,
                                    -0.00043230300526666393, 2.090955560545326e-05};
  const Term a = abs(x), z = x * x;
  const Term near = polynomial(z, kNear) * a + a;
  const Term far = 1.0 - exp(-polynomial(min(a, 4.0), kFar));
  return copysign(select(a >= 1.0, far, near), x);
}

// Computed in F64 with ir/math/erfinv_fit.h.
Term erfinv(const Term& given) {
  const Term x = given.to(DType::F64), a = abs(x);
  const Term w = -log((1.0 - a) * (a + 1.0)), u = sqrt(w);
  const Term outside = select(w > 16.0, polynomial(u - 5.05, erfinv_fit::kEnd), polynomial(u - 3.25, erfinv_fit::kFar));
  const Term y = select(w > 6.25, outside, polynomial(w - 3.125, erfinv_fit::kNear)) * a;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return copysign(select(a < 1.0, y, select(a == 1.0, HUGE_VAL, a.like(nan))), x).to(given.dtype());
}

// Where the exponential overflows, half of it may not.
// max 3.5 ulp
Term sinh(const Term& x) {
  const Term a = abs(x), e = expm1(min(a, 20.0));
  const Term near = (e + e / (e + 1.0)) * 0.5;
  const Term half = exp(a * 0.5);
  return copysign(select(a < 20.0, near, half * 0.5 * half), x);
}
// max 3 ulp
Term cosh(const Term& x) {
  const Term half = exp(abs(x) * 0.5);
  return half * 0.5 * half + 0.5 / half / half;
}

// max 3.5 ulp
Term asinh(const Term& x) {
  const Term a = abs(x), c = min(a, 1e9);
  const Term near = log1p(c + c * c / (sqrt(c * c + 1.0) + 1.0));
  return copysign(select(a < 1e9, near, log(a) + kLn2), x);
}
// max 3.5 ulp
Term acosh(const Term& x) {
  const Term t = min(x, 1e9) - 1.0;
  const Term near = log1p(t + sqrt(t * (t + 2.0)));
  const Term y = select(x > 1e9, log(x) + kLn2, near);
  return select(x < 1.0, std::numeric_limits<double>::quiet_NaN(), y);
}
// max 3.5 ulp
Term atanh(const Term& x) {
  const Term a = abs(x);
  return copysign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

// max 2 ulp
Term exp2(const Term& x) {
  const Term c = min(max(x, by(x, -160, -1100)), by(x, 160, 1100));
  const Term n = round(c), first = (n * 0.5).apply("floor");
  return exp((c - n) * kLn2) * power_of_two(first) * power_of_two(n - first);
}

// 1.5: a Newton step after XLA's cbrt, which is 7 units off in some versions.
Term cbrt(const Term& given) {
  const Term tiny = abs(given) < 0x1p-60;  // its step would underflow
  const Term x = select(tiny, given * 0x1p90, given);
  const Term y = x.apply("cbrt");
  const Term step = (y * y * y - x) / (y * y * 3.0);
  const Term root = select(abs(step) < abs(y), y - step, y);  // no step for 0, infinities and NaN
  return select(tiny, root * 0x1p-30, root);
}

// max 3 ulp
Term softplus(const Term& x) { return max(x, 0.0) + log1p(exp(-abs(x))); }

// max 3.5 ulp
Term silu(const Term& x) {
  const Term size = min(abs(x), deep(x));
  return gate(x, size, decay(size));
}

// F32: x Phi(x) = max(x, 0) - |x| Phi(-|x|). F64: the same rule as the function table, whose rounding of x / sqrt(2) is
// as large as the whole tolerance.
// max 4 ulp
Term gelu(const Term& x) {
  if (is_f64(x)) {
    const Term tail = erfc_f64(abs(x * 0.70710678118654752440));
    return max(x, -1000.0) * 0.5 * select(x < 0.0, tail, 2.0 - tail);
  }
  const Term a = min(abs(x), 15.0);
  const Pair z = square_of(a);
  const ScaledTail t = scaled_tail(a);
  const Term tail = (t.value + (t.rest * t.slope - t.value * (z.low * 0.5))) * a * exp(z.high * -0.5);
  return select(x < 0.0, -tail, x - tail);
}

// x sigmoid(2 u) with 2 u = x (c + d x^2). F32: where the exponential is small, the last bits of 2 u decide its value,
// so 2 u is computed in F64, which costs less than pairs of F32.
// max 4 ulp
Term gelu_approx(const Term& x) {
  const Term wide = x.to(DType::F64), a = abs(wide);
  if (is_f64(x)) {
    const Term cubed(x.writer(), product(x.writer(), (a * 0.044715 * a).value(), a.value()));
    const Term size = min((cubed + a) * 1.59576912160573071176, deep(x));
    return gate(x, size, decay(size));
  }
  const Term u = min(a * (a * a * 0.071354816272600248 + 1.5957691216057308), deep(x));
  const Term size = u.to(DType::F32), rest = (u - size.to(DType::F64)).to(DType::F32);
  const Decay e = decay(size);
  return gate(x, size, {e.up - e.up * rest, e.down});
}

// x e (e + 2) / (e (e + 2) + 2) with e = exp(x). It is x from 40 on.
// max 4 ulp
Term mish(const Term& x) {
  const Term size = min(abs(x), deep(x));
  const Decay below = decay(size);
  const Term e = select(x < 0.0, below.up * below.down, exp(min(x, 40.0)));
  const Term p = e + 2.0, ratio = p / (e * p + 2.0);
  return select(x < 0.0, max(x, -size.like(1) * deep(x)) * ratio * below.up * below.down, x * (e * ratio));
}

// atan2 with a divisor that is 1 unless x is NaN. For a constant divisor XLA uses its own atan, which is wrong in some
// versions.
Term atan(const Term& x) { return atan2(x, select(x == x, x.like(1), x)); }

}  // namespace rlx::tpu
