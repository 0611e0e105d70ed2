// CtcLoss: connectionist temporal classification by the forward algorithm. Decomposes into a scan over the time steps.
#include <cmath>

#include "rlx/ir/math/special_functions.h"
#include "rlx/ir/ops/loss.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// What logsumexp subtracts from the exponents: their maximum, or 0 where it is infinite, because inf - inf is NaN.
Expr finite_part(Graph& g, const Expr& top) { return g.where(g.eq(g.abs(top), HUGE_VAL), 0.0, top); }

// log(exp(a) + exp(b) + ..). It is infinite where the maximum is infinite. Its derivatives are 0 where all terms are
// -infinity.
Expr log_of_sum(Graph& g, const std::vector<Expr>& terms) {
  Expr top = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) top = g.max(top, terms[i]);
  top = g.stop_gradient(top);
  const Expr nothing = g.eq(top, -HUGE_VAL), from = finite_part(g, top);
  Expr total;
  for (const Expr& t : terms) {
    const Expr e = g.exp(t - from);
    total = total.valid() ? total + e : e;
  }
  return g.where(nothing, -HUGE_VAL, g.log(g.where(nothing, 1.0, total)) + from);
}

struct CtcLossRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::CtcLoss>();
    const Shape &x = c.input("log_probs"), &targets = c.input("targets");
    if (!is_float(x.dtype()) || is_storage_only(x.dtype())) return c.dtype_error("log_probs must be float, got ", x);
    for (const char* name : {"targets", "input_lengths", "target_lengths"})
      if (!is_index(c.input(name).dtype())) return c.dtype_error(name, " must be i32 or i64, got ", c.input(name));
    if (x.rank() != 3) return c.error("log_probs must be [T, N, C], got ", x);
    if (targets.rank() != 2 || !(targets.dim(0) == x.dim(1)))
      return c.error("targets must be [N, S] for log_probs [T, N, C] ", x, ", got ", targets);
    for (const char* name : {"input_lengths", "target_lengths"})
      if (c.input(name).rank() != 1 || !(c.input(name).dim(0) == x.dim(1)))
        return c.error(name, " must be [N], N = ", x.dim(1), ", got ", c.input(name));
    if (op.blank < 0 || (x.dim(2).is_static() && op.blank >= x.dim(2).value()))
      return c.attr_error("blank ", op.blank, " is not a class of log_probs ", x);
    return make_shapes(Shape({x.dim(1)}, x.dtype()));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::CtcLoss>();
    const Expr x = widen(c.input("log_probs"));
    const Dim &steps = x.dim(0), &n = x.dim(1), &classes = x.dim(2), &longest = c.input("targets").dim(1);
    if (n.is_static(0)) return c.set_result(c.zeros(c.result_shape()));  // for any number of steps
    const Dim states = Dim(2) * longest + Dim(1);
    const DType count = count_dtype(g, {{steps}, {classes}, {states}}, c.input("targets").dtype());
    const Expr targets = g.cast(c.input("targets"), count);
    const auto length = [&](const char* name) { return g.cast(c.input(name), count); };
    const Expr inputs = length("input_lengths"), spelled = length("target_lengths");
    const auto number = [&](std::int64_t v) { return g.scalar(v, count); };

    // Marks the valid elements of the batch: lengths in range, and targets that are classes other than the blank.
    const Expr most_steps = dim_value(g, steps, count), most_targets = dim_value(g, longest, count);
    Expr fine = g.bit_and(g.bit_and(g.ge(inputs, number(0)), g.le(inputs, most_steps)),
                          g.bit_and(g.ge(spelled, number(0)), g.le(spelled, most_targets)));
    const Expr is_class = g.bit_and(g.bit_and(g.ge(targets, number(0)), g.lt(targets, dim_value(g, classes, count))),
                                    g.ne(targets, number(op.blank)));
    const Expr unused = g.ge(positions(g, longest, 1, 2, count), g.reshape(spelled, {n, Dim(1)}));
    fine = g.bit_and(fine, g.reduce_min(g.bit_or(is_class, unused), {1}));

    // The labels of a path with all blanks: blank, target, blank, target, .., blank.
    const Expr known = g.where(is_class, targets, number(op.blank));
    const Expr blanks = g.expand(number(op.blank), {n, longest});
    const Expr spread = g.reshape(g.concat({g.unsqueeze(blanks, 2), g.unsqueeze(known, 2)}, 2), {n, Dim(2) * longest});
    const Expr labels = g.concat({spread, g.expand(number(op.blank), {n, Dim(1)})}, 1);
    const Expr emitted = g.take_along_axis(x, g.reshape(labels, {Dim(1), n, states}), 2);

    const Expr place = positions(g, states, 1, 2, count);                             // [1, states]
    const auto later = [&](Graph& body, Expr a, const Expr& filled, const Dim& by) {  // shifted `by` states up
      return body.narrow(body.concat({body.expand(filled, {n, by}), a}, 1), 1, Dim(0), states);
    };
    // A target may follow the previous target without a blank when they differ.
    const Expr before = later(g, labels, number(op.blank), Dim(2));
    const Expr skips = g.bit_and(g.ne(labels, number(op.blank)), g.ne(labels, before));
    const Expr first = g.where(g.eq(place, number(0)), g.scalar(0, x.dtype()), g.scalar(-HUGE_VAL, x.dtype()));
    const Expr start = g.expand(first, {n, states});
    const LoopResult walked =
        g.scan(start, {emitted, positions(g, steps, 0, 1, count)},
               [&](Graph& body, const ExprList& carry, const ExprList& at) {
                 const Expr a = carry[0], none = body.scalar(-HUGE_VAL, a.dtype());
                 const Expr jumped = body.where(skips, later(body, a, none, Dim(2)), none);
                 const Expr next = log_of_sum(body, {a, later(body, a, none, Dim(1)), jumped}) + at[0];
                 return LoopStep(body.where(body.lt(at[1], body.reshape(inputs, {n, Dim(1)})), next, a));
               });
    // The path ends in the last target or in the blank after it.
    const Expr last = g.reshape(spelled, {n, Dim(1)}) * number(2);
    const Expr ends = g.bit_or(g.eq(place, last), g.eq(place, last - number(1)));
    const Expr ended = g.where(ends, walked.carries[0], g.scalar(-HUGE_VAL, x.dtype()));
    const Expr top = g.stop_gradient(g.reduce_max(ended, {1}, true));
    const Expr nothing = g.eq(top, -HUGE_VAL), from = finite_part(g, top);
    const Expr total = g.sum(g.exp(ended - from), {1}, true);
    const Expr log_prob = g.where(nothing, -HUGE_VAL, g.log(g.where(nothing, 1.0, total)) + from);
    c.set_result(round_to(g.where(fine, -g.squeeze(log_prob, 1), std::nan("")), c.result_shape().dtype()));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::CtcLoss>();
    const std::int64_t steps = a.in(0).dim(0), n = a.in(0).dim(1), classes = a.in(0).dim(2), longest = a.in(1).dim(1);
    if (n == 0) return;
    const std::vector<double> x = load_all<double>(a.in(0));
    std::vector<double> losses(static_cast<std::size_t>(n));
    for (std::int64_t e = 0; e < n; ++e) {
      const std::int64_t length = a.in(2).at_i64(e), spelled = a.in(3).at_i64(e);
      bool fine = length >= 0 && length <= steps && spelled >= 0 && spelled <= longest;
      std::vector<std::int64_t> labels{op.blank};
      for (std::int64_t s = 0; fine && s < spelled; ++s) {
        const std::int64_t label = a.in(1).at_i64(e * longest + s);
        fine = label >= 0 && label < classes && label != op.blank;
        labels.push_back(label);
        labels.push_back(op.blank);
      }
      double& loss = losses[static_cast<std::size_t>(e)];
      if (!fine) {
        loss = std::nan("");
        continue;
      }
      std::vector<double> alpha(labels.size(), -HUGE_VAL), before;
      alpha[0] = 0;
      for (std::int64_t t = 0; t < length; ++t) {
        before = alpha;
        for (std::size_t s = 0; s < labels.size(); ++s) {
          double v = before[s];
          if (s > 0) v = logaddexp(v, before[s - 1]);
          if (s > 1 && labels[s] != op.blank && labels[s] != labels[s - 2]) v = logaddexp(v, before[s - 2]);
          alpha[s] = v + x[static_cast<std::size_t>((t * n + e) * classes + labels[s])];
        }
      }
      loss = -(labels.size() > 1 ? logaddexp(alpha.back(), alpha[labels.size() - 2]) : alpha.back());
    }
    store_all(a.out(), losses);
  }
  static Cost cost(const CostContext& c) {
    const double states = 2 * static_cast<double>(c.inputs[1].dim(1).value()) + 1;
    return c.with_flops(8 * states * static_cast<double>(c.inputs[0].dim(0).value()) * c.elements());
  }
  static constexpr AttrField attrs[] = {field<&ops::CtcLoss::blank>("blank")};
};

}  // namespace

constinit const OpDef ops::CtcLoss::def{
    .kind = kind,
    .name = "ctc_loss",
    .what = "The negative log-likelihood of targets over all their alignments to the log-probabilities of steps.",
    .inputs = inputs("log_probs", "targets", "input_lengths", "target_lengths"),
    .attrs = CtcLossRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Reduction,
    .infer = CtcLossRules::infer,
    .decompose = CtcLossRules::decompose,
    .vjp = by_decomposition,
    .jvp = by_decomposition,
    .batch = by_decomposition,
    .reference = CtcLossRules::reference,
    .cost = CtcLossRules::cost};

}  // namespace rlx
