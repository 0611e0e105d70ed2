// Functions of complex numbers.
#include <cmath>

#include "rlx/backends/tpu/expression.h"
#include "rlx/backends/tpu/rows.h"

namespace rlx::tpu {
namespace {

// The parts in F64, where those of C64 are exact and neither overflow nor cancel to fewer digits than C64 has.
struct Parts {
  Term re, im;
  Parts(Writer& w, const Hlo& x) : re(w, w.convert(w.real(x), DType::F64)), im(w, w.convert(w.imag(x), DType::F64)) {}
};
Term times(const Term& a, const Term& b) { return {a.writer(), product(a.writer(), a.value(), b.value())}; }
Hlo joined(const Term& re, const Term& im, DType complex) {
  const DType part = real_dtype(complex);
  return re.writer().complex(re.to(part).value(), im.to(part).value());
}

}  // namespace

Hlo complex_product(Writer& w, const Hlo& a, const Hlo& b) {
  const Parts x(w, a), y(w, b);
  return joined(times(x.re, y.re) - times(x.im, y.im), times(x.re, y.im) + times(x.im, y.re), a.dtype);
}

// With the rules of C for zeros and infinities: x / 0 is infinite, x / infinity zero.
Hlo complex_quotient(Writer& w, const Hlo& a, const Hlo& b) {
  const Parts x(w, a), y(w, b);
  // R. Smith, "Algorithm 116: Complex division" (1962): by the ratio of the divisor's parts, whose squares might
  // overflow.
  const Term size_re = abs(y.re), size_im = abs(y.im), largest = max(size_re, size_im), swapped = size_re < size_im;
  const auto either = [&](const Term& one, const Term& other) { return select(swapped, one, other); };
  const Term large = either(y.im, y.re), small = either(y.re, y.im), ratio = small / large;
  const Term over = times(small, ratio) + large, part = times(either(x.im, x.re), ratio);
  Term re = (times(either(x.re, x.im), ratio) + either(x.im, x.re)) / over;
  Term im = either(part - x.re, x.im - part) / over;
  const Term lost = (re != re) & (im != im);
  const auto is_number = [](const Term& v) { return v == v; };
  const auto is_infinite = [](const Term& v) { return abs(v) == HUGE_VAL; };
  // a / 0
  const Term by_zero = lost & (largest == 0.0) & (is_number(x.re) | is_number(x.im));
  const Term infinity = copysign(x.re.like(HUGE_VAL), y.re);
  // infinity / finite, finite / infinity: what is infinite becomes 1, what is not 0, with their signs
  const auto boxed = [&](const Term& v) { return copysign(select(is_infinite(v), v.like(1), v.like(0)), v); };
  const Term x_infinite = is_infinite(x.re) | is_infinite(x.im), y_infinite = is_infinite(y.re) | is_infinite(y.im);
  const Term x_finite = (abs(x.re) < HUGE_VAL) & (abs(x.im) < HUGE_VAL), y_finite = largest < HUGE_VAL;
  const Term to_infinity = lost & x_infinite & y_finite, to_zero = lost & x_finite & y_infinite;
  const Term xr = boxed(x.re), xi = boxed(x.im), yr = boxed(y.re), yi = boxed(y.im);
  re = select(by_zero, infinity * x.re, re);
  im = select(by_zero, infinity * x.im, im);
  re = select(to_infinity, (xr * y.re + xi * y.im) * HUGE_VAL, re);
  im = select(to_infinity, (xi * y.re - xr * y.im) * HUGE_VAL, im);
  re = select(to_zero, (x.re * yr + x.im * yi) * 0.0, re);
  im = select(to_zero, (x.im * yr - x.re * yi) * 0.0, im);
  return joined(re, im, a.dtype);
}

namespace {

// Of C128: what is said of C64 is made there too.
Hlo function_of(Writer& w, const Hlo& x, ActivationKind fn) {
  using K = ActivationKind;
  const Parts z(w, x);
  const auto sine = [](const Term& v) { return v.apply("sine"); };
  const auto cosine = [](const Term& v) { return v.apply("cosine"); };
  switch (fn) {
    case K::Tanh: return w.op("tanh", x);
    case K::Exp: return w.op("exponential", x);
    case K::Log: return w.op("log", x);
    case K::Sqrt: return w.op("sqrt", x);
    case K::Rsqrt: return w.op("rsqrt", x);
    // XLA's sinh loses the digits of small numbers.
    case K::Sin: return joined(sine(z.re) * cosh(z.im), cosine(z.re) * sinh(z.im), x.dtype);
    case K::Cos: return joined(cosine(z.re) * cosh(z.im), -(sine(z.re) * sinh(z.im)), x.dtype);
    case K::Sinh: return joined(sinh(z.re) * cosine(z.im), cosh(z.re) * sine(z.im), x.dtype);
    case K::Cosh: return joined(cosh(z.re) * cosine(z.im), sinh(z.re) * sine(z.im), x.dtype);
    case K::Tan: return w.op("tan", x);
    case K::Atan: return w.op("chlo.atan", x);
    case K::Asin: return w.op("chlo.asin", x);
    case K::Acos: return w.op("chlo.acos", x);
    case K::Atanh: return w.op("chlo.atanh", x);
    default: break;
  }
  check(false, "a function of complex numbers without an expression");
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
