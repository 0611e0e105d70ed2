// Cumulative: running sum, product, maximum or minimum along an axis.
#include "rlx/ops/rule_helpers.h"

#include "rlx/ir/ops/reduce.h"

namespace rlx {
namespace {

// v_{i+1} at i, and zero at the end. It concatenates first and slices then, since v may be empty when a symbol is 0.
Expr next_one(Graph& g, Expr v, std::int64_t axis) {
  const int at = static_cast<int>(axis);
  const Expr end = g.expand(g.scalar(0, v.dtype()), v.shape().with_dim(at, Dim(1)).dims());
  return g.narrow(g.concat({v, end}, axis), axis, Dim(1), v.dim(at));
}
// v_{i-1} at i, and zero at the start.
Expr one_before(Graph& g, Expr v, std::int64_t axis) {
  const int at = static_cast<int>(axis);
  const Expr start = g.expand(g.scalar(0, v.dtype()), v.shape().with_dim(at, Dim(1)).dims());
  return g.narrow(g.concat({start, v}, axis), axis, Dim(0), v.dim(at));
}

// s_i = b_i + a_i s_{i+1} along `axis`, with s = 0 past the end. It only multiplies, so zeros in `a` are allowed. Steps
// double: after the step of width d, b_i holds the sum over [i, i + 2d) and a_i the product over it. A symbolic extent
// has no known number of steps. For it the products of all ranges [i, j) are formed.
Expr suffix_recurrence(Graph& g, Expr b, Expr a, std::int64_t axis) {
  const Dim extent = b.dim(static_cast<int>(axis));
  if (extent.is_static()) {
    const std::int64_t n = extent.value();
    for (std::int64_t d = 1; d < n; d *= 2) {
      const Expr here = g.narrow(a, axis, Dim(0), Dim(n - d));
      const Expr joined = g.narrow(b, axis, Dim(0), Dim(n - d)) + here * g.narrow(b, axis, Dim(d), Dim(n - d));
      b = g.concat({joined, g.narrow(b, axis, Dim(n - d), Dim(d))}, axis);
      if (d * 2 < n) {
        const std::int64_t left = a.dim(static_cast<int>(axis)).value() - d;  // later steps read no further
        a = g.narrow(a, axis, Dim(0), Dim(left)) * g.narrow(a, axis, Dim(d), Dim(left));
      }
    }
    return b;
  }
  const int rank = b.rank() + 1;  // i along `axis`, j along the next
  const DType t = count_dtype(g, {{extent}});
  const Expr later = g.ge(positions(g, extent, axis + 1, rank, t), positions(g, extent, axis, rank, t));
  const Expr products = g.cumulative(CumulativeKind::Prod, g.where(later, g.unsqueeze(a, axis), 1), axis + 1, true);
  return g.sum(g.where(later, products * g.unsqueeze(b, axis), 0), {axis + 1});
}

// The derivative of a running maximum or minimum, in time and memory linear in x. A segment is a range of positions
// with the same extremum y. It starts with the element that set y, and later elements equal to y tie. The elements of a
// segment that tie up to i share y_i equally. A sum over a segment is its first element, plus its ties as a difference
// of running sums in F64. So it is exact when there are no ties. Where y is NaN, the derivative is 0. All values are
// rows [M, N] that run forward and include their own element.
class RunningExtremum {
 public:
  RunningExtremum(Graph& g, const ops::Cumulative& op, Expr x) : g_(g), op_(op), like_(x.shape()) {
    for (std::int64_t i = 0; i < x.rank(); ++i)
      if (i != op.axis) perm_.push_back(i);
    perm_.push_back(op.axis);
    const Expr rows = to_rows(x);
    const Dim count = rows.dim(0), extent = rows.dim(1);
    const Expr y = g.cumulative(op.fn, rows, 1), before = g.cumulative(op.fn, rows, 1, true);
    const DType t = count_dtype(g, {{count, extent}});
    const Expr at = g.expand(positions(g, extent, 1, 2, t), {count, extent}), length = dim_value(g, extent, t);
    row_start_ = positions(g, count, 0, 2, t) * length;
    const Expr beats = op.fn == CumulativeKind::Max ? g.gt(rows, before) : g.lt(rows, before);
    const Expr sets = g.bit_or(beats, g.eq(at, 0));
    number_ = g.eq(y, y);
    ties_ = g.eq(rows, y);
    later_ = g.bit_and(ties_, g.logical_not(sets));
    start_ = flat(g.cummax(g.where(sets, at, 0), 1));
    latest_ = flat(g.cummax(g.where(ties_, at, 0), 1));
    end_ = flat(g.min(g.cummin(g.where(sets, at, length), 1, true, true), length) - 1);
    const Expr seen = g.cumsum(g.cast(ties_, t), 1);
    count_ = g.cast(seen - at_flat(seen, start_) + 1, accumulator_dtype(x.dtype()));
  }
  /// Cotangent of y -> cotangent of x.
  Expr pull(Expr ct) {
    Expr rows = to_rows(ct);
    if (op_.exclusive) rows = next_one(g_, rows, 1);
    const Expr shares = g_.where(number_, g_.cast(rows, count_.dtype()) / count_, 0);
    const Expr nothing = g_.expand(g_.scalar(0, shares.dtype()), {rows.dim(0) * rows.dim(1)});
    const Expr own = g_.reshape(g_.scatter_add(nothing, latest_, shares), rows.shape().dims());
    const Expr after = g_.cumsum(ties_after(own), 1, true, true);
    return from_rows(g_.where(ties_, own + g_.cast(after - at_flat(after, end_), own.dtype()), 0), ct.dtype());
  }
  /// Tangent of x -> tangent of y.
  Expr push(Expr tangent) {
    const Expr rows = g_.cast(to_rows(tangent), count_.dtype());
    const Expr until = g_.cumsum(ties_after(rows), 1);
    const Expr total = at_flat(rows, start_) + g_.cast(until - at_flat(until, start_), rows.dtype());
    const Expr shares = g_.where(number_, total / count_, 0);
    return from_rows(op_.exclusive ? one_before(g_, shares, 1) : shares, tangent.dtype());
  }

 private:
  // The values at the later ties of a segment, 0 elsewhere.
  Expr ties_after(Expr rows) { return g_.cast(g_.where(later_, rows, 0), DType::F64); }
  Expr flat(Expr position) { return position + row_start_; }
  Expr at_flat(Expr rows, Expr index) { return g_.gather(g_.reshape(rows, {rows.dim(0) * rows.dim(1)}), index); }
  Expr to_rows(Expr e) {
    const Expr moved = g_.transpose(op_.reverse ? g_.reverse(e, {op_.axis}) : e, perm_);
    const Dim extent = moved.dim(moved.rank() - 1);
    Dim count(1);
    for (int i = 0; i + 1 < moved.rank(); ++i) count = count * moved.dim(i);
    return g_.reshape(moved, {count, extent});
  }
  Expr from_rows(Expr rows, DType t) {
    Dims dims;
    for (std::int64_t axis : perm_) dims.push_back(like_.dim(static_cast<int>(axis)));
    const Expr e = g_.cast(g_.transpose(g_.reshape(rows, std::move(dims)), inverse_perm(perm_)), t);
    return op_.reverse ? g_.reverse(e, {op_.axis}) : e;
  }

  Graph& g_;
  const ops::Cumulative& op_;
  Shape like_;
  std::vector<std::int64_t> perm_;
  Expr row_start_, number_, ties_, later_, start_, latest_, end_, count_;
};

struct CumulativeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::Cumulative>();
    if (auto error = c.check_axis(op.axis, x)) return *error;
    const bool ordered = op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min;
    if (is_storage_only(x.dtype()))
      return c.dtype_error("x has a storage dtype, which cannot be computed with: ", x, "; cast it first");
    if (ordered && is_complex(x.dtype())) return c.dtype_error("complex values have no order: ", x);
    if (!ordered && x.dtype() == DType::Bool)
      return c.dtype_error("x is Bool ", x, "; cast it to an integer or float dtype first");
    return make_shapes(x);
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Cumulative>();
    const AxisSplit s = split_at(a.in(0).dims(), op.axis);
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      std::vector<A> v = load_all<A>(a.in(0));
      A identity{};
      if (op.fn == CumulativeKind::Prod) identity = A(1);
      if (op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min)
        identity = extreme_identity<A>(a.in(0).dtype(), op.fn == CumulativeKind::Max);
      for (std::int64_t o = 0; o < s.outer; ++o)
        for (std::int64_t k = 0; k < s.inner; ++k) {
          A running = identity;
          for (std::int64_t step = 0; step < s.extent; ++step) {
            const std::int64_t i = op.reverse ? s.extent - 1 - step : step;
            A& at = v[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)];
            const A before = running;
            running = combine(op.fn, running, at);
            at = op.exclusive ? before : running;
          }
        }
      store_all(a.out(), v);
    });
  }
  static void vjp(VjpContext& c) {
    if (!c.wants(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Cumulative>();
    const Expr ct = c.cotangent();
    if (ct.dim(static_cast<int>(op.axis)).is_static(0)) return;
    switch (op.fn) {
      case CumulativeKind::Sum: return c.accumulate(0, g.cumsum(ct, op.axis, op.exclusive, !op.reverse));
      case CumulativeKind::Prod: {
        // dx_k = (product before k) * s_k with s_k = g_k + x_{k+1} s_{k+1}. The exclusive scan reads g one position
        // later.
        auto turned = [&](Expr e) { return op.reverse ? g.reverse(e, {op.axis}) : e; };
        const Expr x = turned(c.input(0)), b = turned(ct);
        const Expr before = g.cumulative(CumulativeKind::Prod, x, op.axis, true);
        const Expr s =
            suffix_recurrence(g, op.exclusive ? next_one(g, b, op.axis) : b, next_one(g, x, op.axis), op.axis);
        return c.accumulate(0, turned(before * s));
      }
      case CumulativeKind::Max:
      case CumulativeKind::Min: {
        return c.accumulate(0, RunningExtremum(g, op, c.input(0)).pull(ct));
      }
    }
  }
  static void jvp(JvpContext& c) {
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const auto& op = c.op<ops::Cumulative>();
    const Expr t = c.tangent(0);
    if (t.dim(static_cast<int>(op.axis)).is_static(0)) return;
    switch (op.fn) {
      case CumulativeKind::Sum: return c.set_tangent(g.add(c.box(), {t}));
      case CumulativeKind::Prod: {
        // t_i' = x_i t_{i-1}' + (product before i) t_i: a suffix recurrence in reversed order.
        auto suffix_order = [&](Expr e) { return op.reverse ? e : g.reverse(e, {op.axis}); };
        const Expr before = g.cumulative(CumulativeKind::Prod, c.input(0), op.axis, true, op.reverse);
        const Expr s = suffix_recurrence(g, suffix_order(before * t), suffix_order(c.input(0)), op.axis);
        return c.set_tangent(suffix_order(op.exclusive ? next_one(g, s, op.axis) : s));
      }
      case CumulativeKind::Max:
      case CumulativeKind::Min: {
        return c.set_tangent(RunningExtremum(g, op, c.input(0)).push(t));
      }
    }
  }
  static void batch(BatchContext& c) {
    ops::Cumulative op = c.op<ops::Cumulative>();
    ++op.axis;
    c.emit_lifted(op);
  }
  static constexpr AttrField attrs[] = {
      field<&ops::Cumulative::fn>("fn", AttrPlace::Suffix), field<&ops::Cumulative::axis>("axis"),
      field<&ops::Cumulative::exclusive>("exclusive"), field<&ops::Cumulative::reverse>("reverse")};

 private:
  template <class A>
  static A combine(CumulativeKind fn, A running, A v) {
    switch (fn) {
      case CumulativeKind::Sum: return wrapping_add(running, v);
      case CumulativeKind::Prod: return wrapping_mul(running, v);
      case CumulativeKind::Max:
      case CumulativeKind::Min:
        if constexpr (std::is_arithmetic_v<A>) return beats(v, running, fn == CumulativeKind::Max) ? v : running;
        break;
    }
    return running;
  }
};

}  // namespace

constinit const OpDef ops::Cumulative::def{.kind = kind,
                                           .name = "cumulative",
                                           .what = "A running sum, product, max or min along one axis.",
                                           .inputs = inputs("x"),
                                           .attrs = CumulativeRules::attrs,
                                           .level = Level::Mir,
                                           .leaf = LeafKind::None,
                                           .elementwise = ElementwiseKind::No,
                                           .view = ViewKind::None,
                                           .precision = PrecisionCategory::Reduction,
                                           .infer = CumulativeRules::infer,
                                           .decompose = none("a primitive"),
                                           .vjp = CumulativeRules::vjp,
                                           .jvp = CumulativeRules::jvp,
                                           .batch = CumulativeRules::batch,
                                           .reference = CumulativeRules::reference,
                                           .cost = flops_per_element<1>};

}  // namespace rlx
