// Special functions. They have scipy.special's names and are composed of ops; erf, erfc, erfinv, lgamma, digamma,
// polygamma, sigmoid (expit), igamma (gammainc) and igammac (gammaincc) are ops.
#pragma once

#include "rlx/ir/value.h"

namespace rlx::special {

// Operands are floats of one dtype and broadcast; other operands give DTypeMismatch or ShapeMismatch.

/// log(x / (1 - x)): -inf at 0, inf at 1, NaN outside [0, 1].
Expr logit(const Expr& x);
/// x log(y), and 0 where x is 0 and y is not NaN.
Expr xlogy(const Expr& x, const Expr& y);
/// x log(1 + y), and 0 where x is 0 and y is not NaN.
Expr xlog1py(const Expr& x, const Expr& y);
/// The entropy term -x log(x): 0 at 0, -inf below 0.
Expr entr(const Expr& x);
/// The relative entropy term p log(p / q). It is 0 where p is 0 and q >= 0, and inf where p or q is negative or only q
/// is 0.
Expr rel_entr(const Expr& p, const Expr& q);
/// rel_entr(p, q) - p + q.
Expr kl_div(const Expr& p, const Expr& q);
/// The cumulative distribution function of the standard normal distribution (ndtr), its logarithm (log_ndtr), accurate
/// far below 0, and its inverse on [0, 1] (ndtri).
Expr ndtr(const Expr& x);
Expr log_ndtr(const Expr& x);
Expr ndtri(const Expr& p);
/// The gamma function with its sign; NaN at negative integers.
Expr gamma(const Expr& x);
/// The logarithm of the beta function: log |B(a, b)| = lgamma(a) + lgamma(b) - lgamma(a + b).
Expr betaln(const Expr& a, const Expr& b);
/// log2(2^a + 2^b) without overflow.
Expr logaddexp2(const Expr& a, const Expr& b);
/// The regularized incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1], NaN elsewhere. It is computed in
/// F64 for every dtype, by its continued fraction (DLMF 8.17.22), or by an expansion around the normal distribution if
/// a and b are above a million. The relative error is 5e-12 for a and b up to some thousands. For larger a and b it is
/// that of rounding x, 1e-16 sqrt(min(a, b)) of the range of the function. It has derivatives by all three operands.
Expr betainc(const Expr& a, const Expr& b, const Expr& x);

}  // namespace rlx::special
