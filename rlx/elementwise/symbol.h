// Lanes that record what a formula computes: a value of type S in an expression for Target.
#pragma once

#include <limits>
#include <type_traits>

#include "rlx/elementwise/expression.h"

namespace rlx::elementwise {

/// A language of floats alone, whose compilers may fuse, reorder sums with constants, flush denormals and forget NaN.
struct Portable {
  static constexpr bool kWider = false, kNative = false;
};
/// XLA: F32 and F64, with exponentials and logarithms of its own, and erf of F64.
struct Xla {
  static constexpr bool kWider = true, kNative = true;
};

/// A Bool of an expression.
struct Truth {
  Expression* in;
  std::uint32_t node;
};

template <class S, class Target>
class Symbol {
 public:
  static constexpr Type kType = std::is_same_v<S, float> ? Type::F32 : Type::F64;

  Symbol() = default;
  /// A number, which belongs to every expression.
  Symbol(S number) : number_(static_cast<double>(number)) {}  // NOLINT(google-explicit-constructor)
  Symbol(Expression* in, std::uint32_t node) : in_(in), node_(node) {}
  Expression* in() const { return in_; }
  std::uint32_t node(Expression* in) const {
    return in_ ? node_ : in->add({.op = Op::Number, .type = kType, .number = number_});
  }

 private:
  Expression* in_ = nullptr;
  std::uint32_t node_ = 0;
  double number_ = 0;
};

template <class S, class T>
Symbol<S, T> symbol(Op op, Symbol<S, T> a, double number = 0) {
  Expression* in = a.in();
  return {in, in->add({.op = op, .type = a.kType, .operands = {a.node(in)}, .number = number})};
}
template <class S, class T>
Symbol<S, T> symbol(Op op, Symbol<S, T> a, Symbol<S, T> b) {
  Expression* in = a.in() ? a.in() : b.in();
  return {in, in->add({.op = op, .type = a.kType, .operands = {a.node(in), b.node(in)}})};
}
template <class S, class T>
Truth truth(Op op, Symbol<S, T> a, Symbol<S, T> b) {
  Expression* in = a.in() ? a.in() : b.in();
  return {in, in->add({.op = op, .type = Type::Bool, .operands = {a.node(in), b.node(in)}})};
}

#define RLX_SYMBOL template <class S, class T>
#define RLX_INFIX(sign, R, text)                                              \
  RLX_SYMBOL R operator sign(Symbol<S, T> a, Symbol<S, T> b) { return text; } \
  RLX_SYMBOL R operator sign(Symbol<S, T> a, std::type_identity_t<S> y) {     \
    Symbol<S, T> b(y);                                                        \
    return text;                                                              \
  }                                                                           \
  RLX_SYMBOL R operator sign(std::type_identity_t<S> x, Symbol<S, T> b) {     \
    Symbol<S, T> a(x);                                                        \
    return text;                                                              \
  }
// clang-format off
RLX_INFIX(+, auto, symbol(Op::Add, a, b))
RLX_INFIX(-, auto, symbol(Op::Sub, a, b))
RLX_INFIX(*, auto, symbol(Op::Mul, a, b))
RLX_INFIX(/, auto, symbol(Op::Div, a, b))
RLX_INFIX(<, Truth, truth(Op::Less, a, b))
RLX_INFIX(<=, Truth, truth(Op::LessEqual, a, b))
RLX_INFIX(>, Truth, truth(Op::Less, b, a))
RLX_INFIX(>=, Truth, truth(Op::LessEqual, b, a))
RLX_INFIX(==, Truth, truth(Op::Equal, a, b))
// clang-format on
#undef RLX_INFIX

RLX_SYMBOL Symbol<S, T> fma(Symbol<S, T> a, Symbol<S, T> b, Symbol<S, T> c) {
  Expression* in = a.in() ? a.in() : b.in() ? b.in() : c.in();
  return {in, in->add({.op = Op::Fma, .type = a.kType, .operands = {a.node(in), b.node(in), c.node(in)}})};
}
RLX_SYMBOL Symbol<S, T> select(Truth mask, Symbol<S, T> a, Symbol<S, T> b) {
  Expression* in = mask.in;
  return {in, in->add({.op = Op::Select, .type = a.kType, .operands = {mask.node, a.node(in), b.node(in)}})};
}
/// Expressions compute both sides of every choice.
inline bool any(Truth) { return true; }
inline Truth both(Truth a, Truth b) {
  return {a.in, a.in->add({.op = Op::And, .type = Type::Bool, .operands = {a.node, b.node}})};
}
inline Truth either(Truth a, Truth b) {
  return {a.in, a.in->add({.op = Op::Or, .type = Type::Bool, .operands = {a.node, b.node}})};
}
RLX_SYMBOL Truth is_nan(Symbol<S, T> x) {
  return {x.in(), x.in()->add({.op = Op::IsNan, .type = Type::Bool, .operands = {x.node(x.in())}})};
}
RLX_SYMBOL auto min(Symbol<S, T> a, Symbol<S, T> b) { return symbol(Op::Min, a, b); }
RLX_SYMBOL auto max(Symbol<S, T> a, Symbol<S, T> b) { return symbol(Op::Max, a, b); }
RLX_SYMBOL auto copysign(Symbol<S, T> a, Symbol<S, T> b) { return symbol(Op::CopySign, a, b); }
RLX_SYMBOL auto neg(Symbol<S, T> x) { return symbol(Op::Neg, x); }
RLX_SYMBOL auto abs(Symbol<S, T> x) { return symbol(Op::Abs, x); }
RLX_SYMBOL auto sqrt(Symbol<S, T> x) { return symbol(Op::Sqrt, x); }
/// 0 nearest even, 1 down, 2 up, 3 toward zero.
template <int kMode, class S, class T>
auto round_to(Symbol<S, T> x) {
  return symbol(kMode == 0 ? Op::Round : kMode == 1 ? Op::Floor : kMode == 2 ? Op::Ceil : Op::Trunc, x);
}
RLX_SYMBOL auto rounded(Symbol<S, T> x) { return symbol(Op::Rounded, x); }
RLX_SYMBOL auto inverse(Symbol<S, T> x) { return symbol(Op::Div, Symbol<S, T>(1), x); }
RLX_SYMBOL auto scale(Symbol<S, T> p, Symbol<S, T> n) { return symbol(Op::Scale, p, n); }
template <int kBits, class S, class T>
auto without_low_bits(Symbol<S, T> x) {
  return symbol(Op::WithoutLowBits, x, kBits);
}
template <class V>
struct Split {
  V m, n;
};
RLX_SYMBOL Split<Symbol<S, T>> split(Symbol<S, T> x) { return {symbol(Op::Mantissa, x), symbol(Op::Exponent, x)}; }
RLX_SYMBOL Split<Symbol<S, T>> split_normal(Symbol<S, T> x) { return split(x); }
template <class V>
struct NearestInteger {
  V value;
};
RLX_SYMBOL NearestInteger<Symbol<S, T>> round_product(Symbol<S, T> x, S c) { return {round_to<0>(x * c)}; }
RLX_SYMBOL auto native_exp(Symbol<S, T> x) { return symbol(Op::Exp, x); }
RLX_SYMBOL auto native_log(Symbol<S, T> x) { return symbol(Op::Log, x); }
RLX_SYMBOL auto native_log1p(Symbol<S, T> x) { return symbol(Op::Log1p, x); }
RLX_SYMBOL auto native_erf(Symbol<S, T> x) { return symbol(Op::Erf, x); }
/// f of x in double, rounded.
template <class T, class F>
Symbol<float, T> in_double(Symbol<float, T> x, F f) {
  Expression* in = x.in();
  const Symbol<double, T> wide(in, in->add({.op = Op::ToF64, .type = Type::F64, .operands = {x.node(in)}}));
  return {in, in->add({.op = Op::ToF32, .type = Type::F32, .operands = {f(wide).node(in)}})};
}
template <class V>
struct Two {
  V first, second;
};
/// Two results of x in double, each rounded.
template <class T, class F>
Two<Symbol<float, T>> two_in_double(Symbol<float, T> x, F f) {
  return {in_double(x, [&](auto wide) { return f(wide).first; }),
          in_double(x, [&](auto wide) { return f(wide).second; })};
}
#undef RLX_SYMBOL

}  // namespace rlx::elementwise
