// Formulas over values of the text: a value with its writer and overloaded operators.
#pragma once

#include "rlx/backends/tpu/writer.h"
#include "rlx/ir/op_kind.h"

namespace rlx::tpu {

/// A value in a formula. Both sides of an operator have one type; a number takes the type of the other side.
class Term {
 public:
  Term(Writer& w, Hlo v) : w_(&w), v_(std::move(v)) {}
  const Hlo& value() const { return v_; }
  Writer& writer() const { return *w_; }
  DType dtype() const { return v_.dtype; }
  /// The number x in this type.
  Term like(double x) const { return {*w_, w_->full_like(v_, x)}; }
  /// `stablehlo.NAME` of this.
  Term apply(std::string_view name) const { return {*w_, w_->op(name, v_)}; }
  Term apply(std::string_view name, const Term& b) const { return {*w_, w_->op(name, v_, b.v_)}; }
  Term to(DType t) const { return {*w_, w_->convert(v_, t)}; }

  friend Term operator+(const Term& a, const Term& b) { return a.apply("add", b); }
  friend Term operator-(const Term& a, const Term& b) { return a.apply("subtract", b); }
  friend Term operator*(const Term& a, const Term& b) { return a.apply("multiply", b); }
  friend Term operator/(const Term& a, const Term& b) { return a.apply("divide", b); }
  friend Term operator+(const Term& a, double b) { return a + a.like(b); }
  friend Term operator-(const Term& a, double b) { return a - a.like(b); }
  friend Term operator*(const Term& a, double b) { return a * a.like(b); }
  friend Term operator/(const Term& a, double b) { return a / a.like(b); }
  friend Term operator-(double a, const Term& b) { return b.like(a) - b; }
  friend Term operator/(double a, const Term& b) { return b.like(a) / b; }
  Term operator-() const { return apply("negate"); }

  Term compare(std::string_view direction, const Term& b) const { return {*w_, w_->compare(direction, v_, b.v_)}; }
  friend Term operator<(const Term& a, const Term& b) { return a.compare("LT", b); }
  friend Term operator<(const Term& a, double b) { return a < a.like(b); }
  friend Term operator>(const Term& a, const Term& b) { return a.compare("GT", b); }
  friend Term operator>(const Term& a, double b) { return a > a.like(b); }
  friend Term operator<=(const Term& a, double b) { return a.compare("LE", a.like(b)); }
  friend Term operator>=(const Term& a, double b) { return a.compare("GE", a.like(b)); }
  friend Term operator==(const Term& a, const Term& b) { return a.compare("EQ", b); }
  friend Term operator==(const Term& a, double b) { return a == a.like(b); }
  friend Term operator!=(const Term& a, const Term& b) { return a.compare("NE", b); }
  friend Term operator!=(const Term& a, double b) { return a != a.like(b); }
  // For Bool and integers.
  friend Term operator&(const Term& a, const Term& b) { return a.apply("and", b); }
  friend Term operator|(const Term& a, const Term& b) { return a.apply("or", b); }
  friend Term operator^(const Term& a, const Term& b) { return a.apply("xor", b); }

 private:
  Writer* w_;
  Hlo v_;
};

inline Term select(const Term& cond, const Term& a, const Term& b) {
  return {cond.writer(), cond.writer().select(cond.value(), a.value(), b.value())};
}
inline Term select(const Term& cond, double a, const Term& b) { return select(cond, b.like(a), b); }
inline Term select(const Term& cond, const Term& a, double b) { return select(cond, a, a.like(b)); }
inline Term max(const Term& a, const Term& b) { return a.apply("maximum", b); }
inline Term max(const Term& a, double b) { return max(a, a.like(b)); }
inline Term min(const Term& a, const Term& b) { return a.apply("minimum", b); }
inline Term min(const Term& a, double b) { return min(a, a.like(b)); }
inline Term abs(const Term& a) { return a.apply("abs"); }
inline Term sqrt(const Term& a) { return a.apply("sqrt"); }
inline Term exp(const Term& a) { return a.apply("exponential"); }
inline Term log(const Term& a) { return a.apply("log"); }
inline Term atan2(const Term& y, const Term& x) { return y.apply("atan2", x); }
/// c[0] + c[1] x + c[2] x^2 + ..
inline Term polynomial(const Term& x, std::span<const double> c) {
  Term y = x.like(c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) y = y * x + c[i];
  return y;
}
/// |x| with the sign of `s`. The sign of a NaN is not kept.
Term copysign(const Term& x, const Term& s);

// -- functions of F32 and F64 that are accurate to a few units in the last place, where XLA's are less accurate
// (functions.cpp) --

/// A formula of rlx/elementwise; `parameter` is its second operand.
Term formula(std::string_view name, const Term& x, double parameter = 0);
inline Term expm1(const Term& x) { return formula("expm1", x); }
inline Term log1p(const Term& x) { return formula("log1p", x); }
inline Term sinh(const Term& x) { return formula("sinh", x); }
inline Term cosh(const Term& x) { return formula("cosh", x); }
Term cbrt(const Term& x);
Term atan(const Term& x);

// -- the same from special.cpp, as in the function tables --

Term lgamma(const Term& x);
Term digamma(const Term& x);
Term polygamma(const Term& x, double order);
Term sinc(const Term& x);
Term hypot(const Term& a, const Term& b);
Term logaddexp(const Term& a, const Term& b);

/// a * b, where F64 is rounded separately: it is not contracted with a following addition, so that chains of F64 give
/// the results of the reference rules.
Hlo product(Writer& w, const Hlo& a, const Hlo& b);

// -- complex numbers (complex.cpp) --

/// a * b and a / b, by the rules of the ops.
Hlo complex_product(Writer& w, const Hlo& a, const Hlo& b);
Hlo complex_quotient(Writer& w, const Hlo& a, const Hlo& b);
/// fn(x) for complex numbers.
Hlo complex_function(Writer& w, const Hlo& x, ActivationKind fn);

}  // namespace rlx::tpu
