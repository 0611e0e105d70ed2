// Special functions that are built of ops.
#include "rlx/functions/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/ir/graph.h"

namespace rlx::special {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

void check_floats(const char* function, std::initializer_list<const Expr*> operands) {
  const DType t = (*operands.begin())->dtype();
  for (const Expr* e : operands)
    if (!is_float(t) || e->dtype() != t)
      throw Error(ErrorCode::DTypeMismatch, concat_text(function, " needs floats of one dtype, got ", e->shape()),
                  "cast the operands first: g.cast(x, DType::F32)");
}

/// x f(y) where x is not 0; there 0, and NaN beside a NaN.
template <class F>
Expr times_logarithm(const Expr& x, const Expr& y, double safe, F&& f) {
  Graph& g = x.graph();
  const Expr none = g.bit_and(g.eq(x, 0.0), g.eq(y, y));
  return g.where(none, 0.0, x * f(g.where(none, safe, y)));
}

}  // namespace

Expr logit(const Expr& x) {
  check_floats("logit", {&x});
  Graph& g = x.graph();
  return g.log(x / (1.0 - x));
}

Expr xlogy(const Expr& x, const Expr& y) {
  check_floats("xlogy", {&x, &y});
  return times_logarithm(x, y, 1, [](const Expr& v) { return v.graph().log(v); });
}

Expr xlog1py(const Expr& x, const Expr& y) {
  check_floats("xlog1py", {&x, &y});
  return times_logarithm(x, y, 0, [](const Expr& v) { return v.graph().log1p(v); });
}

Expr entr(const Expr& x) {
  check_floats("entr", {&x});
  Graph& g = x.graph();
  return g.where(g.lt(x, 0.0), -kInfinity, -xlogy(x, x));
}

Expr rel_entr(const Expr& p, const Expr& q) {
  check_floats("rel_entr", {&p, &q});
  Graph& g = p.graph();
  const Expr zero = g.bit_and(g.eq(p, 0.0), g.ge(q, 0.0)), both = g.bit_and(g.gt(p, 0.0), g.gt(q, 0.0));
  const Expr y = g.where(both, p, 1.0);
  const Expr value = g.where(both, y * g.log(y / g.where(both, q, 1.0)), g.where(zero, 0.0, kInfinity));
  return g.where(g.bit_or(g.ne(p, p), g.ne(q, q)), kNoNumber, value);
}

Expr kl_div(const Expr& p, const Expr& q) {
  Graph& g = p.graph();
  const Expr entropy = rel_entr(p, q);
  const Expr endless = g.eq(entropy, kInfinity);  // infinity less p = infinity
  return g.where(endless, entropy, g.where(endless, 0.0, entropy) - p + q);
}

Expr ndtr(const Expr& x) {
  check_floats("ndtr", {&x});
  return x.graph().erfc(x * -std::numbers::sqrt2 * 0.5) * 0.5;
}

// Far below 0, where erfc leaves the range of numbers, log(phi(x) / -x) with the asymptotic series of the ratio.
Expr log_ndtr(const Expr& x) {
  check_floats("log_ndtr", {&x});
  Graph& g = x.graph();
  const double cut = x.dtype() == DType::F64 ? -20 : -5;
  const Expr far = g.lt(x, cut), above = g.gt(x, 1.0);
  const Expr z = g.where(far, x, cut), v = 1.0 / (z * z);
  Expr series = v * 0.0;
  for (int k = x.dtype() == DType::F64 ? 10 : 5; k > 0; --k) series = (series + 1.0) * v * -(2.0 * k - 1);
  const Expr below = z * z * -0.5 - g.log(-z) - 0.91893853320467274178 + g.log1p(series);
  const Expr tail = ndtr(g.where(above, -x, 0.0));
  const Expr middle = g.log(ndtr(g.where(g.bit_or(far, above), 0.0, x)));
  return g.where(far, below, g.where(above, g.log1p(-tail), middle));
}

Expr ndtri(const Expr& p) {
  check_floats("ndtri", {&p});
  return p.graph().erfinv(p * 2.0 - 1.0) * std::numbers::sqrt2;
}

// Below 0 the sign turns at each integer.
Expr gamma(const Expr& x) {
  check_floats("gamma", {&x});
  Graph& g = x.graph();
  const Expr floor = g.floor(x), odd = g.ne(g.mod(floor, 2.0), 0.0);
  const Expr size = g.exp(g.lgamma(x));
  const Expr pole = g.bit_and(g.lt(x, 0.0), g.eq(floor, x));
  const Expr negative_zero = g.lt(1.0 / x, 0.0);
  const Expr turns = g.where(g.eq(x, 0.0), negative_zero, g.bit_and(g.lt(x, 0.0), odd));
  return g.where(pole, kNoNumber, g.where(turns, -size, size));
}

Expr betaln(const Expr& a, const Expr& b) {
  check_floats("betaln", {&a, &b});
  Graph& g = a.graph();
  return g.lgamma(a) + g.lgamma(b) - g.lgamma(a + b);
}

Expr logaddexp2(const Expr& a, const Expr& b) {
  check_floats("logaddexp2", {&a, &b});
  Graph& g = a.graph();
  const Expr same = g.bit_and(g.eq(a, b), g.eq(g.abs(a), kInfinity));
  const Expr wide = g.ge(a, b), high = g.where(wide, a, b), low = g.where(wide, b, a);
  return high + g.log1p(g.exp2(g.where(same, 0.0, low - high))) * (1 / std::numbers::ln2);
}

}  // namespace rlx::special
