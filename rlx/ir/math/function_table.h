// The table of elementwise functions of one operand, one row each: docs/add_a_function.md. Use function_row()
// (functions.h) to get a row. Kernels include the table itself, so that loops are compiled around each function. All of
// it has internal linkage: a file compiled for another processor must not provide code to other files.
#pragma once

#include <math.h>  // NOLINT: the expressions are C, their names are global

#include <bit>
#include <numbers>

#include "rlx/elementwise/scalar.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/math/special_functions.h"

namespace rlx {
namespace {  // NOLINT(google-build-namespaces): see above

// -- helpers of the expressions: compiled, and kept as text --

#define RLX_HELPER(name, ...)                                                       \
  inline double name(double x) __VA_ARGS__ constexpr std::string_view name##_in_c = \
      "double " #name "(double x) " #__VA_ARGS__;

// The factor x of a function that vanishes below. At -inf the result is the limit -0, not -inf * 0. Every such function
// is 0 in double long before -1000.
RLX_HELPER(vanishing, { return x < -1000 ? -1000.0 : x; })
RLX_HELPER(hard_sigmoid, { return x <= -3 ? 0.0 : x >= 3 ? 1.0 : (x + 3) / 6; })

#undef RLX_HELPER

// Texts alone: rlx/elementwise computes these.
constexpr std::string_view sigmoid_in_c = "double sigmoid(double x) { return 1 / (1 + exp(-x)); }";
constexpr std::string_view softplus_in_c =
    "double softplus(double x) { return (x <= 0 ? 0.0 : x) + log1p(exp(-fabs(x))); }";
// It starts with Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), in single precision. Newton
// steps with Halley's correction follow. Near the ends 1 - |x| is exact, and erfc keeps the digits that erf loses.
constexpr std::string_view erfinv_in_c =
    "double erfinv(double x) { const double a = fabs(x); if (!(a < 1)) return a == 1 ? x * HUGE_VAL : "
    "NAN; const double w = -log1p(-a * a); double y = 0; if (w < 5) { const double v = w - 2.5; y = "
    "2.81022636e-08; y = 3.43273939e-07 + y * v; y = -3.5233877e-06 + y * v; y = -4.39150654e-06 + y * "
    "v; y = 0.00021858087 + y * v; y = -0.00125372503 + y * v; y = -0.00417768164 + y * v; y = "
    "0.246640727 + y * v; y = 1.50140941 + y * v; } else { const double v = sqrt(w) - 3; y = "
    "-0.000200214257; y = 0.000100950558 + y * v; y = 0.00134934322 + y * v; y = -0.00367342844 + y * v; "
    "y = 0.00573950773 + y * v; y = -0.0076224613 + y * v; y = 0.00943887047 + y * v; y = 1.00167406 + y "
    "* v; y = 2.83297682 + y * v; } y = y * a; for (int i = 0; i < 7; ++i) { const double e = a < 0.5 ? "
    "erf(y) - a : (1 - a) - erfc(y); const double step = e * 0.88622692545275801 * exp(y * y); y = y - "
    "step / (1 + y * step); } return x < 0 ? -y : a == 0 ? x : y; }";

constexpr std::string_view kFunctionHelpers[] = {sigmoid_in_c, softplus_in_c, vanishing_in_c, hard_sigmoid_in_c,
                                                 erfinv_in_c};

// -- shorthands of the rows --

#define RLX_REAL(...) .real = [](double x) -> double { return __VA_ARGS__; }, .c = #__VA_ARGS__
// A formula of rlx/elementwise, and its definition as C text.
#define RLX_FORMULA(name, ...) \
  .real = [](double x) -> double { return elementwise::scalar::name(x); }, .c = #__VA_ARGS__
#define RLX_REAL_WITH(...)                                                                                            \
  .real_with = []([[maybe_unused]] double x, [[maybe_unused]] double alpha, [[maybe_unused]] double beta) -> double { \
    return __VA_ARGS__;                                                                                               \
  },                                                                                                                  \
  .c_with = #__VA_ARGS__
#define RLX_COMPLEX(...) .complex = [](FnC x) -> FnC { return __VA_ARGS__; }
#define RLX_SIGNED(...) .signed_int = [](FnI x, [[maybe_unused]] int bits) -> FnI { return __VA_ARGS__; }
#define RLX_UNSIGNED(...) .unsigned_int = [](FnU x, [[maybe_unused]] int bits) -> FnU { return __VA_ARGS__; }
#define RLX_DERIVATIVE(...) .derivative = +[](const FunctionSlope& s) -> Expr { return __VA_ARGS__; }

using FnC = std::complex<double>;
using FnI = std::int64_t;
using FnU = std::uint64_t;

constexpr DTypes kFnF = DTypes::Float;
constexpr DTypes kFnFC = DTypes::Float | DTypes::Complex;
constexpr DTypes kFnFI = DTypes::Float | DTypes::Int;
constexpr DTypes kFnAll = DTypes::Float | DTypes::Int | DTypes::Complex;

constexpr double kInvSqrt2 = 0.70710678118654752440;
constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kGeluCubic = 0.044715;  // Hendrycks and Gimpel, "Gaussian Error Linear Units"

/// The lowest `bits` bits of a negative number, without the sign bits above them.
inline FnU low_bits(FnI x, int bits) { return static_cast<FnU>(x) & (~FnU{0} >> (64 - bits)); }
inline FnI wrap_neg(FnI x) { return static_cast<FnI>(FnU{0} - static_cast<FnU>(x)); }

// -- derivatives longer than a line --

/// x within a range beyond which the function's slopes no longer change, so that no slope is 0 * infinity.
inline Expr bounded(const FunctionSlope& s, double by) { return s.g.min(s.g.max(s.x, -by), by); }
/// exp(-x^2), which is 0 from 100 on.
inline Expr bell(const FunctionSlope& s) {
  const Expr x = bounded(s, 100);
  return s.g.exp(-(x * x));
}
/// ct * slope(x) of F16 and BF16 in F32, for slopes whose parts leave the range or whose result has lost what they
/// need.
template <class F>
Expr widened(const FunctionSlope& s, F&& slope) {
  const DType t = s.x.dtype();
  if (!is_float(t) || dtype_bits(t) > 16) return s.ct * slope(s.x);
  return s.g.cast(s.g.cast(s.ct, DType::F32) * slope(s.g.cast(s.x, DType::F32)), t);
}

inline Expr d_sigmoid(const FunctionSlope& s) {
  // F16 and BF16 round y to 1 long before the slope vanishes.
  if (dtype_bits(s.x.dtype()) > 16) return s.ct * (s.y * (1.0 - s.y));
  return widened(s, [&](const Expr& x) { return s.g.sigmoid(x) * s.g.sigmoid(-x); });
}
inline Expr d_tanh(const FunctionSlope& s) {
  if (dtype_bits(s.x.dtype()) > 16) return s.ct * (1.0 - s.y * s.y);
  return widened(s, [&](const Expr& x) { return s.g.sigmoid(x * 2.0) * s.g.sigmoid(x * -2.0) * 4.0; });
}
/// 1 - x^2 with its digits near 0, where the slope of the product cancels, and near 1, where that of the square does.
inline Expr one_minus_square(Graph& g, const Expr& x) {
  const Expr product = (1.0 - x) * (x + 1.0);
  return is_complex(x.dtype()) ? product : g.where(g.lt(g.abs(x), 0.5), 1.0 - x * x, product);
}
inline Expr d_atan(const FunctionSlope& s) {
  if (is_complex(s.x.dtype()) || dtype_bits(s.x.dtype()) > 16) return s.ct / (s.x * s.x + 1.0);
  return widened(s, [](const Expr& x) { return 1.0 / (x * x + 1.0); });  // F16 has no square of 256
}
inline Expr d_gelu(const FunctionSlope& s) {
  // 1 + erf cancels below -1, where y = x cdf(x) still has its digits.
  const Expr far = s.g.lt(s.x, -1.0), x = bounded(s, 100);
  Expr cdf = s.g.where(far, s.y / s.g.where(far, s.x, -1.0), (s.g.erf(s.x * kInvSqrt2) + 1.0) * 0.5);
  Expr pdf = s.g.exp(x * x * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
  return s.ct * (cdf + x * pdf);
}
inline Expr d_gelu_approx(const FunctionSlope& s) {
  // y = x sigmoid(2 u). Its slope keeps its digits far below 0, where 1 + tanh(u) and 1 - tanh(u)^2 cancel. Beyond 40
  // the slope is 0 or 1. Squares overflow f16 from 256 on.
  Expr x = bounded(s, 40), x2 = x * x;
  Expr share = s.g.sigmoid((x + x2 * x * kGeluCubic) * (2 * kSqrt2OverPi));
  Expr inner = (x2 * (3 * kGeluCubic) + 1.0) * (2 * kSqrt2OverPi);
  return s.ct * (share * (1.0 - share) * x * inner + share);
}
inline Expr d_silu(const FunctionSlope& s) {
  Expr x = bounded(s, 1000), sigma = s.g.sigmoid(x);
  return s.ct * (sigma * (x * (1.0 - sigma) + 1.0));
}
inline Expr d_elu(const FunctionSlope& s) {
  // Uses `where`, not min(x, 0): min splits its derivative between equal operands, which would halve the second
  // derivative at 0.
  const Expr above = s.g.gt(s.x, 0.0), below = s.g.exp(s.g.where(above, 0.0, s.x));
  return s.params.alpha == 1 ? s.ct * below : s.ct * s.g.where(above, 1.0, below * s.params.alpha);
}
inline Expr d_hard_sigmoid(const FunctionSlope& s) {
  const auto [alpha, beta] = s.params;
  if (alpha == 1.0 / 6 && beta == 0.5) return s.g.where(s.g.lt(s.g.abs(s.x), 3.0), s.ct / 6.0, 0.0);
  return s.g.where(s.g.lt(s.g.abs(s.x * alpha + (beta - 0.5)), 0.5), s.ct * alpha, 0.0);
}
inline Expr d_hard_swish(const FunctionSlope& s) {
  Expr middle = s.ct * ((s.x * 2.0 + 3.0) / 6.0);
  return s.g.where(s.g.le(s.x, -3.0), 0.0, s.g.where(s.g.ge(s.x, 3.0), s.ct, middle));
}
inline Expr d_mish(const FunctionSlope& s) {
  Expr x = bounded(s, 1000), t = s.g.tanh(s.g.softplus(x));
  return s.ct * (t + x * (1.0 - t * t) * s.g.sigmoid(x));
}
inline Expr d_softsign(const FunctionSlope& s) {
  return widened(s, [&](const Expr& x) { return s.g.square(1.0 / (s.g.abs(x) + 1.0)); });
}

// Uses the series where the quotient cancels, so that its own derivatives are right at 0 too.
inline Expr d_sinc(const FunctionSlope& s) {
  const Expr near = s.g.lt(s.g.abs(s.x), 0.4), t = s.g.where(near, s.x, 0.0), far = s.g.where(near, 1.0, s.x);
  // (-1)^k 2k pi^2k x^(2k - 1) / (2k + 1)!, k from 1 to 10
  const double pi2 = std::numbers::pi * std::numbers::pi;
  const Expr square = t * t * pi2;
  Expr series = square;
  for (int k = 10; k > 0; --k) {
    double c = k % 2 ? -2 * k : 2 * k;
    for (int i = 2; i <= 2 * k + 1; ++i) c /= i;
    series = k == 10 ? s.g.scalar(c, s.x.dtype()) : series * square + c;
  }
  // cos(pi x) by the distance to the next even number.
  const Expr turn = far - s.g.round(far * 0.5) * 2.0;
  const Expr quotient = (s.g.cos(turn * std::numbers::pi) - s.g.sinc(far)) / far;
  return s.ct * s.g.where(near, series * t * pi2, quotient);
}
inline Expr d_polygamma(const FunctionSlope& s) {
  return s.ct * s.g.activation(ActivationKind::Polygamma, s.x, s.params.alpha + 1, std::nullopt);
}

// -- the table, in the order of RLX_FOR_EACH_FUNCTION --

using K = ActivationKind;
constexpr FunctionRow kFunctionTable[] = {
    {.fn = K::Gelu,
     .dtypes = kFnF,
     RLX_FORMULA(gelu, 0.5 * vanishing(x) * erfc(-x * 0.70710678118654752440)),
     .derivative = d_gelu,
     .f16 = F16Range::Keeps,
     .flops = 12},
    {.fn = K::GeluApprox,
     .dtypes = kFnF,
     RLX_FORMULA(gelu_approx, vanishing(x) * sigmoid(1.59576912160573071176 * (x + 0.044715 * x * x * x))),
     .derivative = d_gelu_approx,
     .f16 = F16Range::Keeps,
     .flops = 14},
    {.fn = K::Silu,
     .dtypes = kFnF,
     RLX_FORMULA(silu, vanishing(x) * sigmoid(x)),
     .derivative = d_silu,
     .f16 = F16Range::Keeps,
     .flops = 10},
    {.fn = K::Relu,
     .dtypes = kFnFI,
     RLX_REAL(x < 0 ? 0.0 : x),  // a NaN stays a NaN
     RLX_SIGNED(x < 0 ? 0 : x),
     RLX_UNSIGNED(x),
     // y is positive exactly where x is. With y here, a matmul's epilogue stores y, and x is not kept.
     RLX_DERIVATIVE(s.g.where(s.g.gt(s.y, 0.0), s.ct, 0.0)),
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Sigmoid,
     .dtypes = kFnF,
     RLX_FORMULA(sigmoid, sigmoid(x)),
     .derivative = d_sigmoid,
     .f16 = F16Range::Keeps,
     .flops = 9},
    {.fn = K::Tanh,
     .dtypes = kFnFC,
     RLX_FORMULA(tanh, tanh(x)),
     RLX_COMPLEX(std::tanh(x)),
     .derivative = d_tanh,
     .f16 = F16Range::Keeps,
     .flops = 10},
    {.fn = K::Exp,
     .dtypes = kFnFC,
     RLX_FORMULA(exp, exp(x)),
     RLX_COMPLEX(std::exp(x)),
     RLX_DERIVATIVE(s.ct* s.y),
     .f16 = F16Range::Leaves,
     .flops = 8},
    {.fn = K::Log,
     .dtypes = kFnFC,
     RLX_FORMULA(log, log(x)),
     RLX_COMPLEX(std::log(x)),
     RLX_DERIVATIVE(s.ct / s.x),
     .f16 = F16Range::Leaves,
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = K::Sqrt,
     .dtypes = kFnFC,
     RLX_REAL(sqrt(x)),
     RLX_COMPLEX(std::sqrt(x)),
     RLX_DERIVATIVE(s.ct * 0.5 / s.y),
     .f16 = F16Range::Keeps,
     .flops = 2,
     .fill = Fill::Positive},
    {.fn = K::Rsqrt,
     .dtypes = kFnFC,
     RLX_REAL(1 / sqrt(x)),
     RLX_COMPLEX(1.0 / std::sqrt(x)),
     RLX_DERIVATIVE(s.ct * -0.5 * s.y / s.x),
     .f16 = F16Range::Leaves,
     .flops = 3,
     .fill = Fill::Positive},
    {.fn = K::Neg,
     .dtypes = kFnAll,
     RLX_REAL(-x),
     RLX_COMPLEX(-x),
     RLX_SIGNED(wrap_neg(x)),
     RLX_UNSIGNED(FnU{0} - x),
     RLX_DERIVATIVE(-s.ct),
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Abs,
     .dtypes = kFnFI,
     RLX_REAL(fabs(x)),
     RLX_SIGNED(x < 0 ? wrap_neg(x) : x),
     RLX_UNSIGNED(x),
     RLX_DERIVATIVE(s.ct* s.g.sign(s.x)),
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Sin,
     .dtypes = kFnFC,
     RLX_REAL(sin(x)),
     RLX_COMPLEX(std::sin(x)),
     RLX_DERIVATIVE(s.ct* s.g.cos(s.x)),
     .f16 = F16Range::Keeps,
     .flops = 10},
    {.fn = K::Cos,
     .dtypes = kFnFC,
     RLX_REAL(cos(x)),
     RLX_COMPLEX(std::cos(x)),
     RLX_DERIVATIVE(-(s.ct* s.g.sin(s.x))),
     .f16 = F16Range::Keeps,
     .flops = 10},
    {.fn = K::Tan,
     .dtypes = kFnFC,
     RLX_REAL(tan(x)),
     RLX_COMPLEX(std::tan(x)),
     RLX_DERIVATIVE(s.ct*(s.y* s.y + 1.0)),
     .f16 = F16Range::Keeps,
     .flops = 14,
     .fill = Fill::Unit},
    {.fn = K::Atan,
     .dtypes = kFnFC,
     RLX_REAL(atan(x)),
     RLX_COMPLEX(std::atan(x)),
     .derivative = d_atan,
     .f16 = F16Range::Keeps,
     .flops = 12,
     .fill = Fill::Unit},
    {.fn = K::Round, .dtypes = kFnF, RLX_REAL(nearbyint(x)), .derivative = kFlat, .f16 = F16Range::Keeps, .flops = 1},
    {.fn = K::Recip,
     .dtypes = kFnFC,
     RLX_REAL(1 / x),
     RLX_COMPLEX(1.0 / x),
     RLX_DERIVATIVE(-(s.ct* s.y* s.y)),
     .f16 = F16Range::Leaves,
     .flops = 2,
     .fill = Fill::Positive},
    {.fn = K::Floor, .dtypes = kFnF, RLX_REAL(floor(x)), .derivative = kFlat, .f16 = F16Range::Keeps, .flops = 1},
    {.fn = K::Ceil, .dtypes = kFnF, RLX_REAL(ceil(x)), .derivative = kFlat, .f16 = F16Range::Keeps, .flops = 1},
    {.fn = K::Sign,
     .dtypes = kFnFI,
     RLX_REAL(x > 0   ? 1.0
              : x < 0 ? -1.0
                      : x),
     RLX_SIGNED(FnI{x > 0} - FnI{x < 0}),
     RLX_UNSIGNED(FnU{x > 0}),
     .derivative = kFlat,
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Softplus,
     .dtypes = kFnF,
     RLX_FORMULA(softplus, softplus(x)),
     RLX_DERIVATIVE(s.ct* s.g.sigmoid(s.x)),
     .f16 = F16Range::Keeps,
     .flops = 16},
    {.fn = K::Elu,
     .dtypes = kFnF,
     .alpha = 1.0,
     .real = [](double x) -> double { return elementwise::scalar::elu(x, 1.0); },
     .c = "x > 0 ? x : expm1(x)",
     .real_with = [](double x, double alpha, double) -> double { return elementwise::scalar::elu(x, alpha); },
     .c_with = "x > 0 ? x : alpha * expm1(x)",
     .derivative = d_elu,
     .f16 = F16Range::Keeps,
     .flops = 9},
    {.fn = K::Erf,
     .dtypes = kFnF,
     RLX_FORMULA(erf, erf(x)),
     RLX_DERIVATIVE(s.ct*(bell(s) * (2 * std::numbers::inv_sqrtpi))),
     .f16 = F16Range::Keeps,
     .flops = 12},
    {.fn = K::HardSwish,
     .dtypes = kFnF,
     RLX_REAL(vanishing(x) * hard_sigmoid(x)),
     .derivative = d_hard_swish,
     .f16 = F16Range::Keeps,
     .flops = 5},
    {.fn = K::HardSigmoid,
     .dtypes = kFnF,
     .alpha = 1.0 / 6,
     .beta = 0.5,
     RLX_REAL(hard_sigmoid(x)),
     RLX_REAL_WITH(alpha* x + beta <= 0    ? 0.0
                   : alpha * x + beta >= 1 ? 1.0
                                           : alpha * x + beta),
     .derivative = d_hard_sigmoid,
     .f16 = F16Range::Keeps,
     .flops = 4},
    {.fn = K::Mish,
     .dtypes = kFnF,
     RLX_FORMULA(mish, vanishing(x) * tanh(softplus(x))),
     .derivative = d_mish,
     .f16 = F16Range::Keeps,
     .flops = 28},
    {.fn = K::Softsign,
     .dtypes = kFnF,
     RLX_REAL(fabs(x) > 1e300 ? copysign(1.0, x) : x / (1 + fabs(x))),  // its limit at an infinity
     .derivative = d_softsign,
     .f16 = F16Range::Keeps,
     .flops = 3},
    {.fn = K::LogSigmoid,
     .dtypes = kFnF,
     RLX_FORMULA(log_sigmoid, -softplus(-x)),
     RLX_DERIVATIVE(s.ct* s.g.sigmoid(-s.x)),
     .f16 = F16Range::Keeps,
     .flops = 16},
    {.fn = K::Expm1,
     .dtypes = kFnF,
     RLX_FORMULA(expm1, expm1(x)),
     RLX_DERIVATIVE(s.ct* s.g.exp(s.x)),
     .f16 = F16Range::Leaves,
     .flops = 8},
    {.fn = K::Log1p,
     .dtypes = kFnF,
     RLX_FORMULA(log1p, log1p(x)),
     RLX_DERIVATIVE(s.ct / (s.x + 1.0)),
     .f16 = F16Range::Leaves,
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = K::Not,
     .dtypes = DTypes::Int | DTypes::Bool,
     RLX_SIGNED(~x),
     RLX_UNSIGNED(~x),
     .boolean = [](FnU x) -> FnU { return x == 0; },  // logical, not bitwise
     .derivative = kFlat,
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Square,
     .dtypes = kFnAll,
     RLX_REAL(x* x),
     RLX_COMPLEX(x* x),
     RLX_SIGNED(static_cast<FnI>(static_cast<FnU>(x) * static_cast<FnU>(x))),
     RLX_UNSIGNED(x* x),
     RLX_DERIVATIVE(s.ct* s.x * 2.0),
     .f16 = F16Range::Leaves,
     .flops = 1},
    {.fn = K::LeakyRelu,
     .dtypes = kFnF,
     .alpha = 0.01,
     RLX_REAL(x < 0 ? 0.01 * x : x),
     RLX_REAL_WITH(x < 0 ? (alpha == 0 ? -0.0 : alpha * x) : x),  // avoids the NaN of 0 * -inf
     RLX_DERIVATIVE(s.g.where(s.g.lt(s.x, 0.0), s.ct* s.params.alpha, s.ct)),
     .f16 = F16Range::Keeps,
     .flops = 2},
    {.fn = K::Asin,
     .dtypes = kFnFC,
     RLX_REAL(asin(x)),
     RLX_COMPLEX(std::asin(x)),
     RLX_DERIVATIVE(s.ct* s.g.rsqrt(one_minus_square(s.g, s.x))),
     .f16 = F16Range::Keeps,
     .flops = 12,
     .fill = Fill::Unit},
    {.fn = K::Acos,
     .dtypes = kFnFC,
     RLX_REAL(acos(x)),
     RLX_COMPLEX(std::acos(x)),
     RLX_DERIVATIVE(-(s.ct* s.g.rsqrt(one_minus_square(s.g, s.x)))),
     .f16 = F16Range::Keeps,
     .flops = 12,
     .fill = Fill::Unit},
    {.fn = K::Sinh,
     .dtypes = kFnFC,
     RLX_FORMULA(sinh, sinh(x)),
     RLX_COMPLEX(std::sinh(x)),
     RLX_DERIVATIVE(s.ct* s.g.cosh(s.x)),
     .f16 = F16Range::Leaves,
     .flops = 12},
    {.fn = K::Cosh,
     .dtypes = kFnFC,
     RLX_FORMULA(cosh, cosh(x)),
     RLX_COMPLEX(std::cosh(x)),
     RLX_DERIVATIVE(s.ct* s.g.sinh(s.x)),
     .f16 = F16Range::Leaves,
     .flops = 12},
    {.fn = K::Asinh,
     .dtypes = kFnF,
     RLX_FORMULA(asinh, asinh(x)),
     RLX_DERIVATIVE(s.ct / s.g.hypot(s.x, 1.0)),
     .f16 = F16Range::Keeps,
     .flops = 14},
    {.fn = K::Acosh,
     .dtypes = kFnF,
     RLX_FORMULA(acosh, acosh(x)),
     RLX_DERIVATIVE(s.ct* s.g.rsqrt(s.x - 1.0) * s.g.rsqrt(s.x + 1.0)),
     .f16 = F16Range::Keeps,
     .flops = 14,
     .fill = Fill::AboveOne},
    {.fn = K::Atanh,
     .dtypes = kFnFC,
     RLX_FORMULA(atanh, atanh(x)),
     RLX_COMPLEX(std::atanh(x)),
     RLX_DERIVATIVE(s.ct / one_minus_square(s.g, s.x)),
     .f16 = F16Range::Keeps,
     .flops = 14,
     .fill = Fill::Unit},
    {.fn = K::Exp2,
     .dtypes = kFnF,
     RLX_FORMULA(exp2, exp2(x)),
     RLX_DERIVATIVE(s.ct* s.y* std::numbers::ln2),
     .f16 = F16Range::Leaves,
     .flops = 8},
    {.fn = K::Log2,
     .dtypes = kFnF,
     RLX_FORMULA(log2, log2(x)),
     RLX_DERIVATIVE(s.ct* std::numbers::log2e / s.x),
     .f16 = F16Range::Leaves,
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = K::Log10,
     .dtypes = kFnF,
     RLX_FORMULA(log10, log10(x)),
     RLX_DERIVATIVE(s.ct* std::numbers::log10e / s.x),
     .f16 = F16Range::Leaves,
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = K::Cbrt,
     .dtypes = kFnF,
     RLX_REAL(cbrt(x)),
     RLX_DERIVATIVE(s.ct / (s.y * s.y * 3.0)),
     .f16 = F16Range::Keeps,
     .flops = 12,
     .fill = Fill::Positive},
    {.fn = K::Trunc, .dtypes = kFnF, RLX_REAL(trunc(x)), .derivative = kFlat, .f16 = F16Range::Keeps, .flops = 1},
    {.fn = K::Erfinv,
     .dtypes = kFnF,
     RLX_FORMULA(erfinv, erfinv(x)),
     RLX_DERIVATIVE(s.ct*(s.g.exp(s.y* s.y) * (0.5 / std::numbers::inv_sqrtpi))),
     .f16 = F16Range::Keeps,
     .flops = 60,
     .fill = Fill::Unit},
    {.fn = K::Erfc,
     .dtypes = kFnF,
     RLX_FORMULA(erfc, erfc(x)),
     RLX_DERIVATIVE(s.ct*(bell(s) * (-2 * std::numbers::inv_sqrtpi))),
     .f16 = F16Range::Keeps,
     .flops = 14},
    {.fn = K::Lgamma,
     .dtypes = kFnF,
     RLX_REAL(lgamma(x)),
     RLX_DERIVATIVE(s.ct* s.g.digamma(s.x)),
     .f16 = F16Range::Leaves,
     .flops = 30,
     .fill = Fill::Positive},
    {.fn = K::Digamma,
     .dtypes = kFnF,
     RLX_REAL(digamma(x)),
     RLX_DERIVATIVE(s.ct* s.g.polygamma(s.x)),
     .f16 = F16Range::Leaves,
     .flops = 50,
     .fill = Fill::Positive},
    {.fn = K::Polygamma,
     .dtypes = kFnF,
     .alpha = 1.0,
     .order = 170,
     RLX_REAL(polygamma(x, 1)),
     RLX_REAL_WITH(polygamma(x, alpha)),
     .derivative = d_polygamma,
     .f16 = F16Range::Leaves,
     .flops = 200,
     .fill = Fill::Positive},
    {.fn = K::Sinc, .dtypes = kFnF, RLX_REAL(sinc(x)), .derivative = d_sinc, .f16 = F16Range::Keeps, .flops = 14},
    {.fn = K::Popcount,
     .dtypes = DTypes::Int,
     RLX_SIGNED(std::popcount(low_bits(x, bits))),
     RLX_UNSIGNED(static_cast<FnU>(std::popcount(x))),
     .derivative = kFlat,
     .f16 = F16Range::Keeps,
     .flops = 1},
    {.fn = K::Clz,
     .dtypes = DTypes::Int,
     RLX_SIGNED(std::countl_zero(low_bits(x, bits)) - (64 - bits)),
     RLX_UNSIGNED(static_cast<FnU>(std::countl_zero(x) - (64 - bits))),
     .derivative = kFlat,
     .f16 = F16Range::Keeps,
     .flops = 1},
};

#undef RLX_REAL
#undef RLX_FORMULA
#undef RLX_REAL_WITH
#undef RLX_COMPLEX
#undef RLX_SIGNED
#undef RLX_UNSIGNED
#undef RLX_DERIVATIVE

constexpr bool functions_in_order() {
  for (std::size_t i = 0; i < std::size(kFunctionTable); ++i)
    if (static_cast<std::size_t>(kFunctionTable[i].fn) != i) return false;
  return std::size(kFunctionTable) == static_cast<std::size_t>(kNumActivationKinds);
}
static_assert(functions_in_order(), "kFunctionTable must have one row per ActivationKind, in its order");

// True when every row has all functions of the dtype classes that it claims, and consistent parameters.
constexpr bool functions_whole() {
  for (const FunctionRow& r : kFunctionTable) {
    const DTypes dtypes = r.dtypes;
    if (contains(dtypes, DType::F32) != (r.real != nullptr) || contains(dtypes, DType::C64) != (r.complex != nullptr) ||
        contains(dtypes, DType::I32) != (r.signed_int != nullptr) ||
        contains(dtypes, DType::U32) != (r.unsigned_int != nullptr) ||
        contains(dtypes, DType::Bool) != (r.boolean != nullptr) || r.alpha.has_value() != (r.real_with != nullptr) ||
        (r.beta && !r.alpha) || (r.order > 0 && !r.alpha))
      return false;
  }
  return true;
}
static_assert(functions_whole(),
              "a row must hold a function for each class of its dtypes, and real_with for parameters");

}  // namespace
}  // namespace rlx
