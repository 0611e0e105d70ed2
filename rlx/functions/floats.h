// Classification and parts of floats. They follow NumPy and the C functions of the same names.
#pragma once

#include "rlx/ir/value.h"

namespace rlx::floats {

/// Bool: whether x is NaN, or a part of a complex x is. False for integers and Bool.
Expr is_nan(const Expr& x);
/// Bool: whether x is +inf or -inf, or a part of a complex x is. False for integers and Bool.
Expr is_inf(const Expr& x);
/// Bool: whether x is neither infinite nor NaN. True for integers and Bool.
Expr is_finite(const Expr& x);
/// Bool: whether the sign bit of x is set, as it is for -0 and some NaN. False for unsigned integers and Bool.
Expr signbit(const Expr& x);
/// |x| with the sign of y. x and y are floats of one dtype and broadcast.
Expr copysign(const Expr& x, const Expr& y);
/// The next number after x towards y, or y if they are equal. x and y are floats of one dtype and broadcast. The
/// derivative is 0.
Expr nextafter(const Expr& x, const Expr& y);
/// x 2^n, rounded once. x is a float, n an integer, and they broadcast.
Expr ldexp(const Expr& x, const Expr& n);
struct Frexp {
  Expr mantissa;  // 1/2 <= |m| < 1; for 0, infinities and NaN x itself
  Expr exponent;  // I32; for 0, infinities and NaN 0
};
/// Mantissa m and exponent e of float x: x = m 2^e.
Frexp frexp(const Expr& x);

}  // namespace rlx::floats
