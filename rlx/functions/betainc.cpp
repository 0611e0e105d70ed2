// The regularised incomplete beta function: a loop over its continued fraction, with derivatives of its own.
#include <limits>

#include "rlx/functions/special.h"
#include "rlx/ir/graph.h"

namespace rlx::special {
namespace {

constexpr std::int64_t kPairs = 4000;  // of terms at most; some 5 sqrt(max(a, b)) are enough
constexpr double kNotInside = std::numeric_limits<double>::quiet_NaN();

/// A value alone.
struct Plain {
  Expr v;
  friend Plain operator+(const Plain& x, const Plain& y) { return {x.v + y.v}; }
  friend Plain operator*(const Plain& x, const Plain& y) { return {x.v * y.v}; }
  friend Plain operator/(const Plain& x, const Plain& y) { return {x.v / y.v}; }
  friend Plain operator+(const Plain& x, const Expr& c) { return {x.v + c}; }
  friend Plain operator*(const Plain& x, const Expr& c) { return {x.v * c}; }
  Plain like(double c) const { return {v * 0.0 + c}; }
  void put(ExprList& list) const { list.push_back(v); }
  static Plain take(const ExprList& list, std::size_t& at) { return {list[at++]}; }
  Expr distance(Graph& g) const { return g.abs(v - 1.0); }
};
/// A value and its derivatives by a and b.
struct Slopes {
  Expr v, a, b;
  friend Slopes operator+(const Slopes& x, const Slopes& y) { return {x.v + y.v, x.a + y.a, x.b + y.b}; }
  friend Slopes operator*(const Slopes& x, const Slopes& y) {
    return {x.v * y.v, x.a * y.v + x.v * y.a, x.b * y.v + x.v * y.b};
  }
  friend Slopes operator/(const Slopes& x, const Slopes& y) {
    const Expr q = x.v / y.v;
    return {q, (x.a - q * y.a) / y.v, (x.b - q * y.b) / y.v};
  }
  friend Slopes operator+(const Slopes& x, const Expr& c) { return {x.v + c, x.a, x.b}; }
  friend Slopes operator*(const Slopes& x, const Expr& c) { return {x.v * c, x.a * c, x.b * c}; }
  Slopes like(double c) const { return {v * 0.0 + c, v * 0.0, v * 0.0}; }
  void put(ExprList& list) const { list.insert(list.end(), {v, a, b}); }
  static Slopes take(const ExprList& list, std::size_t& at) {
    at += 3;
    return {list[at - 3], list[at - 2], list[at - 1]};
  }
  Expr distance(Graph& g) const { return g.max(g.abs(v - 1.0), g.max(g.abs(a), g.abs(b))); }
};

/// The continued fraction of x below its mean, where p is its a and q its b: after Lentz, two terms a trip.
template <class T>
T fraction(const T& p, const T& q, const Expr& x) {
  Graph& g = x.graph();
  const T one = p.like(1);
  const T start = one / (one + (p + q) / (p + g.scalar(1.0, DType::F64)) * -x);
  ExprList init{g.scalar(1.0, DType::F64)};
  one.put(init);
  start.put(init);
  start.put(init);
  init.push_back(one.v);
  const auto more = [](Graph& body, const ExprList& k) { return body.gt(body.reduce_max(k.back()), 2.3e-16); };
  const auto step = [&](Graph& body, const ExprList& k) -> LoopStep {
    const Expr m = k[0];
    std::size_t at = 1;
    T c = T::take(k, at), d = T::take(k, at), h = T::take(k, at);
    const T unit = c.like(1), twice = p + m * 2.0;
    const auto turn = [&](const T& term) {
      d = unit / (unit + term * d);
      c = unit + term / c;
      const T by = c * d;
      h = h * by;
      return by;
    };
    turn((q + -m) * m * x / ((p + (m * 2.0 - 1.0)) * twice));
    const T by = turn((p + m) * (p + q + m) * -x / (twice * (p + (m * 2.0 + 1.0))));
    ExprList next{m + 1.0};
    c.put(next);
    d.put(next);
    h.put(next);
    next.push_back(by.distance(body));
    return next;
  };
  const LoopResult r = g.while_loop(init, more, step, {.max_trips = kPairs, .name = "betainc"});
  std::size_t at = 1 + 2 * (init.size() - 2) / 3;
  return T::take(r.carries, at);
}

/// The operands, safe where they are outside of the function's domain.
struct Domain {
  Expr inside, a, b, x, swap, size, ends;
  Domain(const ExprList& in) : a(in[0]), b(in[1]), x(in[2]) {
    Graph& g = x.graph();
    const Expr shape = g.bit_and(g.gt(a, 0.0), g.gt(b, 0.0));
    ends = g.where(shape, g.where(g.eq(x, 0.0), 0.0, g.where(g.eq(x, 1.0), g.scalar(1.0, DType::F64), kNotInside)),
                   kNotInside);
    // Beyond, its three lgamma cancel to nothing.
    constexpr double kMost = 1e9;
    inside = g.bit_and(g.bit_and(shape, g.le(a + b, kMost)), g.bit_and(g.gt(x, 0.0), g.lt(x, 1.0)));
    a = g.where(inside, a, 1.0), b = g.where(inside, b, 1.0), x = g.where(inside, x, 0.5);
    swap = g.gt(x, (a + 1.0) / (a + b + 2.0));  // I_x(a, b) = 1 - I_(1 - x)(b, a)
    size = g.exp(a * g.log(x) + b * g.log1p(-x) + g.lgamma(a + b) - g.lgamma(a) - g.lgamma(b));
  }
  Expr z() const { return x.graph().where(swap, 1.0 - x, x); }
  Expr swapped(const Expr& p, const Expr& q) const { return x.graph().where(swap, q, p); }
};

Expr value_of(const ExprList& in) {
  const Domain f(in);
  Graph& g = f.x.graph();
  const Plain p{f.swapped(f.a, f.b)}, q{f.swapped(f.b, f.a)};
  const Expr tail = f.size * fraction(p, q, f.z()).v / p.v;
  return g.where(f.inside, g.where(f.swap, 1.0 - tail, tail), f.ends);
}
/// dI/da, dI/db and dI/dx, 0 at the ends of the domain.
ExprList slopes_of(const ExprList& in) {
  const Domain f(in);
  Graph& g = f.x.graph();
  const Expr zero = f.x * 0.0, one = zero + 1.0;
  const Slopes p{f.swapped(f.a, f.b), f.swapped(one, zero), f.swapped(zero, one)};
  const Slopes q{f.swapped(f.b, f.a), f.swapped(zero, one), f.swapped(one, zero)};
  const Expr both = g.digamma(f.a + f.b);
  const Slopes front{f.size, f.size * (g.log(f.x) + both - g.digamma(f.a)),
                     f.size * (g.log1p(-f.x) + both - g.digamma(f.b))};
  const Slopes tail = front * fraction(p, q, f.z()) / p;
  const auto turned = [&](const Expr& v) { return g.where(f.inside, g.where(f.swap, -v, v), 0.0); };
  return {turned(tail.a), turned(tail.b), g.where(f.inside, f.size / (f.x * (1.0 - f.x)), 0.0)};
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
  const Dims dims = g.add(g.add(a, b), x).shape().dims();  // each operand has that shape, and its cotangent with it
  const auto whole = [&](const Expr& v) { return g.cast(g.expand(v, dims), DType::F64); };
  return g.cast(g.custom_fn(ExprList{whole(a), whole(b), whole(x)}, fn)[0], t);
}

}  // namespace rlx::special
