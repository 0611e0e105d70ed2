// Special functions that are built of ops, under scipy.special's names. Others are ops: erf, erfc, erfinv, lgamma,
// digamma, polygamma, sigmoid (expit), igamma (gammainc), igammac (gammaincc).
#pragma once

#include "rlx/ir/value.h"

namespace rlx::special {

// Operands are floats of one dtype that broadcast.

/// log(x / (1 - x)); -inf at 0, inf at 1, NaN outside.
Expr logit(const Expr& x);
/// x log(y), 0 where x is 0 and y is not NaN.
Expr xlogy(const Expr& x, const Expr& y);
/// x log(1 + y), 0 where x is 0 and y is not NaN.
Expr xlog1py(const Expr& x, const Expr& y);
/// -x log(x): 0 at 0, -inf below.
Expr entr(const Expr& x);
/// p log(p / q): 0 where p is 0 and q >= 0, inf where either is negative or q alone is 0.
Expr rel_entr(const Expr& p, const Expr& q);
/// rel_entr(p, q) - p + q.
Expr kl_div(const Expr& p, const Expr& q);
/// The distribution function of a normal number, its logarithm (exact far below 0), and its inverse on [0, 1].
Expr ndtr(const Expr& x);
Expr log_ndtr(const Expr& x);
Expr ndtri(const Expr& p);
/// Gamma(x), with its sign; NaN at negative integers.
Expr gamma(const Expr& x);
/// log |B(a, b)| = lgamma(a) + lgamma(b) - lgamma(a + b).
Expr betaln(const Expr& a, const Expr& b);
/// log2(2^a + 2^b), without overflow of the powers.
Expr logaddexp2(const Expr& a, const Expr& b);
/// I_x(a, b), the regularised incomplete beta function of a, b > 0 and x in [0, 1], NaN elsewhere: in F64, whatever the
/// dtype, by its continued fraction (DLMF 8.17.22), and around the normal distribution where a and b are above a
/// million. Relative 5e-12 for a and b up to some thousands; of larger ones the error is that of x rounded, 1e-16
/// sqrt(min(a, b)) of a distribution's range. Derivatives by all three.
Expr betainc(const Expr& a, const Expr& b, const Expr& x);

}  // namespace rlx::special
