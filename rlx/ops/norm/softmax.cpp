// Softmax and LogSoftmax along one axis. A row of -inf gives zeros (log: -inf) and no NaN.
#include <cmath>

#include "rlx/ir/ops/reduce.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

Result<Shapes> same_float_shape(const InferContext& c, std::int64_t axis) {
  const Shape& x = c.input(0);
  if (!is_float(x.dtype())) return c.dtype_error("x must be float, not ", x, "; cast it first");
  if (auto error = c.check_axis(axis, x)) return *error;
  return make_shapes(x);
}

// x - max(x) in at least f32. The maximum of a row of -inf is replaced by 0, so that the row stays -inf.
Expr minus_row_max(Graph& g, Expr x, std::int64_t axis) {
  x = g.cast(x, accumulator_dtype(x.dtype()));
  const Expr top = g.reduce_max(x, {axis}, true);
  return x - g.where(g.eq(top, -HUGE_VAL), 0.0, top);
}

// The sum of exp(shifted) along the axis, 1 for a row of zeros.
Expr row_sum(Graph& g, Expr exponentials, std::int64_t axis) {
  const Expr total = g.sum(exponentials, {axis}, true);
  return g.where(g.eq(total, 0.0), 1.0, total);
}

struct SoftmaxRules {
  static Result<Shapes> infer(const InferContext& c) { return same_float_shape(c, c.op<ops::Softmax>().axis); }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const std::int64_t axis = c.op<ops::Softmax>().axis;
    const Expr e = g.exp(minus_row_max(g, c.input(0), axis));
    c.set_result(g.cast(e / row_sum(g, e, axis), c.input(0).dtype()));
  }
  static void reference(const RefArgs& a) {
    const AxisSplit s = split_at(a.in(0).dims(), a.op<ops::Softmax>().axis);
    std::vector<double> v = load_all<double>(a.in(0));
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t k = 0; k < s.inner; ++k) {
        double* row = v.data() + o * s.extent * s.inner + k;
        double top = -HUGE_VAL, sum = 0;
        for (std::int64_t i = 0; i < s.extent; ++i)
          if (beats(row[i * s.inner], top, true)) top = row[i * s.inner];
        for (std::int64_t i = 0; i < s.extent; ++i) {
          double& e = row[i * s.inner];
          e = top == -HUGE_VAL ? 0.0 : std::exp(e - top);
          sum += e;
        }
        if (sum == 0) continue;
        for (std::int64_t i = 0; i < s.extent; ++i) row[i * s.inner] /= sum;
      }
    store_all(a.out(), v);
  }
  // y * (v - sum(v * y)). The derivative is symmetric, so this serves both modes.
  static Expr apply_derivative(Graph& g, Expr y, Expr v, std::int64_t axis) {
    const DType t = accumulator_dtype(y.dtype());
    y = g.cast(y, t);
    const Expr vy = g.cast(v, t) * y;
    return vy - y * g.sum(vy, {axis}, true);
  }
  static void vjp(VjpContext& c) {
    c.accumulate(0, apply_derivative(c.graph(), c.output(), c.cotangent(), c.op<ops::Softmax>().axis));
  }
  static void jvp(JvpContext& c) {
    if (c.has_tangent(0))
      c.set_tangent(apply_derivative(c.graph(), c.output(), c.tangent(0), c.op<ops::Softmax>().axis));
  }
  static void batch(BatchContext& c) { c.emit_lifted(ops::Softmax{c.op<ops::Softmax>().axis + 1}); }
  static constexpr AttrField attrs[] = {field<&ops::Softmax::axis>("axis")};
};

struct LogSoftmaxRules {
  static Result<Shapes> infer(const InferContext& c) { return same_float_shape(c, c.op<ops::LogSoftmax>().axis); }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const std::int64_t axis = c.op<ops::LogSoftmax>().axis;
    const Expr shifted = minus_row_max(g, c.input(0), axis);
    c.set_result(g.cast(shifted - g.log(row_sum(g, g.exp(shifted), axis)), c.input(0).dtype()));
  }
  static void vjp(VjpContext& c) {  // g - softmax * sum(g)
    Graph& g = c.graph();
    const DType t = accumulator_dtype(c.input(0).dtype());
    const Expr ct = g.cast(c.cotangent(), t);
    c.accumulate(0, ct - g.exp(g.cast(c.output(), t)) * g.sum(ct, {c.op<ops::LogSoftmax>().axis}, true));
  }
  static void jvp(JvpContext& c) {  // t - sum(softmax * t)
    if (!c.has_tangent(0)) return;
    Graph& g = c.graph();
    const DType dtype = accumulator_dtype(c.input(0).dtype());
    const Expr t = g.cast(c.tangent(0), dtype);
    c.set_tangent(t - g.sum(g.exp(g.cast(c.output(), dtype)) * t, {c.op<ops::LogSoftmax>().axis}, true));
  }
  static void batch(BatchContext& c) { c.emit_lifted(ops::LogSoftmax{c.op<ops::LogSoftmax>().axis + 1}); }
  static constexpr AttrField attrs[] = {field<&ops::LogSoftmax::axis>("axis")};
};

}  // namespace

constinit const OpDef ops::Softmax::def{.kind = kind,
                                        .name = "softmax",
                                        .what = "exp(x - max(x)) / sum along one axis; a row of -inf gives zeros.",
                                        .inputs = inputs("x"),
                                        .attrs = SoftmaxRules::attrs,
                                        .level = Level::Mir,
                                        .leaf = LeafKind::None,
                                        .elementwise = ElementwiseKind::No,
                                        .view = ViewKind::None,
                                        .precision = PrecisionCategory::Reduction,
                                        .infer = SoftmaxRules::infer,
                                        .decompose = SoftmaxRules::decompose,
                                        .vjp = SoftmaxRules::vjp,
                                        .jvp = SoftmaxRules::jvp,
                                        .batch = SoftmaxRules::batch,
                                        .reference = SoftmaxRules::reference,
                                        .cost = flops_per_element<5>};

constinit const OpDef ops::LogSoftmax::def{.kind = kind,
                                           .name = "log_softmax",
                                           .what = "x - logsumexp(x) along one axis.",
                                           .inputs = inputs("x"),
                                           .attrs = LogSoftmaxRules::attrs,
                                           .level = Level::Mir,
                                           .leaf = LeafKind::None,
                                           .elementwise = ElementwiseKind::No,
                                           .view = ViewKind::None,
                                           .precision = PrecisionCategory::Reduction,
                                           .infer = LogSoftmaxRules::infer,
                                           .decompose = LogSoftmaxRules::decompose,
                                           .vjp = LogSoftmaxRules::vjp,
                                           .jvp = LogSoftmaxRules::jvp,
                                           .batch = LogSoftmaxRules::batch,
                                           .reference = by_decomposition,
                                           .cost = flops_per_element<5>};

}  // namespace rlx
