// The table of elementwise functions of two operands, one row each. Like function_table.h, it has internal linkage.
#pragma once

#include "rlx/ir/math/function_table.h"

namespace rlx {
namespace {  // NOLINT(google-build-namespaces): see function_table.h

constexpr DTypes kFnBits = DTypes::Int | DTypes::Bool;

// -- functions longer than a line --

#define RLX_HELPER(name, ...)                                                                 \
  inline double name(double a, double b) __VA_ARGS__ constexpr std::string_view name##_in_c = \
      "double " #name "(double a, double b) " #__VA_ARGS__;

// The result has the divisor's sign, as in Python's %.
RLX_HELPER(floor_mod, {
  const double r = fmod(a, b);
  return r == 0 ? copysign(0.0, b) : (r < 0) != (b < 0) ? r + b : r;
})
#undef RLX_HELPER

constexpr std::string_view kBinaryHelpers[] = {floor_mod_in_c};

inline FnI int_div(FnI a, FnI b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<FnI>(FnU{0} - static_cast<FnU>(a)) : a / b;  // the lowest value / -1 wraps
}
inline FnI int_mod(FnI a, FnI b) {
  if (b == 0 || b == -1) return 0;
  FnI r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline FnU int_pow(FnU base, FnU exponent) {
  FnU out = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) out *= base;
  return out;
}
inline FnI int_pow(FnI base, FnI exponent) {
  if (exponent >= 0) return static_cast<FnI>(int_pow(static_cast<FnU>(base), static_cast<FnU>(exponent)));
  if (base == 1) return 1;
  if (base == -1) return exponent & 1 ? -1 : 1;
  return 0;  // 1 / base^n truncated; 1 / 0 is 0 as in integer division
}
inline FnI int_rem(FnI a, FnI b) { return b == 0 || b == -1 ? 0 : a % b; }

// -- derivatives longer than a line --

// A tie splits the cotangent equally, as in JAX.
inline Expr d_larger(Graph& g, Expr a, Expr b, Expr ct) {
  return g.where(g.gt(a, b), ct, g.where(g.eq(a, b), ct * 0.5, 0.0));
}

// In F32 for F16, which holds powers of few exponents: those of the second derivatives leave its range first.
inline Expr wide(Graph& g, Expr e) { return g.cast(e, DType::F32); }

inline Expr d_pow_base(Graph& g, Expr a, Expr b, Expr y, Expr ct) {
  if (a.dtype() == DType::F16) return g.cast(d_pow_base(g, wide(g, a), wide(g, b), y, wide(g, ct)), DType::F16);
  // 0 * a^-1 is NaN where a^-1 is infinite. Elsewhere the expression stays unchanged: its own derivative in b is a^-1.
  const DType t = a.dtype();
  const double least = t == DType::F64 ? 0x1p-1024 : 0x1p-128;
  const Expr endless = is_complex(t) ? g.eq(a, 0.0) : g.le(g.abs(a), g.scalar(least, t));
  const Expr flat = g.bit_and(g.eq(b, 0.0), g.bit_or(endless, g.ne(a, a)));
  return ct * g.where(flat, 0.0, b * g.pow(a, g.where(flat, 1.0, b - 1.0)));
}
// The quotient that a mod b subtracts is floor(a / b). It is found from the result: the rounded a / b may be a whole
// number where the quotient is below it, and vanish where the quotient is -1. By an infinity it is 0 or -1.
inline Expr d_mod_divisor(Graph& g, Expr a, Expr b, Expr rest, Expr ct) {
  const Expr endless = g.eq(g.abs(b), HUGE_VAL), under = g.where(endless, 1.0, b);
  const Expr counted = g.round(g.where(endless, 0.0, rest) / under - g.where(endless, 0.0, a) / under);
  return ct * g.where(endless, g.cast(g.ne(rest, a), b.dtype()), counted);
}

inline Expr d_pow_exponent(Graph& g, Expr a, Expr b, Expr y, Expr ct) {
  if (a.dtype() == DType::F16) {
    const Expr x = wide(g, a), n = wide(g, b);
    return g.cast(d_pow_exponent(g, x, n, g.pow(x, n), wide(g, ct)), DType::F16);
  }
  // 0^b is flat in b. A negative base has no real derivative in b and is treated as flat too.
  Expr usable = is_complex(a.dtype()) ? g.ne(a, 0.0) : g.gt(a, 0.0);
  Expr flat = is_complex(a.dtype()) ? g.eq(a, 0.0) : g.le(a, 0.0);  // y can be infinite or NaN there
  return ct * g.where(flat, 0.0, y) * g.log(g.where(usable, a, 1.0));
}

// ct n / (a^2 + b^2), n = b or (`by_b`) a, by the quotient of the smaller and the larger of both, since squares may
// leave the range. F16 in F32, where no reciprocal vanishes.
inline Expr d_angle(Graph& g, Expr a, Expr b, Expr ct, bool by_b) {
  const DType t = a.dtype();
  if (t == DType::F16) {
    return g.cast(d_angle(g, wide(g, a), wide(g, b), wide(g, ct), by_b), t);
  }
  const Expr steep = g.gt(g.abs(a), g.abs(b)), most = g.where(steep, a, b), q = g.where(steep, b, a) / most;
  const Expr whole = ct / (most * (q * q + 1.0)), part = whole * q;
  return by_b ? g.where(steep, whole, part) : g.where(steep, part, whole);
}
// d sqrt(a^2 + b^2) / da; 0 at the origin, where the derivative does not exist.
inline Expr d_hypot(Graph& g, Expr a, Expr y, Expr ct) {
  // The largest number in place of infinity: an infinite operand has slope 1 or -1.
  if (a.dtype() == DType::F16) {
    return g.cast(d_hypot(g, wide(g, a), wide(g, y), wide(g, ct)), DType::F16);
  }
  const double top = a.dtype() == DType::F64   ? 0x1.fffffffffffffp1023
                     : a.dtype() == DType::F32 ? 0x1.fffffep127
                                               : 0x1.fep127;
  const Expr none = g.eq(y, 0.0);
  return ct * g.where(none, 0.0, g.min(g.max(a, -top), top) / g.where(none, 1.0, g.min(y, top)));
}
// e^a / (e^a + e^b); 1/2 when a and b are the same infinity.
inline Expr d_logaddexp(Graph& g, Expr a, Expr b, Expr ct) {
  const Expr same = g.bit_and(g.eq(a, b), g.eq(g.abs(a), HUGE_VAL));
  return ct * g.sigmoid(g.where(same, 0.0, a) - g.where(same, 0.0, b));
}
// dP(a, x) / dx = x^(a - 1) e^-x / Gamma(a). Below 1 it is made of a power, whose own slopes are right at 0 and where
// the product is too small for a number; above, powers of large a would be infinite.
inline Expr d_igamma_x(Graph& g, Expr a, Expr x, Expr ct) {
  const Expr low = g.lt(x, 1.0), small = g.where(low, x, 0.5), large = g.where(low, 1.0, x), rest = -x - g.lgamma(a);
  const Expr by_power = g.pow(small, a - 1.0) * g.exp(rest), by_log = g.exp((a - 1.0) * g.log(large) + rest);
  return ct * g.where(low, by_power, by_log);
}
inline Expr d_grad_a_by_a(Graph&, Expr, Expr, Expr, Expr) {
  throw Error(ErrorCode::Unsupported,
              "igamma_grad_a has no derivative with respect to a, which reverse mode needs: second derivatives of "
              "igamma with respect to its first operand are not supported",
              "use jvp, which has the derivative of igamma_grad_a with respect to x");
}

// -- the table, in the order of BinaryKind --

#define RLX_REAL(...) .real = [](double a, double b) -> double { return __VA_ARGS__; }, .c = #__VA_ARGS__

using B = BinaryKind;
constexpr BinaryRow kBinaryTable[] = {
    {.fn = B::Add,
     .dtypes = kFnAll | DTypes::Bool,
     RLX_REAL(a + b),
     .complex = [](FnC a, FnC b) { return a + b; },
     .signed_int = [](FnI a, FnI b, int) { return static_cast<FnI>(static_cast<FnU>(a) + static_cast<FnU>(b)); },
     .unsigned_int = [](FnU a, FnU b, int) { return a + b; },
     .da = +[](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = +[](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .f16 = F16Range::Keeps},
    {.fn = B::Sub,
     .dtypes = kFnAll,
     RLX_REAL(a - b),
     .complex = [](FnC a, FnC b) { return a - b; },
     .signed_int = [](FnI a, FnI b, int) { return static_cast<FnI>(static_cast<FnU>(a) - static_cast<FnU>(b)); },
     .unsigned_int = [](FnU a, FnU b, int) { return a - b; },
     .da = +[](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = +[](Graph&, Expr, Expr, Expr, Expr ct) { return -ct; },
     .f16 = F16Range::Keeps},
    {.fn = B::Mul,
     .dtypes = kFnAll | DTypes::Bool,
     RLX_REAL((a * b)),
     .complex = [](FnC a, FnC b) { return a * b; },
     .signed_int = [](FnI a, FnI b, int) { return static_cast<FnI>(static_cast<FnU>(a) * static_cast<FnU>(b)); },
     .unsigned_int = [](FnU a, FnU b, int) { return a * b; },
     .da = +[](Graph&, Expr, Expr b, Expr, Expr ct) { return ct * b; },
     .db = +[](Graph&, Expr a, Expr, Expr, Expr ct) { return ct * a; },
     .f16 = F16Range::Keeps},
    {.fn = B::Div,
     .dtypes = kFnAll,
     RLX_REAL(a / b),
     .complex = [](FnC a, FnC b) { return a / b; },
     .signed_int = [](FnI a, FnI b, int) { return int_div(a, b); },
     .unsigned_int = [](FnU a, FnU b, int) { return b ? a / b : FnU{0}; },
     .da = +[](Graph&, Expr, Expr b, Expr, Expr ct) { return ct / b; },
     .db = +[](Graph&, Expr, Expr b, Expr y, Expr ct) { return -(ct * y / b); },
     .f16 = F16Range::Leaves,
     .fill_b = Fill::Positive},
    {.fn = B::Max,
     .dtypes = kFnF | kFnBits,
     RLX_REAL(a > b || a != a ? a : b),
     .signed_int = [](FnI a, FnI b, int) { return a > b ? a : b; },
     .unsigned_int = [](FnU a, FnU b, int) { return a > b ? a : b; },
     .da = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, a, b, ct); },
     .db = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, b, a, ct); },
     .f16 = F16Range::Keeps},
    {.fn = B::Min,
     .dtypes = kFnF | kFnBits,
     RLX_REAL(a < b || a != a ? a : b),
     .signed_int = [](FnI a, FnI b, int) { return a < b ? a : b; },
     .unsigned_int = [](FnU a, FnU b, int) { return a < b ? a : b; },
     .da = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, b, a, ct); },
     .db = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, a, b, ct); },
     .f16 = F16Range::Keeps},
    {.fn = B::Pow,
     .dtypes = kFnAll,
     RLX_REAL(pow(a, b)),
     .complex = [](FnC a, FnC b) { return b == FnC(0)   ? FnC(1)
                                          : a == FnC(0) ? FnC(0)
                                                        : std::pow(a, b); },
     .signed_int = [](FnI a, FnI b, int) { return int_pow(a, b); },
     .unsigned_int = [](FnU a, FnU b, int) { return int_pow(a, b); },
     .da = d_pow_base,
     .db = d_pow_exponent,
     .f16 = F16Range::Leaves,
     .fill_a = Fill::Positive},
    {.fn = B::Mod,
     .dtypes = kFnF | DTypes::Int,
     RLX_REAL(floor_mod(a, b)),
     .signed_int = [](FnI a, FnI b, int) { return int_mod(a, b); },
     .unsigned_int = [](FnU a, FnU b, int) { return b ? a % b : FnU{0}; },
     .da = +[](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = d_mod_divisor,
     .f16 = F16Range::Keeps,
     .fill_b = Fill::Positive},
    {.fn = B::Atan2,
     .dtypes = kFnF,
     RLX_REAL(atan2(a, b)),
     .da = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_angle(g, a, b, ct, false); },
     .db = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return -d_angle(g, a, b, ct, true); },
     .f16 = F16Range::Keeps,
     .fill_b = Fill::Positive},
    {.fn = B::BitAnd,
     .dtypes = kFnBits,
     .signed_int = [](FnI a, FnI b, int) { return a & b; },
     .unsigned_int = [](FnU a, FnU b, int) { return a & b; },
     .da = kBinaryFlat,
     .db = kBinaryFlat,
     .f16 = F16Range::Keeps},
    {.fn = B::BitOr,
     .dtypes = kFnBits,
     .signed_int = [](FnI a, FnI b, int) { return a | b; },
     .unsigned_int = [](FnU a, FnU b, int) { return a | b; },
     .da = kBinaryFlat,
     .db = kBinaryFlat,
     .f16 = F16Range::Keeps},
    {.fn = B::BitXor,
     .dtypes = kFnBits,
     .signed_int = [](FnI a, FnI b, int) { return a ^ b; },
     .unsigned_int = [](FnU a, FnU b, int) { return a ^ b; },
     .da = kBinaryFlat,
     .db = kBinaryFlat,
     .f16 = F16Range::Keeps},
    {.fn = B::Shl,
     .dtypes = DTypes::Int,
     .signed_int = [](FnI a, FnI b,
                      int bits) { return b < 0 || b >= bits ? FnI{0} : static_cast<FnI>(static_cast<FnU>(a) << b); },
     .unsigned_int = [](FnU a, FnU b, int bits) { return b >= static_cast<FnU>(bits) ? FnU{0} : a << b; },
     .da = kBinaryFlat,
     .db = kBinaryFlat,
     .f16 = F16Range::Keeps},
    {.fn = B::Shr,
     .dtypes = DTypes::Int,
     .signed_int = [](FnI a, FnI b, int bits) { return b < 0 || b >= bits ? (a < 0 ? FnI{-1} : FnI{0}) : a >> b; },
     .unsigned_int = [](FnU a, FnU b, int bits) { return b >= static_cast<FnU>(bits) ? FnU{0} : a >> b; },
     .da = kBinaryFlat,
     .db = kBinaryFlat,
     .f16 = F16Range::Keeps},
    {.fn = B::Rem,
     .dtypes = kFnF | DTypes::Int,
     RLX_REAL(fmod(a, b)),
     .signed_int = [](FnI a, FnI b, int) { return int_rem(a, b); },
     .unsigned_int = [](FnU a, FnU b, int) { return b ? a % b : FnU{0}; },
     .da = +[](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = +[](Graph& g, Expr a, Expr b, Expr y, Expr ct) { return ct * g.round((y - a) / b); },
     .f16 = F16Range::Keeps,
     .fill_b = Fill::Positive},
    {.fn = B::Hypot,
     .dtypes = kFnF,
     RLX_REAL(hypot(a, b)),
     .da = +[](Graph& g, Expr a, Expr, Expr y, Expr ct) { return d_hypot(g, a, y, ct); },
     .db = +[](Graph& g, Expr, Expr b, Expr y, Expr ct) { return d_hypot(g, b, y, ct); },
     .f16 = F16Range::Keeps},
    {.fn = B::LogAddExp,
     .dtypes = kFnF,
     RLX_REAL(logaddexp(a, b)),
     .da = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_logaddexp(g, a, b, ct); },
     .db = +[](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_logaddexp(g, b, a, ct); },
     .f16 = F16Range::Keeps},
    {.fn = B::Igamma,
     .dtypes = kFnF,
     RLX_REAL(igamma(a, b)),
     .da = +[](Graph& g, Expr a, Expr x, Expr, Expr ct) { return ct * g.igamma_grad_a(a, x); },
     .db = +[](Graph& g, Expr a, Expr x, Expr, Expr ct) { return d_igamma_x(g, a, x, ct); },
     .f16 = F16Range::Leaves,
     .fill_a = Fill::Positive,
     .fill_b = Fill::Positive,
     .differentiable = 1},
    {.fn = B::Igammac,
     .dtypes = kFnF,
     RLX_REAL(igammac(a, b)),
     .da = +[](Graph& g, Expr a, Expr x, Expr, Expr ct) { return -(ct * g.igamma_grad_a(a, x)); },
     .db = +[](Graph& g, Expr a, Expr x, Expr, Expr ct) { return -d_igamma_x(g, a, x, ct); },
     .f16 = F16Range::Leaves,
     .fill_a = Fill::Positive,
     .fill_b = Fill::Positive,
     .differentiable = 1},
    {.fn = B::IgammaGradA,
     .dtypes = kFnF,
     RLX_REAL(igamma_grad_a(a, b)),
     .da = d_grad_a_by_a,
     .db = +[](Graph& g, Expr a, Expr x, Expr, Expr ct) { return d_igamma_x(g, a, x, ct) * (g.log(x) - g.digamma(a)); },
     .f16 = F16Range::Leaves,
     .fill_a = Fill::Positive,
     .fill_b = Fill::Positive,
     .differentiable = 0},
};

#undef RLX_REAL

constexpr bool binaries_in_order() {
  for (std::size_t i = 0; i < std::size(kBinaryTable); ++i)
    if (static_cast<std::size_t>(kBinaryTable[i].fn) != i) return false;
  return std::size(kBinaryTable) == static_cast<std::size_t>(kNumBinaryKinds);
}
static_assert(binaries_in_order(), "kBinaryTable must have one row per BinaryKind, in its order");

constexpr bool binaries_whole() {
  for (const BinaryRow& r : kBinaryTable) {
    const DTypes dtypes = r.dtypes;
    const bool flat = r.da == kBinaryFlat || r.db == kBinaryFlat;
    if (contains(dtypes, DType::F32) != (r.real != nullptr) || contains(dtypes, DType::C64) != (r.complex != nullptr) ||
        contains(dtypes, DType::I32) != (r.signed_int != nullptr) ||
        contains(dtypes, DType::U32) != (r.unsigned_int != nullptr) || (r.real && flat))
      return false;
  }
  return true;
}
static_assert(binaries_whole(), "a row must hold a function for each class of its dtypes, and derivatives for floats");

}  // namespace
}  // namespace rlx
