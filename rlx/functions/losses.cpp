// Losses as compositions of ops. Cross entropy and CTC are separate ops.
#include "rlx/functions/losses.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "rlx/functions/term.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/loss.h"

namespace rlx::nn {
namespace {

using functions::abs;
using functions::chosen;
using functions::compared;
using functions::exp;
using functions::larger;
using functions::log;
using functions::log1p;
using functions::log_sigmoid;
using functions::mean;
using functions::sigmoid;
using functions::smaller;
using functions::sqrt;
using functions::square;
using functions::sum;
using functions::Term;

Expr reduced(const Term& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::None: return losses;
    case Reduction::Mean: return mean(losses);
    case Reduction::Sum: return sum(losses);
  }
  return losses;
}
Expr reduced(const Term& losses, const std::optional<Operand>& weight, Reduction reduction) {
  return reduced(weight ? losses * losses.at(*weight) : losses, reduction);
}

[[noreturn]] void refuse_loss(const Term& at, const char* what, const std::string& why, std::string hint = {}) {
  building::fail(at.loc(), ErrorCode::InvalidArgument, concat_text(what, ": ", why), std::move(hint));
}
void check_positive(const Term& at, const char* what, const char* name, double v, bool or_zero = false) {
  if (!(v > 0 || (or_zero && v == 0)) || !std::isfinite(v))
    refuse_loss(at, what, concat_text(name, " must be a finite number ", or_zero ? ">= 0" : "> 0", ", got ", v));
}
void check_finite(const Term& at, const char* what, const char* name, double v) {
  if (!std::isfinite(v)) refuse_loss(at, what, concat_text(name, " must be finite, got ", v));
}

// The checked operands of classification losses: logits or log-probabilities with the classes last, labels, weights.
struct Classes {
  const CrossEntropyOptions& options;
  Term x, labels;
  bool dense;
  std::optional<Term> weight, counts;  // weight: [C]; counts: Bool [..], the labels that are not ignored

  Classes(const Operand& logits, const Operand& given, const CrossEntropyOptions& o, const char* what)
      : options(o),
        x(logits, what),
        labels(x.at(given)),
        dense(building::own(x.graph(), given).valid() && is_float(labels.dtype())) {
    Graph& g = x.graph();
    const int rank = x.rank();
    const std::int64_t axis = building::normalize_axis_at(x.loc(), o.axis, rank, what);
    if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
      refuse_loss(x, what, concat_text("label_smoothing must be in [0, 1], got ", o.label_smoothing));
    if (dense && o.ignore_index)
      refuse_loss(x, what, "ignore_index needs integer labels", "leave it out if labels are distributions");
    if (axis != rank - 1) {
      std::vector<std::int64_t> perm;
      for (std::int64_t i = 0; i < rank; ++i)
        if (i != axis) perm.push_back(i);
      perm.push_back(axis);
      x = x.at(g.transpose(x, perm));
      if (dense && labels.rank() == rank) labels = labels.at(g.transpose(labels, perm));
    }
    if (o.weight) {
      weight = x.at(*o.weight).cast(x.dtype());
      if (weight->rank() != 1 || !(weight->dim(0) == x.dim(-1)))
        building::fail(x.loc(), ErrorCode::ShapeMismatch,
                       concat_text(what, ": weight must be [C], C = ", x.dim(-1), ", got ", weight->shape()));
    }
    if (o.ignore_index) {
      const Term index = labels.at(g.constant(Tensor::scalar_i64(labels.dtype(), *o.ignore_index), x.loc()));
      counts = compared(CompareKind::Ne, labels, index);
      labels = chosen(*counts, labels, labels.at(g.constant(Tensor::scalar_i64(labels.dtype(), 0), x.loc())));
    }
  }
  // The losses, with 0 for ignored rows.
  Term counted(const Term& losses) const { return counts ? chosen(*counts, losses, 0.0) : losses; }
  // The weight of each row's label, 0 for ignored rows.
  Term row_weights() const {
    Graph& g = x.graph();
    if (weight) return counted(x.at(g.gather(*weight, labels, 0)));
    if (counts) return counts->cast(x.dtype());
    return x.at(g.expand(x.number(1), labels.shape().dims()));
  }
  Expr reduce(const Term& losses) const {
    if (options.reduction != Reduction::Mean || dense || (!weight && !counts))
      return reduced(losses, options.reduction);
    return sum(losses) / sum(row_weights());
  }
};

// In F32 for F16 and BF16, whose squares and exponentials overflow and underflow early.
bool is_half(const Term& v) { return is_float(v.dtype()) && dtype_bits(v.dtype()) < 32; }
Term wide(const Term& v) { return v.cast(accumulator_dtype(v.dtype())); }

}  // namespace

Expr cross_entropy(Operand logits, Operand labels, const CrossEntropyOptions& options) {
  const Classes c(logits, labels, options, "cross_entropy");
  const Term& x = c.x;
  Graph& g = x.graph();
  const double smooth = options.label_smoothing;
  if (c.dense) {
    Term t = c.labels;
    if (smooth != 0) {
      const Term classes = x.at(dim_value(g, x.dim(-1), DType::I32)).cast(x.dtype());
      t = t * (1 - smooth) + smooth / classes;
    }
    if (c.weight) t = t * *c.weight;
    return c.reduce(x.at(g.softmax_cross_entropy(x, t)));
  }
  const Expr op = g.softmax_cross_entropy(x, c.labels);
  Term losses = c.counted(x.at(op));
  if (c.weight) losses = losses * c.row_weights();
  if (smooth == 0) return c.reduce(losses);
  // The term of label smoothing: the mean over all classes of -log_softmax times the weight of the class.
  const std::int64_t axis = x.rank() - 1;
  const Term lse = x.at(g.unsqueeze(x.at(op.result(1)), axis)).cast(x.dtype());
  Term spread = lse - x;
  if (c.weight) spread = spread * *c.weight;
  return c.reduce(losses * (1 - smooth) + c.counted(mean(spread, {axis})) * smooth);
}

Expr nll_loss(Operand log_probs, Operand labels, const CrossEntropyOptions& options) {
  const Classes c(log_probs, labels, options, "nll_loss");
  const Term& x = c.x;
  Graph& g = x.graph();
  if (c.dense || !is_int(c.labels.dtype()))
    building::fail(x.loc(), ErrorCode::DTypeMismatch,
                   concat_text("nll_loss: labels must be integers, got ", c.labels.shape()),
                   "use kl_div for distributions");
  if (options.label_smoothing != 0)
    refuse_loss(x, "nll_loss", "label_smoothing is not supported", "use cross_entropy on the logits");
  if (c.labels.rank() + 1 != x.rank())
    building::fail(x.loc(), ErrorCode::ShapeMismatch,
                   concat_text("nll_loss: labels must have the axes of log_probs ", x.shape(),
                               " except the class axis, got ", c.labels.shape()));
  const std::int64_t axis = x.rank() - 1;
  const DType t = count_dtype(g, {{x.dim(-1)}}, c.labels.dtype());
  const Term label = c.labels.cast(t);
  const Term outside = functions::either(compared(CompareKind::Lt, label, 0.0),
                                         compared(CompareKind::Ge, label, label.at(dim_value(g, x.dim(-1), t))));
  const Term own = label.at(g.unsqueeze(chosen(outside, 0.0, label), axis));
  Term losses = -x.at(g.squeeze(x.at(g.take_along_axis(x, own, axis)), axis));
  losses = c.counted(chosen(outside, std::nan(""), losses));
  if (c.weight) losses = losses * c.row_weights();
  return c.reduce(losses);
}

Expr binary_cross_entropy(Operand p, Operand target, std::optional<Operand> weight, Reduction reduction) {
  const Term given(p, "binary_cross_entropy"), x = wide(given), t = wide(given.at(target));
  // PyTorch clamps logarithms at -100, which keeps losses finite where p is 0 or 1. Such p are replaced before the
  // logarithm, so that derivatives stay finite.
  constexpr double kLeast = -100;
  const Term none = functions::both(compared(CompareKind::Ge, x, 0.0), compared(CompareKind::Le, x, std::exp(kLeast)));
  const Term all = compared(CompareKind::Eq, x, 1.0);
  const Term log_p = chosen(none, kLeast, log(chosen(none, 1.0, x)));
  const Term log_not = chosen(all, kLeast, log1p(-chosen(all, 0.0, x)));
  return reduced((-(t * log_p + (1.0 - t) * log_not)).cast(given.dtype()), weight, reduction);
}

namespace {
// log(1 + e^-|x|) and its factor sigmoid(-|x|), without |x|, whose derivative at 0 is that of neither side.
struct LogisticTail {
  Term above, z;
  explicit LogisticTail(const Term& x) : above(compared(CompareKind::Gt, x, 0.0)), z(chosen(above, -x, x)) {}
};
// -(t log sigmoid(x) + (1 - t) log sigmoid(-x)) with the first term times `positive`: a sum of terms of one sign, so
// nothing cancels. A part without weight adds nothing, also where x is infinite.
Term logistic_entropy(const Term& x, const Term& t, const std::optional<Term>& positive) {
  const LogisticTail tail(x);
  const Term yes = positive ? t * *positive : t, no = 1.0 - t;
  const Term missed = chosen(tail.above, no, yes);
  const Term endless =
      functions::both(compared(CompareKind::Eq, missed, 0.0), compared(CompareKind::Eq, tail.z, -HUGE_VAL));
  const Term linear = missed * chosen(endless, 0.0, -tail.z), log_term = tail.z(ActivationKind::Softplus);
  return linear + (positive ? (yes + no) * log_term : log_term);
}
}  // namespace

Expr binary_cross_entropy_with_logits(Operand logits, Operand target, std::optional<Operand> weight,
                                      std::optional<Operand> pos_weight, Reduction reduction) {
  const Term x(logits, "binary_cross_entropy_with_logits"), t = x.at(target);
  std::optional<Term> positive;
  if (pos_weight) positive = x.at(*pos_weight);
  return reduced(logistic_entropy(x, t, positive), weight, reduction);
}

Expr sigmoid_focal_loss(Operand logits, Operand target, double alpha, double gamma, Reduction reduction) {
  const Term x(logits, "sigmoid_focal_loss"), t = x.at(target);
  check_positive(x, "sigmoid_focal_loss", "gamma", gamma, true);
  if (!(alpha <= 1)) refuse_loss(x, "sigmoid_focal_loss", concat_text("alpha must be at most 1, got ", alpha));
  // 1 - p_t = t sigmoid(-x) + (1 - t) sigmoid(x), from the smaller of both sigmoids.
  const LogisticTail tail(x);
  const Term least = sigmoid(larger(tail.z, -1000.0)), most = 1.0 - least, no = 1.0 - t;
  const Term missed = chosen(tail.above, t * least + no * most, t * most + no * least);
  Term losses = logistic_entropy(x, t, std::nullopt) * (gamma == 2 ? square(missed) : functions::pow(missed, gamma));
  if (alpha >= 0) losses = losses * ((2 * alpha - 1) * t + (1 - alpha));
  return reduced(losses, reduction);
}

Expr mse_loss(Operand x, Operand target, Reduction reduction) {
  const Term a(x, "mse_loss");
  return reduced(square(a - a.at(target)), reduction);
}
Expr l1_loss(Operand x, Operand target, Reduction reduction) {
  const Term a(x, "l1_loss");
  return reduced(abs(a - a.at(target)), reduction);
}
namespace {
// The square of the difference, times `half`, where its size is `near`. Numbers beyond that do not overflow in squares
// that are not chosen, and at 0 the second derivative is that of a square, which |d|^2 has not.
Term quadratic(const Term& near, const Term& difference, double half) {
  const Term d = chosen(near, difference, 0.0);
  return d * (d * half);
}
}  // namespace
Expr smooth_l1_loss(Operand x, Operand target, double beta, Reduction reduction) {
  const Term a(x, "smooth_l1_loss");
  check_positive(a, "smooth_l1_loss", "beta", beta, true);
  const Term difference = a - a.at(target), d = abs(difference);
  if (beta == 0) return reduced(d, reduction);
  const Term near = compared(CompareKind::Lt, d, beta);
  return reduced(chosen(near, quadratic(near, difference, 0.5 / beta), d - 0.5 * beta), reduction);
}
Expr huber_loss(Operand x, Operand target, double delta, Reduction reduction) {
  const Term a(x, "huber_loss");
  check_positive(a, "huber_loss", "delta", delta);
  const Term difference = a - a.at(target), d = abs(difference), near = compared(CompareKind::Le, d, delta);
  return reduced(chosen(near, quadratic(near, difference, 0.5), (d - 0.5 * delta) * delta), reduction);
}

namespace {
// t (log t - a), and 0 where t is 0. With a rule of its own no second derivative has 1 / t^2, which is infinite for
// small t.
Expr surprise(const Expr& t, const Expr& a) {
  const auto parts = [](const Expr& p, const Expr& q) {
    Graph& g = p.graph();
    const Expr some = g.ne(p, 0.0);
    return std::pair(some, g.log(g.where(some, p, 1.0)) - q);
  };
  const auto value = [parts](const Expr& p, const Expr& q) {
    const auto [some, apart] = parts(p, q);
    return p.graph().where(some, p * apart, 0.0);
  };
  CustomFn fn;
  fn.name = "kl_div";
  fn.body = [value](Graph&, const ExprList& in) { return ExprList{value(in[0], in[1])}; };
  fn.jvp = [value, parts](Graph& g, const ExprList& in) {
    const auto [some, apart] = parts(in[0], in[1]);
    return ExprList{value(in[0], in[1]), g.where(some, in[2] * (apart + 1.0), 0.0) - in[0] * in[3]};
  };
  Graph& g = t.graph();
  const Dims dims = g.add(t, a).shape().dims();
  return g.custom_fn({g.expand(t, dims), g.expand(a, dims)}, fn)[0];
}
}  // namespace
Expr kl_div(Operand x, Operand target, bool log_target, Reduction reduction) {
  Term a(x, "kl_div"), t = a.at(target);
  if (is_half(a)) return a.at(kl_div(wide(a), wide(t), log_target, reduction)).cast(a.dtype());
  if (!log_target) return reduced(a.at(surprise(t, a)), reduction);
  const Term weight = exp(t), some = compared(CompareKind::Ne, weight, 0.0);  // 0 times an infinity is 0 here
  const Term apart = chosen(some, t, 0.0) - chosen(some, a, 0.0);
  return reduced(chosen(some, weight * apart, 0.0), reduction);
}

namespace {
// Vectors along an axis divided by their largest magnitude, so that squares neither overflow nor vanish.
struct ScaledVectors {
  Term unit, scale, squares;
  ScaledVectors(const Term& v, std::int64_t axis) : unit(v), scale(v), squares(v) {
    const Term top = functions::stopped(v.at(v.graph().reduce_max(abs(v), {axis}, true)));
    const Term usable = functions::both(compared(CompareKind::Gt, top, 0.0), compared(CompareKind::Lt, top, HUGE_VAL));
    const Term by = chosen(usable, top, 1.0);
    unit = v / by;
    squares = sum(square(unit), {axis});
    scale = v.at(v.graph().squeeze(by, axis));
  }
};
}  // namespace

// The quotient of the scaled vectors does not depend on the scales, so they need no derivative.
Expr cosine_similarity(Operand a, Operand b, std::int64_t axis, double eps) {
  const Term x(a, "cosine_similarity");
  check_positive(x, "cosine_similarity", "eps", eps, true);
  const ScaledVectors u(wide(x), axis), v(wide(x.at(b)), axis);
  // The root is taken of the product of the squared norms, which has a derivative where a vector is 0. The scaled norms
  // of other vectors are 1 or more.
  const Term least = square(smaller(eps / u.scale / v.scale, 1e15));
  return (sum(u.unit * v.unit, {axis}) / sqrt(larger(u.squares * v.squares, larger(least, 1e-30)))).cast(x.dtype());
}
Expr cosine_embedding_loss(Operand a, Operand b, Operand target, double margin, Reduction reduction) {
  const Term x(a, "cosine_embedding_loss"), t = x.at(target);
  check_finite(x, "cosine_embedding_loss", "margin", margin);
  const ScaledVectors u(wide(x), -1), v(wide(x.at(b)), -1);
  constexpr double kAdded = 1e-12;  // to each squared norm, as in PyTorch
  const auto norm = [&](const ScaledVectors& s) {
    const Term root = std::sqrt(kAdded) / s.scale;
    return sqrt(s.squares + square(smaller(root, 1e15)));
  };
  const Term cosine = (sum(u.unit * v.unit, {-1}) / norm(u) / norm(v)).cast(x.dtype());
  const Term apart = chosen(compared(CompareKind::Eq, t, -1.0), larger(cosine - margin, 0.0), 0.0);
  return reduced(chosen(compared(CompareKind::Eq, t, 1.0), 1.0 - cosine, apart), reduction);
}
Expr hinge_loss(Operand x, Operand target, Reduction reduction) {
  const Term a(x, "hinge_loss");
  return reduced(larger(1.0 - a * a.at(target), 0.0), reduction);
}
Expr hinge_embedding_loss(Operand x, Operand target, double margin, Reduction reduction) {
  const Term a(x, "hinge_embedding_loss"), t = a.at(target);
  check_finite(a, "hinge_embedding_loss", "margin", margin);
  // As PyTorch: a target that is neither 1 nor -1 gets the sum of both terms.
  const Term far = chosen(compared(CompareKind::Ne, t, 1.0), larger(margin - a, 0.0), 0.0);
  return reduced(far + chosen(compared(CompareKind::Ne, t, -1.0), a, 0.0), reduction);
}
Expr margin_ranking_loss(Operand a, Operand b, Operand target, double margin, Reduction reduction) {
  const Term x(a, "margin_ranking_loss");
  check_finite(x, "margin_ranking_loss", "margin", margin);
  return reduced(larger(-x.at(target) * (x - x.at(b)) + margin, 0.0), reduction);
}
Expr soft_margin_loss(Operand x, Operand target, Reduction reduction) {
  const Term a(x, "soft_margin_loss");
  return reduced(-log_sigmoid(a * a.at(target)), reduction);
}

Expr triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletOptions& o) {
  const Term a(anchor, "triplet_margin_loss"), near = a.at(positive), far = a.at(negative);
  check_positive(a, "triplet_margin_loss", "p", o.p);
  check_positive(a, "triplet_margin_loss", "margin", o.margin);
  check_positive(a, "triplet_margin_loss", "eps", o.eps, true);
  const auto distance = [&](const Term& x, const Term& y) {
    const Term d = x - y + o.eps;
    if (o.p == 1) return sum(abs(d), {-1});
    if (o.p == 2) return sqrt(sum(square(d), {-1}));
    return functions::pow(sum(functions::pow(abs(d), o.p), {-1}), 1 / o.p);
  };
  Term apart = distance(a, far);
  if (o.swap) apart = smaller(apart, distance(near, far));
  return reduced(larger(distance(a, near) - apart + o.margin, 0.0), o.reduction);
}

Expr poisson_nll_loss(Operand x, Operand target, bool log_input, bool full, double eps, Reduction reduction) {
  const Term a(x, "poisson_nll_loss"), t = a.at(target);
  check_positive(a, "poisson_nll_loss", "eps", eps, true);
  if (is_half(a)) return a.at(poisson_nll_loss(wide(a), wide(t), log_input, full, eps, reduction)).cast(a.dtype());
  Term losses = log_input ? exp(a) - t * a : a - t * log(a + eps);
  if (full) {
    const Term large = compared(CompareKind::Gt, t, 1.0), n = chosen(large, t, 1.0);
    losses = losses + chosen(large, n * log(n) - n + 0.5 * log(n * (2 * std::numbers::pi)), 0.0);
  }
  return reduced(losses, reduction);
}
Expr gaussian_nll_loss(Operand x, Operand target, Operand var, bool full, double eps, Reduction reduction) {
  const Term a(x, "gaussian_nll_loss"), t = a.at(target), given = a.at(var);
  check_positive(a, "gaussian_nll_loss", "eps", eps);
  if (is_half(a)) return a.at(gaussian_nll_loss(wide(a), wide(t), wide(given), full, eps, reduction)).cast(a.dtype());
  // The clamp has no effect on the derivative, which is that of var itself, as in PyTorch.
  const Term v = given + functions::stopped(larger(given, eps) - given);
  const Term d = a - t;
  Term losses = 0.5 * (log(v) + d * (d / v));  // the square of d may be infinite where this is not
  if (full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, reduction);
}

Expr ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
              const CtcOptions& options) {
  const Term x(log_probs, "ctc_loss");
  Graph& g = x.graph();
  const auto own = [&](const Operand& o) { return building::own_at(g, o, x.loc()); };
  const Term lengths = x.at(own(target_lengths));
  const Expr op = g.add(ops::CtcLoss{options.blank},
                        {rlx::value_in(g, x, {}, x.loc()), own(targets), own(input_lengths), lengths.value()}, x.loc());
  Term losses = x.at(op);
  if (options.zero_infinity) losses = chosen(compared(CompareKind::Eq, losses, HUGE_VAL), 0.0, losses);
  if (options.reduction == Reduction::Mean) losses = losses / larger(lengths.cast(x.dtype()), 1.0);
  return reduced(losses, options.reduction);
}

}  // namespace rlx::nn
