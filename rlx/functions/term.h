// A value inside a function that builds several ops: each op gets the line of the user's call.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/graph.h"

namespace rlx::functions {

/// A value, and the source line that its ops get. Operators also take numbers, which are converted to the dtype of the
/// value.
class Term {
 public:
  Term(Expr e, SourceLoc loc) : value_(std::move(e)), loc_(loc) {}
  /// The operand of a call. A number is refused, since it belongs to no graph. `what` names the function in errors.
  Term(const Operand& x, const char* what) : value_(x.expr()), loc_(x.loc()) {
    if (x.is_scalar())
      throw Error(ErrorCode::InvalidArgument,
                  std::string(what) + ": the first operand must be a value of a graph, got a number",
                  "make the number a value: g.scalar(x)");
  }
  operator Operand() const { return Operand(value_, loc_); }  // NOLINT(implicit)
  operator Expr() const { return value_; }                    // NOLINT(implicit)
  const Expr& value() const { return value_; }
  SourceLoc loc() const { return loc_; }
  Graph& graph() const { return value_.graph(); }
  DType dtype() const { return value_.dtype(); }
  const Shape& shape() const { return value_.shape(); }
  int rank() const { return value_.rank(); }
  const Dim& dim(int axis) const { return value_.dim(axis); }
  /// Another value with the same line. A number gets the dtype of this value.
  Term at(const Expr& e) const { return Term(e, loc_); }
  Term at(const Operand& x) const { return x.is_scalar() ? number(x.scalar()) : Term(x.expr(), loc_); }
  Term number(double v) const { return at(graph().scalar(v, dtype(), loc_)); }
  /// A number as an operand of a binary op with this value. For an integer value, a whole number stays an integer.
  Operand beside(double v) const {
    return is_int(dtype()) && v == std::trunc(v) ? Operand(static_cast<std::int64_t>(v), loc_) : Operand(v, loc_);
  }
  /// fn of this value.
  Term operator()(ActivationKind fn) const { return at(graph().activation(fn, *this)); }
  Term cast(DType t) const { return dtype() == t ? *this : at(graph().cast(*this, t)); }

 private:
  Expr value_;
  SourceLoc loc_;
};

/// The graph for an op of a and b. If one graph is the body of an op of the other, it is the body, which can use outer
/// values.
inline Graph& inner_graph(const Term& a, const Term& b) {
  Graph &x = a.graph(), &y = b.graph();
  return &x != &y && BodyScope::encloses(x, y) ? y : x;
}

inline Term combined(BinaryKind fn, const Term& a, const Term& b) { return a.at(inner_graph(a, b).binary(fn, a, b)); }
inline Term combined(BinaryKind fn, const Term& a, double b) { return a.at(a.graph().binary(fn, a, a.beside(b))); }
inline Term combined(BinaryKind fn, double a, const Term& b) { return b.at(b.graph().binary(fn, b.beside(a), b)); }
template <class A, class B>
concept Terms = (std::same_as<A, Term> && (std::same_as<B, Term> || std::convertible_to<B, double>)) ||
                (std::same_as<B, Term> && std::convertible_to<A, double>);
template <class A, class B>
  requires Terms<A, B>
Term operator+(const A& a, const B& b) {
  return combined(BinaryKind::Add, a, b);
}
template <class A, class B>
  requires Terms<A, B>
Term operator-(const A& a, const B& b) {
  return combined(BinaryKind::Sub, a, b);
}
template <class A, class B>
  requires Terms<A, B>
Term operator*(const A& a, const B& b) {
  return combined(BinaryKind::Mul, a, b);
}
template <class A, class B>
  requires Terms<A, B>
Term operator/(const A& a, const B& b) {
  return combined(BinaryKind::Div, a, b);
}
inline Term operator-(const Term& a) { return a(ActivationKind::Neg); }
template <class A, class B>
  requires Terms<A, B>
Term larger(const A& a, const B& b) {
  return combined(BinaryKind::Max, a, b);
}
template <class A, class B>
  requires Terms<A, B>
Term smaller(const A& a, const B& b) {
  return combined(BinaryKind::Min, a, b);
}

inline Term compared(CompareKind fn, const Term& a, const Term& b) { return a.at(inner_graph(a, b).compare(fn, a, b)); }
inline Term compared(CompareKind fn, const Term& a, double b) { return a.at(a.graph().compare(fn, a, a.beside(b))); }
inline Term both(const Term& a, const Term& b) { return combined(BinaryKind::BitAnd, a, b); }
inline Term either(const Term& a, const Term& b) { return combined(BinaryKind::BitOr, a, b); }
/// a where cond is true, b where it is false.
inline Term chosen(const Term& cond, const Term& a, const Term& b) {
  Graph &x = inner_graph(cond, a), &y = inner_graph(cond, b);
  return a.at((&x != &y && BodyScope::encloses(x, y) ? y : x).where(cond, a, b));
}
inline Term chosen(const Term& cond, const Term& a, double b) {
  return a.at(inner_graph(cond, a).where(cond, a, a.beside(b)));
}
inline Term chosen(const Term& cond, double a, const Term& b) {
  return b.at(inner_graph(cond, b).where(cond, b.beside(a), b));
}

inline Term exp(const Term& x) { return x(ActivationKind::Exp); }
inline Term log(const Term& x) { return x(ActivationKind::Log); }
inline Term log1p(const Term& x) { return x(ActivationKind::Log1p); }
inline Term abs(const Term& x) { return x(ActivationKind::Abs); }
inline Term sqrt(const Term& x) { return x(ActivationKind::Sqrt); }
inline Term square(const Term& x) { return x(ActivationKind::Square); }
inline Term floor(const Term& x) { return x(ActivationKind::Floor); }
inline Term sign(const Term& x) { return x(ActivationKind::Sign); }
inline Term log_sigmoid(const Term& x) { return x(ActivationKind::LogSigmoid); }
inline Term sigmoid(const Term& x) { return x(ActivationKind::Sigmoid); }
inline Term stopped(const Term& x) { return x.at(x.graph().stop_gradient(x)); }
inline Term pow(const Term& x, double by) { return combined(BinaryKind::Pow, x, by); }

/// Reductions over `axes`; all axes by default.
inline Term sum(const Term& x, std::vector<std::int64_t> axes = {}, bool keep = false) {
  return x.at(x.graph().sum(x, std::move(axes), keep));
}
inline Term mean(const Term& x, std::vector<std::int64_t> axes = {}, bool keep = false) {
  return x.at(x.graph().mean(x, std::move(axes), keep));
}

}  // namespace rlx::functions
