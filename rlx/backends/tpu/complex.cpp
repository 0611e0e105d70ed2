// Functions of complex numbers.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "rlx/backends/tpu/entries.h"
#include "rlx/backends/tpu/expression.h"

namespace rlx::tpu {
namespace {

// The parts in F64. In F64 the parts of C64 are exact; they do not overflow, and cancellation leaves the digits of C64.
struct Parts {
  Term re, im;
  Parts(Writer& w, const Hlo& x) : re(w, w.convert(w.real(x), DType::F64)), im(w, w.convert(w.imag(x), DType::F64)) {}
};
Term times(const Term& a, const Term& b) { return {a.writer(), product(a.writer(), a.value(), b.value())}; }
Hlo joined(const Term& re, const Term& im, DType complex) {
  const DType part = real_dtype(complex);
  return re.writer().complex(re.to(part).value(), im.to(part).value());
}

Term is_infinite(const Term& v) { return abs(v) == HUGE_VAL; }
Term is_nan(const Term& v) { return v != v; }
// A part of an infinite number, by the rules of C: an infinite part becomes 1, a finite one 0, with its sign.
Term boxed(const Term& v) { return copysign(select(is_infinite(v), v.like(1), v.like(0)), v); }

}  // namespace

// By the rules of C, a product with an infinite number is infinite, though both parts of the plain formula are NaN.
Hlo complex_product(Writer& w, const Hlo& a, const Hlo& b) {
  const Parts x(w, a), y(w, b);
  const Term rr = times(x.re, y.re), ii = times(x.im, y.im), ri = times(x.re, y.im), ir = times(x.im, y.re);
  const Term re = rr - ii, im = ri + ir;
  const Term x_infinite = is_infinite(x.re) | is_infinite(x.im), y_infinite = is_infinite(y.re) | is_infinite(y.im);
  const Term overflows = is_infinite(rr) | is_infinite(ii) | is_infinite(ri) | is_infinite(ir);
  const Term lost = is_nan(re) & is_nan(im) & (x_infinite | y_infinite | overflows);
  const auto told = [](const Term& infinite, const Term& v) {
    return select(infinite, boxed(v), select(is_nan(v), copysign(v.like(0), v), v));
  };
  const Term xr = told(x_infinite, x.re), xi = told(x_infinite, x.im), yr = told(y_infinite, y.re),
             yi = told(y_infinite, y.im);
  return joined(select(lost, (xr * yr - xi * yi) * HUGE_VAL, re), select(lost, (xr * yi + xi * yr) * HUGE_VAL, im),
                a.dtype);
}

// By the rules of C for zeros and infinities: x / 0 is infinite, x / infinity is zero.
Hlo complex_quotient(Writer& w, const Hlo& a, const Hlo& b) {
  Parts x(w, a), y(w, b);
  const bool wide = a.dtype == DType::C128;  // otherwise F64 neither overflows nor underflows
  if (wide) {
    const Term half = select(max(abs(y.re), abs(y.im)) >= 0x1p1022, y.re.like(0.5), y.re.like(1));
    for (Term* part : {&x.re, &x.im, &y.re, &y.im}) *part = times(*part, half);
  }
  // R. Smith, "Algorithm 116: Complex division" (1962). It uses the ratio of the divisor's parts, as their squares
  // might overflow.
  const Term size_re = abs(y.re), size_im = abs(y.im), largest = max(size_re, size_im), swapped = size_re < size_im;
  const auto either = [&](const Term& one, const Term& other) { return select(swapped, one, other); };
  const Term large = either(y.im, y.re), small = either(y.re, y.im), ratio = small / large;
  // When the ratio underflows, divides by the large part first.
  const Term underflows = (abs(ratio) < 0x1p-1022) & (abs(small) >= 0x1p-1022);
  const auto by_ratio = [&](const Term& v) {
    const Term p = times(v, ratio);
    return wide ? select(underflows, times(v / large, small), p) : p;
  };
  const Term over = times(small, ratio) + large, part = by_ratio(either(x.im, x.re));
  Term re = (by_ratio(either(x.re, x.im)) + either(x.im, x.re)) / over;
  Term im = either(part - x.re, x.im - part) / over;
  const Term lost = is_nan(re) & is_nan(im);
  // a / 0
  const Term by_zero = lost & (largest == 0.0) & ((x.re == x.re) | (x.im == x.im));
  const Term infinity = copysign(x.re.like(HUGE_VAL), y.re);
  // infinity / finite, finite / infinity
  const Term x_infinite = is_infinite(x.re) | is_infinite(x.im), y_infinite = is_infinite(y.re) | is_infinite(y.im);
  const Term x_finite = (abs(x.re) < HUGE_VAL) & (abs(x.im) < HUGE_VAL), y_finite = largest < HUGE_VAL;
  const Term to_infinity = lost & x_infinite & y_finite, to_zero = lost & x_finite & y_infinite;
  const Term xr = boxed(x.re), xi = boxed(x.im), yr = boxed(y.re), yi = boxed(y.im);
  re = select(to_infinity, (xr * y.re + xi * y.im) * HUGE_VAL, re);
  im = select(to_infinity, (xi * y.re - xr * y.im) * HUGE_VAL, im);
  re = select(to_zero, (x.re * yr + x.im * yi) * 0.0, re);
  im = select(to_zero, (x.im * yr - x.re * yi) * 0.0, im);
  re = select(by_zero, infinity * x.re, re);
  im = select(by_zero, infinity * x.im, im);
  return joined(re, im, a.dtype);
}

namespace {

// The parts of exp, sinh and cosh of x + iy by the rules of C. `h` is one of these functions of x, and `t` the sine or
// cosine of y. Where h overflows the product may still be finite, and 0 takes precedence over infinity and NaN.
Term scaled_part(const Term& x, const Term& h, const Term& t, double share) {
  const Term half = exp(abs(x) * 0.5), sign = copysign(h.like(1), h);
  const Term y = select((abs(x) > 700.0) & (abs(h) > 1.0), sign * (half * share * t * half), times(h, t));
  return select((h == 0.0) | (t == 0.0), copysign(h.like(0), h) * copysign(h.like(1), select(is_nan(t), t.like(1), t)),
                y);
}
// The part with the cosine. It is infinite at infinity, though y then has no cosine.
Term first_part(const Term& x, const Term& h, const Term& cosine, double share) {
  return select(is_infinite(x) & is_infinite(h) & is_nan(cosine), HUGE_VAL, scaled_part(x, h, cosine, share));
}

// `x` is C128; C64 operands are converted to it. Results of XLA's own functions are corrected at zeros, infinities and
// NaN: signs, which tell the side of a branch cut, and parts where XLA has NaN and C does not, or the reverse.
Hlo function_of(Writer& w, const Hlo& x, ActivationKind fn) {
  using K = ActivationKind;
  const Parts z(w, x);
  const auto sine = [](const Term& v) { return v.apply("sine"); };
  const auto cosine = [](const Term& v) { return v.apply("cosine"); };
  using OfTerm = Term (*)(const Term&);
  const auto hyperbolic = [&](const Term& a, const Term& b, OfTerm f, OfTerm g) {  // f(a) cos(b), g(a) sin(b)
    return std::pair(first_part(a, f(a), cosine(b), 0.5), scaled_part(a, g(a), sine(b), 0.5));
  };
  const auto made = [&](const char* name) { return Parts(w, w.op(name, x)); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto where_zero = [](const Term& v, const Term& otherwise) { return select(v == 0.0, v, otherwise); };
  switch (fn) {
    case K::Exp: {
      const Term e = exp(z.re);
      return joined(first_part(z.re, e, cosine(z.im), 1), scaled_part(z.re, e, sine(z.im), 1), x.dtype);
    }
    // XLA's sinh loses digits of small numbers. sin(z) = -i sinh(iz), cos(z) = cosh(iz).
    case K::Sin: {
      const auto [first, second] = hyperbolic(z.im, z.re, sinh, cosh);
      return joined(second, first, x.dtype);
    }
    case K::Cos: {
      const auto [first, second] = hyperbolic(z.im, z.re, cosh, sinh);
      return joined(first, -second, x.dtype);
    }
    case K::Sinh:
    case K::Cosh: {
      const bool odd = fn == K::Sinh;
      const auto [first, second] = hyperbolic(z.re, z.im, odd ? sinh : cosh, odd ? cosh : sinh);
      return joined(first, second, x.dtype);
    }
    case K::Tanh:
    case K::Tan: {
      const Parts y = made(fn == K::Tan ? "tan" : "tanh");
      return joined(where_zero(z.re, y.re), where_zero(z.im, y.im), x.dtype);
    }
    case K::Log: {
      const Parts y = made("log");
      return joined(select(is_infinite(z.re) | is_infinite(z.im), HUGE_VAL, y.re), y.im, x.dtype);
    }
    case K::Sqrt: {
      const Parts y = made("sqrt");
      const Term re = select(is_infinite(z.im) | (z.re == HUGE_VAL), HUGE_VAL, y.re);
      const Term im = select(is_infinite(z.im) | (z.re == -HUGE_VAL), HUGE_VAL, y.im);
      return joined(re, copysign(im, z.im), x.dtype);
    }
    case K::Rsqrt: return complex_quotient(w, w.full_like(x, 1), function_of(w, x, K::Sqrt));
    case K::Atan: {
      const Parts y = made("chlo.atan");
      const Term re = select(is_nan(z.re) | (is_nan(z.im) & (abs(z.re) < HUGE_VAL)), nan, y.re);
      return joined(copysign(re, z.re), where_zero(z.im, y.im), x.dtype);
    }
    case K::Atanh: {
      const Parts y = made("chlo.atanh");
      const Term im = select(is_nan(z.im) | (is_nan(z.re) & (abs(z.im) < HUGE_VAL)), nan, y.im);
      return joined(where_zero(z.re, y.re), copysign(im, z.im), x.dtype);
    }
    case K::Asin: {
      const Parts y = made("chlo.asin");
      return joined(where_zero(z.re, y.re), copysign(y.im, z.im), x.dtype);
    }
    case K::Acos: {
      const Parts y = made("chlo.acos");
      return joined(select(z.re == 0.0, std::numbers::pi / 2, y.re), -copysign(y.im, z.im), x.dtype);
    }
    default: break;
  }
  check(false, "a complex function has no StableHLO expression");
  return x;
}

}  // namespace

Hlo complex_function(Writer& w, const Hlo& x, ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Neg: return w.neg(x);
    case ActivationKind::Recip: return complex_quotient(w, w.full_like(x, 1), x);
    case ActivationKind::Square: return complex_product(w, x, x);
    default: break;
  }
  const Hlo wide = cast(w, x, x.dtype, DType::C128);
  return cast(w, function_of(w, wide, fn), DType::C128, x.dtype);
}

}  // namespace rlx::tpu
