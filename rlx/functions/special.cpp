// Special functions as compositions of ops.
#include "rlx/functions/special.h"

#include <array>
#include <cmath>
#include <iterator>
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
  // Checked here, because an error of an inner op would name an op that the caller did not write.
  const Expr& first = **operands.begin();
  for (const Expr* e : operands)
    if (!broadcast_dims(first.shape().dims(), e->shape().dims()))
      throw Error(ErrorCode::ShapeMismatch,
                  concat_text(function, ": operands ", first.shape(), " and ", e->shape(), " do not broadcast"),
                  "extents must be equal or 1, counted from the last axis");
}

/// x log(y + shift), 0 where x is 0, except that NaN of y stays NaN. Its slope by x is the logarithm, also where it is
/// infinite; its slope by y is 0 where both x and the logarithm's operand are 0.
Expr times_logarithm(const char* name, const Expr& x, const Expr& y, bool shifted) {
  const auto log_of = [=](const Expr& v) { return shifted ? v.graph().log1p(v) : v.graph().log(v); };
  const auto by_y = [=](const Expr& a, const Expr& v) {
    Graph& g = a.graph();
    const Expr under = shifted ? v + 1.0 : v, none = g.bit_and(g.eq(a, 0.0), g.eq(under, 0.0));
    return g.where(none, 0.0, a / g.where(none, 1.0, under));  // of slope 1 / y by x also where x is 0
  };
  CustomFn fn;
  fn.name = name;
  fn.body = [=](Graph& g, const ExprList& in) {
    const Expr none = g.bit_and(g.eq(in[0], 0.0), g.eq(in[1], in[1]));
    return ExprList{g.where(none, 0.0, in[0] * log_of(g.where(none, shifted ? 0.0 : 1.0, in[1])))};
  };
  fn.backward = [=](Graph&, const ExprList& in) { return ExprList{in[3] * log_of(in[1]), in[3] * by_y(in[0], in[1])}; };
  // The value beside a tangent, whose derivative by x is the logarithm also where x is 0: only there where the
  // logarithm is not finite is the product set to 0.
  const auto value = [=](Graph& g, const Expr& a, const Expr& v) {
    const Expr under = shifted ? v + 1.0 : v, endless = g.bit_or(g.le(under, 0.0), g.eq(v, kInfinity));
    const Expr none = g.bit_and(g.eq(a, 0.0), endless);
    return g.where(none, 0.0, a * log_of(g.where(none, shifted ? 0.0 : 1.0, v)));
  };
  fn.jvp = [=](Graph& g, const ExprList& in) {
    // A tangent of 0 stays 0 beside an infinite slope.
    const auto times = [&](const Expr& tangent, const Expr& slope) {
      return g.where(g.eq(tangent, 0.0), 0.0, tangent * slope);
    };
    return ExprList{value(g, in[0], in[1]), times(in[2], log_of(in[1])) + times(in[3], by_y(in[0], in[1]))};
  };
  Graph& g = x.graph();
  const Dims dims = g.add(x, y).shape().dims();  // cotangents have the operands' dims
  return g.custom_fn({g.expand(x, dims), g.expand(y, dims)}, fn)[0];
}

/// log Gamma(t) - ((t - 1/2) log t - t + log(2 pi) / 2) for t >= 10: Stirling's series.
Expr stirling_rest(const Expr& t) {
  Graph& g = t.graph();
  const Expr r = 1.0 / t, rr = r * r;
  constexpr double kSeries[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const std::size_t terms = t.dtype() == DType::F64 ? std::size(kSeries) : 3;
  Expr sum = g.scalar(kSeries[terms - 1], t.dtype());
  for (std::size_t k = terms - 1; k-- > 0;) sum = sum * rr + kSeries[k];
  return sum * r;
}

/// log(p / q) for p >= 0 and q > 0, with the slopes 1 / p and -1 / q.
Expr log_ratio(const Expr& p, const Expr& q) {
  const auto value = [](const Expr& x, const Expr& y) {
    Graph& g = x.graph();
    const Expr ratio = x / y;
    // Near 1 the logarithm of the quotient has lost its digits. A quotient outside of the range is taken apart.
    const Expr near = g.bit_and(g.gt(ratio, 0.5), g.lt(ratio, 2.0));
    const Expr whole = g.bit_and(g.gt(ratio, x.dtype() == DType::F64 ? 0x1p-1021 : 0x1p-125), g.lt(ratio, kInfinity));
    const Expr plain = g.bit_and(whole, g.logical_not(near));
    return g.where(near, g.log1p(g.where(near, (x - y) / y, 0.0)),
                   g.where(plain, g.log(g.where(plain, ratio, 1.0)), g.log(x) - g.log(y)));
  };
  CustomFn fn;  // slopes through the quotient would be out of range where it is
  fn.name = "log_ratio";
  fn.body = [=](Graph&, const ExprList& in) { return ExprList{value(in[0], in[1])}; };
  fn.jvp = [=](Graph&, const ExprList& in) { return ExprList{value(in[0], in[1]), in[2] / in[0] - in[3] / in[1]}; };
  return p.graph().custom_fn({p, q}, fn)[0];
}

/// p log(p / q), or p log(p / q) - p + q as `divergence`; infinite where that is not defined.
Expr relative_entropy(const char* name, const Expr& p, const Expr& q, bool divergence) {
  // At p = 0 the value of p log p is 0, its slope -infinity.
  const auto in_domain = [](const Expr& x, const Expr& y) {
    return x.graph().bit_and(x.graph().ge(x, 0.0), x.graph().gt(y, 0.0));
  };
  const auto value = [=](const Expr& x, const Expr& y) {
    Graph& g = x.graph();
    const Expr none = g.bit_and(g.eq(x, 0.0), g.ge(y, 0.0)), both = g.bit_and(in_domain(x, y), g.gt(x, 0.0));
    const Expr product = x * log_ratio(g.where(both, x, 1.0), g.where(both, y, 1.0));
    const Expr finite = g.bit_or(both, none);
    Expr number = g.where(both, product, 0.0);
    if (divergence) number = g.where(g.eq(number, kInfinity), number, number - x + y);
    return g.where(g.bit_or(g.ne(x, x), g.ne(y, y)), kNoNumber, g.where(finite, number, kInfinity));
  };
  const auto by_p = [=](const Expr& x, const Expr& y) {
    Graph& g = x.graph();
    const Expr inside = in_domain(x, y), slope = log_ratio(g.where(inside, x, 1.0), g.where(inside, y, 1.0));
    return g.where(inside, divergence ? slope : slope + 1.0, 0.0);
  };
  const auto by_q = [=](const Expr& x, const Expr& y) {
    Graph& g = x.graph();
    const Expr inside = in_domain(x, y), under = g.where(inside, y, 1.0);
    return g.where(inside, (divergence ? y - x : -x) / under, 0.0);
  };
  CustomFn fn;  // the slopes of the product have 1 / p and p / q / q, which small numbers do not have
  fn.name = name;
  fn.body = [=](Graph&, const ExprList& in) { return ExprList{value(in[0], in[1])}; };
  fn.backward = [=](Graph&, const ExprList& in) {
    return ExprList{in[3] * by_p(in[0], in[1]), in[3] * by_q(in[0], in[1])};
  };
  fn.jvp = [=](Graph& g, const ExprList& in) {
    // 0 beside an infinite slope.
    const auto along = [&](const Expr& t, const Expr& slope) { return g.where(g.eq(t, 0.0), 0.0, t * slope); };
    return ExprList{value(in[0], in[1]), along(in[2], by_p(in[0], in[1])) + along(in[3], by_q(in[0], in[1]))};
  };
  Graph& g = p.graph();
  const Dims dims = g.add(p, q).shape().dims();
  return g.custom_fn({g.expand(p, dims), g.expand(q, dims)}, fn)[0];
}

}  // namespace

Expr logit(const Expr& x) {
  check_floats("logit", {&x});
  if (dtype_bits(x.dtype()) < 32) return x.graph().cast(logit(x.graph().cast(x, DType::F32)), x.dtype());
  // The logarithm of a quotient near 1 has lost its digits; its distance u from 1 has them. log(1 + u) is the logarithm
  // of the rounded sum w, times u / (w - 1) for the rounding.
  const auto value = [](const Expr& v) {
    Graph& g = v.graph();
    const Expr rest = 1.0 - v, near = g.bit_and(g.gt(v, 0.3), g.lt(v, 0.7));
    const Expr u = g.where(near, (v * 2.0 - 1.0) / rest, 1.0), w = g.where(near, u + 1.0, v / rest);
    const Expr one = g.eq(w, 1.0), grown = g.where(near, w - 1.0, 1.0);
    return g.where(one, u, g.log(w) * (u / g.where(one, 1.0, grown)));
  };
  CustomFn fn;
  fn.name = "logit";
  fn.body = [=](Graph&, const ExprList& in) { return ExprList{value(in[0])}; };
  fn.jvp = [=](Graph&, const ExprList& in) { return ExprList{value(in[0]), in[1] / (in[0] * (1.0 - in[0]))}; };
  return x.graph().custom_fn({x}, fn)[0];
}

Expr xlogy(const Expr& x, const Expr& y) {
  check_floats("xlogy", {&x, &y});
  return times_logarithm("xlogy", x, y, false);
}

Expr xlog1py(const Expr& x, const Expr& y) {
  check_floats("xlog1py", {&x, &y});
  return times_logarithm("xlog1py", x, y, true);
}

Expr entr(const Expr& x) {
  check_floats("entr", {&x});
  const auto value = [](const Expr& v) {
    Graph& g = v.graph();
    const Expr none = g.eq(v, 0.0);
    return g.where(g.lt(v, 0.0), -kInfinity, g.where(none, 0.0, -(v * g.log(g.where(none, 1.0, v)))));
  };
  CustomFn fn;  // the slope of the product has 1 / x, which small numbers do not have
  fn.name = "entr";
  fn.body = [=](Graph&, const ExprList& in) { return ExprList{value(in[0])}; };
  fn.jvp = [=](Graph& body, const ExprList& in) { return ExprList{value(in[0]), in[1] * -(body.log(in[0]) + 1.0)}; };
  return x.graph().custom_fn({x}, fn)[0];
}

Expr rel_entr(const Expr& p, const Expr& q) {
  check_floats("rel_entr", {&p, &q});
  Graph& g = p.graph();
  if (dtype_bits(p.dtype()) < 32) return g.cast(rel_entr(g.cast(p, DType::F32), g.cast(q, DType::F32)), p.dtype());
  return relative_entropy("rel_entr", p, q, false);
}

Expr kl_div(const Expr& p, const Expr& q) {
  check_floats("kl_div", {&p, &q});
  Graph& g = p.graph();
  if (dtype_bits(p.dtype()) < 32) return g.cast(kl_div(g.cast(p, DType::F32), g.cast(q, DType::F32)), p.dtype());
  return relative_entropy("kl_div", p, q, true);
}

Expr ndtr(const Expr& x) {
  check_floats("ndtr", {&x});
  return x.graph().erfc(x * -std::numbers::sqrt2 * 0.5) * 0.5;
}

// Far below 0, where erfc underflows, it is log(phi(x) / -x) plus the logarithm of the asymptotic series of the ratio.
Expr log_ndtr(const Expr& x) {
  check_floats("log_ndtr", {&x});
  Graph& g = x.graph();
  if (dtype_bits(x.dtype()) < 32) return g.cast(log_ndtr(g.cast(x, DType::F32)), x.dtype());
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

namespace {
// Near 0 and 1, where 2 p - 1 loses the digits of p, it uses rational functions of r = sqrt(-log(min(p, 1 - p))):
// Wichura's algorithm AS 241 (Applied Statistics 37, 1988), with relative errors of 1e-16 down to the smallest F64.
Expr ndtri_value(const Expr& p) {
  Graph& g = p.graph();
  using Coefficients = std::array<double, 8>;  // the highest power first
  constexpr Coefficients kNearAbove = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                                       1.27045825245236838258e0,  3.64784832476320460504e0,  5.76949722146069140550e0,
                                       4.63033784615654529590e0,  1.42343711074968357734e0},
                         kNearBelow = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                       1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                       6.89767334985100004550e-1, 1.67638483018380384940e0,
                                       2.05319162663775882187e0,  1},
                         kFarAbove = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                                      2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
                                      5.46378491116411436990e0,  6.65790464350110377720e0},
                         kFarBelow = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                      1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                      1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                      5.99832206555887937690e-1,  1};
  const auto ratio = [&](const Expr& r, const Coefficients& above, const Coefficients& below) {
    Expr over = r * above[0] + above[1], under = r * below[0] + below[1];
    for (std::size_t i = 2; i < above.size(); ++i) over = over * r + above[i], under = under * r + below[i];
    return over / under;
  };
  const Expr low = g.lt(p, 0.5), smaller = g.where(low, p, 1.0 - p);
  const Expr tail = g.bit_and(g.gt(smaller, 0.0), g.lt(smaller, 0.075));  // erfinv handles NaN, 0, 1 and values outside
                                                                          // of [0, 1]
  const Expr r = g.sqrt(-g.log(g.where(tail, smaller, 0.05)));
  const Expr near = ratio(r - 1.6, kNearAbove, kNearBelow), far = ratio(r - 5.0, kFarAbove, kFarBelow);
  const Expr size = g.where(g.le(r, 5.0), near, far);
  return g.where(tail, g.where(low, -size, size), g.erfinv(g.where(tail, 0.0, p * 2.0 - 1.0)) * std::numbers::sqrt2);
}

/// Its slope is 1 / phi(y): far from 0 the quotient of Mills's ratio, a continued fraction, and p, which keeps the
/// digits that the exponential of y^2 / 2 loses. Derivatives up to the order `levels` are by this rule.
Expr ndtri_of(const Expr& p, int levels) {
  if (levels == 0) return ndtri_value(p);
  CustomFn fn;
  fn.name = "ndtri";
  fn.body = [](Graph&, const ExprList& in) { return ExprList{ndtri_value(in[0])}; };
  fn.jvp = [=](Graph& g, const ExprList& in) {
    const Expr y = ndtri_of(in[0], levels - 1), size = g.abs(y),
               smaller = g.where(g.lt(in[0], 0.5), in[0], 1.0 - in[0]);
    const Expr far = g.bit_and(g.gt(size, 6.0), g.lt(size, kInfinity)), z = g.where(far, size, 6.0);
    Expr below = z;
    for (int k = 24; k > 0; --k) below = z + static_cast<double>(k) / below;
    const Expr near = g.where(far, 0.0, y), bell = g.exp(near * near * 0.5) * std::sqrt(2 * std::numbers::pi);
    return ExprList{y, in[1] * g.where(far, 1.0 / below / g.where(far, smaller, 1.0), bell)};
  };
  return p.graph().custom_fn({p}, fn)[0];
}

}  // namespace

Expr ndtri(const Expr& p) {
  check_floats("ndtri", {&p});
  Graph& g = p.graph();
  if (dtype_bits(p.dtype()) < 32) return g.cast(ndtri(g.cast(p, DType::F32)), p.dtype());
  return ndtri_of(p, 2);
}

// From 10 on F64 uses Stirling's formula, because the exponential of lgamma loses digits as lgamma grows. The powers
// x^(x/2) are within the range wherever the result is. For negative x the sign changes at each integer.
namespace {
Expr gamma_value(const Expr& x) {
  Graph& g = x.graph();
  const Expr floor = g.floor(x), odd = g.ne(g.mod(floor, 2.0), 0.0);
  const Expr small = g.lt(g.abs(x), 1.0), over = g.where(small, g.abs(x), 1.0);  // gamma(x) = gamma(x + 1) / x
  const bool wide = x.dtype() == DType::F64;
  const Expr near = g.where(small, x + 1.0, x), far = g.ge(x, 10.0);
  Expr size = g.exp(g.lgamma(wide ? g.where(far, 1.0, near) : near)) / over;
  if (wide) {
    const Expr t = g.min(g.where(far, x, 10.0), 172.0), root = g.pow(t, t * 0.5);
    size = g.where(far, root * g.exp(-t) * root * g.sqrt(2 * std::numbers::pi / t) * g.exp(stirling_rest(t)), size);
  }
  const Expr pole = g.bit_and(g.lt(x, 0.0), g.eq(floor, x));
  const Expr negative_zero = g.lt(1.0 / x, 0.0);
  const Expr turns = g.where(g.eq(x, 0.0), negative_zero, g.bit_and(g.lt(x, 0.0), odd));
  return g.where(pole, kNoNumber, g.where(turns, -size, size));
}
}  // namespace

Expr gamma(const Expr& x) {
  check_floats("gamma", {&x});
  Graph& g = x.graph();
  if (dtype_bits(x.dtype()) < 32) return g.cast(gamma(g.cast(x, DType::F32)), x.dtype());
  CustomFn fn;
  fn.name = "gamma";
  fn.body = [](Graph&, const ExprList& in) { return ExprList{gamma_value(in[0])}; };
  fn.jvp = [](Graph& body, const ExprList& in) {
    const Expr y = gamma_value(in[0]);
    return ExprList{y, in[1] * y * body.digamma(in[0])};
  };
  return g.custom_fn({x}, fn)[0];
}

// Where the larger operand is 10 or more, the logarithms of gamma cancel. There it uses Stirling's series (Didonato and
// Morris, Algorithm 708, ACM TOMS 18, 1992), with the large terms combined by log1p.
Expr betaln(const Expr& a, const Expr& b) {
  check_floats("betaln", {&a, &b});
  Graph& g = a.graph();
  const DType t = a.dtype();
  if (dtype_bits(t) < 32) return g.cast(betaln(g.cast(a, DType::F32), g.cast(b, DType::F32)), t);
  const Expr swap = g.gt(a, b), p = g.where(swap, b, a), q = g.where(swap, a, b);
  const Expr large = g.bit_and(g.ge(q, 10.0), g.gt(p, 0.0)), endless = g.bit_and(large, g.eq(q, kInfinity));
  const Expr both = g.bit_and(large, g.ge(p, 10.0)), finite = g.bit_and(large, g.lt(q, kInfinity));
  const Expr of_p = g.lgamma(g.where(both, 1.0, p)), small = g.where(large, 1.0, q);
  const Expr direct = of_p + (g.lgamma(small) - g.lgamma(g.where(large, 1.0, p) + small));
  const Expr y = g.where(finite, q, 20.0), x = g.where(finite, p, 1.0), ratio = x / y, grown = g.log1p(ratio);
  // log(gamma(y) / gamma(x + y)) - log(y) / 2 for x >= 10, else the whole of it.
  const Expr rest = stirling_rest(y) - stirling_rest(x + y);
  const Expr one = of_p + rest - (y + (x - 0.5)) * grown - x * (g.log(y) - 1.0);
  const Expr many = g.where(both, x, 20.0), share = g.log1p(y / many);
  const Expr two = 0.91893853320467274 + stirling_rest(many) + rest - 0.5 * g.log(y) - (many - 0.5) * share - y * grown;
  return g.where(endless, -kInfinity, g.where(large, g.where(both, two, one), direct));
}

Expr logaddexp2(const Expr& a, const Expr& b) {
  check_floats("logaddexp2", {&a, &b});
  Graph& g = a.graph();
  const Expr same = g.bit_and(g.eq(a, b), g.eq(g.abs(a), kInfinity));
  const Expr wide = g.ge(a, b), high = g.where(wide, a, b), low = g.where(wide, b, a);
  return high + g.log1p(g.exp2(g.where(same, 0.0, low - high))) * (1 / std::numbers::ln2);
}

}  // namespace rlx::special
