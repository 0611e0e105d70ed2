// SoftmaxCrossEntropy: the loss of logits against a class or a distribution for each row. Composite.
#include <cmath>

#include "rlx/ir/ops/loss.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

bool has_dense_labels(const BuildContext& c) { return is_float(c.input("labels").dtype()); }

// True at the class of the row: [.., C], from labels [..].
Expr is_own_class(Graph& g, Expr labels, const Expr& logits) {
  const Dim& classes = logits.dim(-1);
  const DType t = count_dtype(g, {{classes}}, labels.dtype());
  const Expr label = g.unsqueeze(g.cast(labels, t), labels.rank());
  return g.eq(positions(g, classes, logits.rank() - 1, logits.rank(), t), label);
}

// True for rows whose label is a class.
Expr has_class(Graph& g, Expr labels, const Expr& logits) {
  const Dim& classes = logits.dim(-1);
  const DType t = count_dtype(g, {{classes}}, labels.dtype());
  const Expr label = g.cast(labels, t);
  return g.bit_and(g.ge(label, 0), g.lt(label, dim_value(g, classes, t)));
}

struct SoftmaxCrossEntropyRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape &x = c.input(0), &labels = c.input(1);
    if (!is_float(x.dtype()) || is_storage_only(x.dtype())) return c.dtype_error("logits must be float, got ", x);
    if (x.rank() < 1) return c.error("logits must be [.., C], got ", x);
    const Dims rows(x.dims().begin(), x.dims().end() - 1);
    if (is_index(labels.dtype())) {
      if (labels.dims() != rows)
        return c.error("labels of dtype ", dtype_name(labels.dtype()), " must be ", dims_text(rows),
                       ", one class for each row of logits ", x, ", got ", labels);
    } else if (labels.dtype() != x.dtype()) {
      return c.dtype_error("labels must be i32 or i64 (classes) or ", dtype_name(x.dtype()),
                           " like the logits (distributions), got ", labels);
    } else if (labels.dims() != x.dims()) {
      return c.error("labels of dtype ", dtype_name(labels.dtype()), " must have the dimensions of logits ", x,
                     ", got ", labels);
    }
    return make_shapes(Shape(rows, x.dtype()), Shape(rows, accumulator_dtype(x.dtype())));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const Expr x = widen(c.input(0));
    const std::int64_t axis = x.rank() - 1;
    const Expr highest = g.reduce_max(x, {axis}, true);
    const Expr top = g.stop_gradient(g.where(g.eq(highest, -HUGE_VAL), 0.0, highest));
    const Expr shifted = x - top;
    const Expr total = g.sum(g.exp(shifted), {axis}, true);
    const Expr log_total = g.log(g.where(g.eq(total, 0.0), 1.0, total));
    Expr loss;
    if (has_dense_labels(c)) {
      const Expr t = widen(c.input(1));
      loss = g.sum(g.where(g.eq(t, 0.0), 0.0, t * (log_total - shifted)), {axis});
    } else {
      const Expr labels = c.input(1), own = is_own_class(g, labels, x);
      const Expr chosen = g.sum(g.where(own, shifted, 0.0), {axis});
      loss = g.where(has_class(g, labels, x), g.squeeze(log_total, axis) - chosen, std::nan(""));
    }
    c.set_result(0, round_to(loss, c.result_shape(0).dtype()));
    c.set_result(1, g.squeeze(top + log_total, axis));
  }
  // softmax (d loss + d lse) - labels d loss. The softmax uses the existing lse result: one pass over the logits.
  static void vjp(VjpContext& c) {
    Graph& g = c.graph();
    const Expr x = widen(c.input(0)), lse = c.output(1);
    const std::int64_t axis = x.rank() - 1;
    const bool dense = has_dense_labels(c);
    const Expr zero = g.scalar(0, x.dtype());
    Expr d = zero;
    if (c.has_cotangent(0)) {
      d = g.cast(c.cotangent(0), x.dtype());
      if (!dense) d = g.where(has_class(g, c.input(1), x), d, zero);
      d = g.unsqueeze(d, axis);
    }
    Expr weight = d;  // the factor of the softmax
    const Expr t = dense ? widen(c.input(1)) : Expr();
    if (dense && c.has_cotangent(0)) weight = d * g.sum(t, {axis}, true);
    if (c.has_cotangent(1)) weight = weight + g.unsqueeze(c.cotangent(1), axis);
    const Expr softmax = g.exp(x - g.unsqueeze(lse, axis));
    Expr dx = softmax * weight;
    if (c.has_cotangent(0)) dx = dx - (dense ? t * d : g.where(is_own_class(g, c.input(1), x), d, zero));
    c.accumulate(0, g.cast(dx, c.input(0).dtype()));
    if (dense && c.has_cotangent(0)) c.accumulate(1, g.cast((g.unsqueeze(lse, axis) - x) * d, c.input(1).dtype()));
  }
  static void jvp(JvpContext& c) {
    Graph& g = c.graph();
    const Expr x = widen(c.input(0)), lse = c.output(1);
    const std::int64_t axis = x.rank() - 1;
    const bool dense = has_dense_labels(c);
    const Expr t = dense ? widen(c.input(1)) : Expr();
    const auto loss_moves = [&](Expr by) { c.add_tangent(0, g.cast(by, c.result_shape(0).dtype())); };
    if (c.has_tangent(0)) {
      const Expr dx = g.cast(c.tangent(0), x.dtype());
      const Expr mean = g.sum(g.exp(x - g.unsqueeze(lse, axis)) * dx, {axis});
      c.set_tangent(1, mean);
      if (dense)
        loss_moves(mean * g.sum(t, {axis}) - g.sum(t * dx, {axis}));
      else
        loss_moves(g.where(has_class(g, c.input(1), x),
                           mean - g.sum(g.where(is_own_class(g, c.input(1), x), dx, 0.0), {axis}), 0.0));
    }
    if (dense && c.has_tangent(1))
      loss_moves(g.sum(g.cast(c.tangent(1), x.dtype()) * (g.unsqueeze(lse, axis) - x), {axis}));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static void reference(const RefArgs& a) {
    const std::int64_t rows = a.out(0).num_elements();
    if (rows == 0) return;
    const std::int64_t classes = a.in(0).dim(-1);
    const bool dense = is_float(a.in(1).dtype());
    const std::vector<double> x = load_all<double>(a.in(0));
    const std::vector<double> labels = dense ? load_all<double>(a.in(1)) : std::vector<double>();
    std::vector<double> losses(static_cast<std::size_t>(rows)), sums(losses.size());
    for (std::int64_t r = 0; r < rows; ++r) {
      const double* row = x.data() + r * classes;
      double top = -HUGE_VAL, sum = 0, loss = 0;
      for (std::int64_t i = 0; i < classes; ++i)
        if (beats(row[i], top, true)) top = row[i];
      if (top == -HUGE_VAL) top = 0;
      for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(row[i] - top);
      const double log_sum = sum == 0 ? 0.0 : std::log(sum);
      if (dense) {
        for (std::int64_t i = 0; i < classes; ++i)
          if (const double t = labels[static_cast<std::size_t>(r * classes + i)]; t != 0)
            loss += t * (log_sum - (row[i] - top));
      } else {
        const std::int64_t label = a.in(1).at_i64(r);
        loss = label >= 0 && label < classes ? log_sum - (row[label] - top) : std::nan("");
      }
      losses[static_cast<std::size_t>(r)] = loss;
      sums[static_cast<std::size_t>(r)] = top + log_sum;
    }
    store_all(a.out(0), losses);
    store_all(a.out(1), sums);
  }
  static Cost cost(const CostContext& c) { return c.with_flops(5 * static_cast<double>(c.inputs[0].num_elements())); }
};

}  // namespace

constinit const OpDef ops::SoftmaxCrossEntropy::def{
    .kind = kind,
    .name = "softmax_cross_entropy",
    .what =
        "logsumexp(logits) - logit[label] of each row, or its mean for labels that are distributions over the classes.",
    .inputs = inputs("logits", "labels"),
    .attrs = {},
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = SoftmaxCrossEntropyRules::infer,
    .decompose = SoftmaxCrossEntropyRules::decompose,
    .vjp = SoftmaxCrossEntropyRules::vjp,
    .jvp = SoftmaxCrossEntropyRules::jvp,
    .batch = SoftmaxCrossEntropyRules::batch,
    .reference = SoftmaxCrossEntropyRules::reference,
    .cost = SoftmaxCrossEntropyRules::cost};

}  // namespace rlx
