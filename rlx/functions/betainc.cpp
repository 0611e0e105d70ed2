// The regularised incomplete beta function, with custom derivatives: a loop over the continued fraction; for large
// parameters an asymptotic expansion around the normal distribution.
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/functions/special.h"
#include "rlx/ir/graph.h"

namespace rlx::special {
namespace {

constexpr double kLarge = 1e6;  // when both a and b are larger, the expansion is exact and the fraction would be slow
constexpr std::int64_t kTerms = 4000;  // the most terms of the fraction; about 0.6 sqrt(min(a, b)) are needed
constexpr double kNotInside = std::numeric_limits<double>::quiet_NaN();

/// A value without derivatives.
struct Plain {
  Expr v;
  friend Plain operator+(const Plain& x, const Plain& y) { return {x.v + y.v}; }
  friend Plain operator*(const Plain& x, const Plain& y) { return {x.v * y.v}; }
  friend Plain operator/(const Plain& x, const Plain& y) { return {x.v / y.v}; }
  friend Plain operator+(const Plain& x, const Expr& c) { return {x.v + c}; }
  friend Plain operator*(const Plain& x, const Expr& c) { return {x.v * c}; }
  friend Plain operator+(const Plain& x, double c) { return {x.v + c}; }
  friend Plain operator*(const Plain& x, double c) { return {x.v * c}; }
  Plain like(double c) const { return {v * 0.0 + c}; }
  Plain mapped(const Expr& value, const Expr&) const { return {value}; }
  static Plain chosen(const Expr& which, const Plain& x, const Plain& y) {
    return {which.graph().where(which, x.v, y.v)};
  }
  void put(ExprList& list) const { list.push_back(v); }
  static Plain take(const ExprList& list, std::size_t& at) { return {list[at++]}; }
  Expr distance(Graph& g) const { return g.abs(v - 1.0); }
};
/// A value with its derivatives by p and q (forward mode).
struct Slopes {
  Expr v, p, q;
  friend Slopes operator+(const Slopes& x, const Slopes& y) { return {x.v + y.v, x.p + y.p, x.q + y.q}; }
  friend Slopes operator*(const Slopes& x, const Slopes& y) {
    return {x.v * y.v, x.p * y.v + x.v * y.p, x.q * y.v + x.v * y.q};
  }
  friend Slopes operator/(const Slopes& x, const Slopes& y) {
    const Expr r = x.v / y.v;
    return {r, (x.p - r * y.p) / y.v, (x.q - r * y.q) / y.v};
  }
  friend Slopes operator+(const Slopes& x, const Expr& c) { return {x.v + c, x.p, x.q}; }
  friend Slopes operator*(const Slopes& x, const Expr& c) { return {x.v * c, x.p * c, x.q * c}; }
  friend Slopes operator+(const Slopes& x, double c) { return {x.v + c, x.p, x.q}; }
  friend Slopes operator*(const Slopes& x, double c) { return {x.v * c, x.p * c, x.q * c}; }
  Slopes like(double c) const { return {v * 0.0 + c, v * 0.0, v * 0.0}; }
  /// f(v), from the value and the derivative of f at v.
  Slopes mapped(const Expr& value, const Expr& slope) const { return {value, p * slope, q * slope}; }
  static Slopes chosen(const Expr& which, const Slopes& x, const Slopes& y) {
    Graph& g = which.graph();
    return {g.where(which, x.v, y.v), g.where(which, x.p, y.p), g.where(which, x.q, y.q)};
  }
  void put(ExprList& list) const { list.insert(list.end(), {v, p, q}); }
  static Slopes take(const ExprList& list, std::size_t& at) {
    at += 3;
    return {list[at - 3], list[at - 2], list[at - 1]};
  }
  Expr distance(Graph& g) const { return g.max(g.abs(v - 1.0), g.max(g.abs(p), g.abs(q))); }
};

/// The even part of the continued fraction (DLMF 8.17.22) by Lentz's method, for z below the mean; y is 1 - z. The tail
/// is the front factor divided by this fraction. The term 1 - z (p + q) / p is computed from p y - q z, which loses no
/// digits where z or y is small.
template <class T>
T fraction(const T& p, const T& q, const Expr& z, const Expr& y) {
  Graph& g = z.graph();
  const T above = p * y + q * -z + 1.0;
  const T start = p / (p + 1.0) * above;
  ExprList init{g.scalar(1.0, DType::F64)};
  start.put(init);
  p.like(std::numeric_limits<double>::infinity()).put(init);
  start.put(init);
  init.push_back(p.v * 0.0 + 1.0);
  // Compares each element before the reduction, so that a NaN in one element does not end the loop for the others.
  const auto more = [](Graph& body, const ExprList& k) { return body.reduce_max(body.gt(k.back(), 2.3e-16)); };
  const auto step = [&](Graph& body, const ExprList& k) -> LoopStep {
    const Expr m = k[0];
    std::size_t at = 1;
    T c = T::take(k, at), d = T::take(k, at), h = T::take(k, at);
    const T lower = p + (m * 2.0 - 1.0), upper = p + (m * 2.0 + 1.0), turn = (q + -m) * (m * z);
    const T term = (p + (m - 1.0)) / lower * ((p + q + (m - 1.0)) * z / lower) * turn;
    const T rest = turn / lower + (p + m) / upper * (above + (y + 1.0) * m) + m;
    c = rest + term / c;
    d = rest + term / d;
    const T by = c / d;
    h = h * by;
    ExprList next{m + 1.0};
    c.put(next);
    d.put(next);
    h.put(next);
    next.push_back(by.distance(body));
    return next;
  };
  const LoopResult r = g.while_loop(init, more, step, {.max_iterations = kTerms, .name = "betainc"});
  std::size_t at = 1 + 2 * (init.size() - 2) / 3;
  return T::take(r.carries, at);
}

/// The tail for large p and q. The integrand in the variable t = log(z / y) is exp(-s^2 / 2) times its maximum, which
/// defines s. dt / ds is a series in w = s e, where e^2 = 1 / p + 1 / q. Its coefficients are polynomials in the
/// skewness (q - p) / (p + q). Integrated term by term, the tail is the normal distribution function of s minus its
/// density times a series.
template <class T>
T tail_of_large(const T& p, const T& q, const Expr& z, const Expr& y) {
  Graph& g = z.graph();
  const auto root = [&](const T& t) {
    const Expr r = g.sqrt(t.v);
    return t.mapped(r, 0.5 / r);
  };
  const T one = p.like(1), ee = one / p + one / q, e = root(ee);
  T above = p * y + q * -z;
  constexpr double kFar = 45;  // standard deviations; beyond them the tail is 0
  const Expr far = above.v * e.v;
  above = above * g.where(g.gt(far, kFar), kFar / far, 1.0);
  const auto rest = [&](const T& t) {  // (t - log(1 + t)) / t^2 for |t| below 0.05
    T sum = t.like(1.0 / 13);
    for (int k = 12; k >= 2; --k) sum = sum * t * -1.0 + 1.0 / k;
    return sum;
  };
  const T s = above * root((rest(above / p * -1.0) / p + rest(above / q) / q) * 2.0) * -1.0;
  const T w = s * e, d = (q + p * -1.0) / (p + q), dd = d * d, nine = d * (dd + -9.0);
  const T f1 = d * (-1.0 / 3), f2 = (dd + 3.0) * (1.0 / 48), f3 = nine * (1.0 / 540), f4 = f2 * f2 * (1.0 / 6),
          f5 = nine * (dd + 3.0) * (-1.0 / 90720);
  const T series = f1 + w * (f2 + w * (f3 + w * (f4 + w * f5))) + ee * (f3 * 2.0 + f4 * w * 3.0);
  const Expr bell = g.exp(-0.5 * s.v * s.v) * (1 / std::sqrt(2 * std::numbers::pi));
  const T normal = s.mapped(0.5 * g.erfc(s.v * (-1 / std::numbers::sqrt2)), bell);
  const T scale = (one / (p + q) + ee * -1.0) * (1.0 / 12) + 1.0;  // Stirling's series for the beta function
  return normal + s.mapped(bell, -s.v * bell) * e * scale * series * -1.0;
}

/// sqrt(2 pi) t^t e^-t / Gamma(t), by Stirling's series for t above 10. It is near sqrt(t) for large t and proportional
/// to t for small t.
Expr stirling(const Expr& t) {
  Graph& g = t.graph();
  const Expr r = 1.0 / t, rr = r * r;
  Expr sum = rr * 0.0 - 1.0 / 156;
  for (const double c : {691.0 / 360360, -1.0 / 1188, 1.0 / 1680, -1.0 / 1260, 1.0 / 360, -1.0 / 12})
    sum = sum * rr + c;
  const Expr few = t * g.exp(t * g.log(t) - t + 0.91893853320467274 - g.lgamma(t + 1.0));
  return g.where(g.ge(t, 10.0), g.sqrt(t) * g.exp(sum * r), few);
}

/// The operands, replaced by safe values outside of the function's domain, and ordered so that z is below the mean. p
/// is a and q is b; with `swap` they are exchanged, by I_x(a, b) = 1 - I_(1 - x)(b, a).
struct Domain {
  Expr inside, ends, swap, p, q, z, y, log_p, log_q, size;
  explicit Domain(const ExprList& in) {
    Expr a = in[0], b = in[1], x = in[2];
    Graph& g = x.graph();
    const Expr shape = g.bit_and(g.bit_and(g.gt(a, 0.0), g.gt(b, 0.0)), g.lt(a + b, HUGE_VAL));
    ends = g.where(shape, g.where(g.eq(x, 0.0), 0.0, g.where(g.eq(x, 1.0), g.scalar(1.0, DType::F64), kNotInside)),
                   kNotInside);
    inside = g.bit_and(shape, g.bit_and(g.gt(x, 0.0), g.lt(x, 1.0)));
    a = g.where(inside, a, 1.0), b = g.where(inside, b, 1.0), x = g.where(inside, x, 0.5);
    swap = g.gt(x, (a + 1.0) / (a + b + 2.0));
    p = g.where(swap, b, a), q = g.where(swap, a, b);
    z = g.where(swap, 1.0 - x, x), y = g.where(swap, x, 1.0 - x);
    // z^p y^q / B(p, q), computed from the distance of z from the mean, so that no large logarithms cancel.
    const Expr sum = p + q, above = p * y - q * z;
    const auto part = [&](const Expr& n, const Expr& at, const Expr& moved, Expr& logarithm) {
      const Expr t = moved / n, near = g.lt(g.abs(t), 0.5);  // t = at / (its mean) - 1
      const Expr close = g.log1p(g.where(near, t, 0.0));     // whose slope has a pole at t = -1
      logarithm = g.where(near, close, g.log(at) - g.log(n / sum));
      return g.where(near, n * (close - t), n * logarithm - moved);
    };
    const Expr of_p = part(p, z, -above, log_p), of_q = part(q, y, above, log_q);
    size = stirling(p) / stirling(sum) * stirling(q) * (1 / std::sqrt(2 * std::numbers::pi)) * g.exp(of_p + of_q);
  }
  template <class T>
  T tail(const T& of_p, const T& of_q, const T& front) const {
    Graph& g = z.graph();
    const Expr large = g.ge(g.min(p, q), kLarge);
    const T one = of_p.like(1);
    const T by_fraction = front / fraction(T::chosen(large, one, of_p), T::chosen(large, one, of_q),
                                           g.where(large, 0.25, z), g.where(large, 0.75, y));
    return T::chosen(large, tail_of_large(of_p, of_q, z, y), by_fraction);
  }
};

Expr value_of(const ExprList& in) {
  const Domain f(in);
  Graph& g = f.p.graph();
  const Expr tail = g.min(f.tail(Plain{f.p}, Plain{f.q}, Plain{f.size}).v, 1.0);
  return g.where(f.inside, g.where(f.swap, 1.0 - tail, tail), f.ends);
}
/// dI/da, dI/db and dI/dx. They are 0 at the ends of the domain.
ExprList slopes_of(const ExprList& in) {
  const Domain f(in);
  Graph& g = f.p.graph();
  const Expr zero = f.p * 0.0, one = zero + 1.0;
  const auto rest = [&](const Expr& t) { return g.digamma(t) - g.log(t); };
  const Expr both = rest(f.p + f.q);
  const Slopes front{f.size, f.size * (f.log_p + both - rest(f.p)), f.size * (f.log_q + both - rest(f.q))};
  const Slopes tail = f.tail(Slopes{f.p, one, zero}, Slopes{f.q, zero, one}, front);
  const auto inside = [&](const Expr& v) { return g.where(f.inside, v, 0.0); };
  return {inside(g.where(f.swap, -tail.q, tail.p)), inside(g.where(f.swap, -tail.p, tail.q)),
          inside(f.size / (f.z * f.y))};
}

}  // namespace

Expr betainc(const Expr& a, const Expr& b, const Expr& x) {
  const DType t = x.dtype();
  if (!is_float(t) || a.dtype() != t || b.dtype() != t)
    throw Error(ErrorCode::DTypeMismatch,
                concat_text("betainc needs floats of one dtype, got ", a.shape(), ", ", b.shape(), ", ", x.shape()),
                "cast the operands first: g.cast(x, DType::F32)");
  Graph& g = x.graph();
  CustomFn fn;
  fn.name = "betainc";
  fn.body = [](Graph&, const ExprList& in) { return ExprList{value_of(in)}; };
  fn.backward = [](Graph&, const ExprList& in) {
    const ExprList d = slopes_of(in);
    return ExprList{in[4] * d[0], in[4] * d[1], in[4] * d[2]};
  };
  fn.jvp = [](Graph&, const ExprList& in) {
    const ExprList d = slopes_of(in);
    return ExprList{value_of(in), in[3] * d[0] + in[4] * d[1] + in[5] * d[2]};
  };
  const Dims dims = g.add(g.add(a, b), x).shape().dims();  // operands are expanded to the result's dims, so that
                                                           // cotangents have the operands' dims
  const auto whole = [&](const Expr& v) { return g.cast(g.expand(v, dims), DType::F64); };
  return g.cast(g.custom_fn(ExprList{whole(a), whole(b), whole(x)}, fn)[0], t);
}

}  // namespace rlx::special
