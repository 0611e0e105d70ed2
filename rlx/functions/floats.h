// Tests and parts of floating numbers, by their bits: what NumPy and C have of them.
#pragma once

#include "rlx/ir/value.h"

namespace rlx::floats {

/// Bool: where x is NaN; of complex x where a part is. Integers and Bool never are.
Expr is_nan(const Expr& x);
/// Bool: where x is +inf or -inf; of complex x where a part is.
Expr is_inf(const Expr& x);
/// Bool: where x is neither infinite nor NaN.
Expr is_finite(const Expr& x);
/// Bool: where the sign is negative, that of -0 and of NaN too. Of unsigned integers and Bool never.
Expr signbit(const Expr& x);
/// |x| with the sign of y, floats of one dtype that broadcast.
Expr copysign(const Expr& x, const Expr& y);
/// The number next to x on the way to y, floats of one dtype that broadcast: y itself where they are equal. Its
/// derivative is 0.
Expr nextafter(const Expr& x, const Expr& y);
/// x 2^n, rounded once, for integers n that broadcast against the float x.
Expr ldexp(const Expr& x, const Expr& n);
struct Frexp {
  Expr mantissa;  // 1/2 <= |m| < 1; x itself of 0, infinities and NaN
  Expr exponent;  // I32
};
/// x = m 2^e of float x.
Frexp frexp(const Expr& x);

}  // namespace rlx::floats
