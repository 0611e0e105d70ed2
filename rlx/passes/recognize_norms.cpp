// recognize-norms: finds softmax, layer norm, RMS norm and batch norm of training written out of reductions, as
// exporters emit them.
#include <algorithm>
#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

// A reduction over sorted axes that keeps them as 1, ready to broadcast against `of`.
struct Reduced {
  Value of;
  std::vector<std::int64_t> axes{};
};

// `v` as the reduction `fn` of a value with the rank of `v`. Looks through reshapes that put the axis back, broadcasts
// and stop_gradient.
std::optional<Reduced> reduced(const Graph& g, Value v, ReduceKind fn) {
  const int rank = g.shape(v).rank();
  while (true) {
    const Node& n = g.node(v.node);
    const bool same_rank = !n.inputs.empty() && g.shape(n.inputs[0]).rank() == rank;
    if ((n.kind() != OpKind::Expand || !same_rank) && n.kind() != OpKind::StopGradient) break;
    v = n.inputs[0];
  }
  Dims kept = g.shape(v).dims();
  if (g.node(v.node).kind() == OpKind::Reshape) v = g.node(v.node).inputs[0];
  const Node& n = g.node(v.node);
  const auto* op = n.op.get_if<ops::Reduce>();
  if (!op || op->fn != fn || op->axes.empty()) return std::nullopt;
  Reduced r{n.inputs[0], op->axes};
  std::sort(r.axes.begin(), r.axes.end());
  Dims want = g.shape(r.of).dims();
  for (std::int64_t a : r.axes) want[static_cast<std::size_t>(a)] = 1;
  return want == kept ? std::optional(std::move(r)) : std::nullopt;
}

// The mean: a mean reduction, or a sum times 1 / N.
std::optional<Reduced> mean_of(const Graph& g, Value v) {
  if (std::optional<Reduced> r = reduced(g, v, ReduceKind::Mean)) return r;
  const Scaled s = peel_scale(g, v);
  if (s.base == v) return std::nullopt;
  std::optional<Reduced> r = reduced(g, s.base, ReduceKind::Sum);
  if (!r) return std::nullopt;
  Dim n(1);
  for (std::int64_t a : r->axes) n = n * g.shape(r->of).dim(static_cast<int>(a));
  if (!n.is_static() || n.value() == 0) return std::nullopt;
  return std::abs(s.factor * static_cast<double>(n.value()) - 1) < 1e-6 ? r : std::nullopt;
}

// d when v is d * d.
std::optional<Value> square_of(const Graph& g, Value v) {
  const Node& n = g.node(v.node);
  if (as_activation(g, v, ActivationKind::Square)) return n.inputs[0];
  if (as_binary(g, v, BinaryKind::Mul) && n.inputs[0] == n.inputs[1]) return n.inputs[0];
  if (as_binary(g, v, BinaryKind::Pow) && constant_scalar(g, n.inputs[1]) == 2.0) return n.inputs[0];
  return std::nullopt;
}

// The vector [N] that `v` is when it broadcasts along `axis` of `x`, whose extent there is N: [N], [1, .., N] or an
// expand of those for the last axis, [N, 1], [1, N, 1] for the one before, and so on.
std::optional<Value> vector_along(const Graph& g, Value v, const Shape& x, int axis) {
  while (g.node(v.node).kind() == OpKind::Expand) v = g.node(v.node).inputs[0];
  const Shape& s = g.shape(v);
  const int at = axis - x.rank() + s.rank();
  if (at < 0 || s.rank() > x.rank() || !(s.dim(at) == x.dim(axis)) || s.dtype() != x.dtype()) return std::nullopt;
  for (int i = 0; i < s.rank(); ++i)
    if (i != at && !s.dim(i).is_static(1)) return std::nullopt;
  return v;
}

// The only axis that is not reduced.
std::optional<int> axis_left(const std::vector<std::int64_t>& axes, int rank) {
  if (rank < 2 || axes.size() + 1 != static_cast<std::size_t>(rank)) return std::nullopt;
  int a = 0;
  while (static_cast<std::size_t>(a) < axes.size() && axes[static_cast<std::size_t>(a)] == a) ++a;
  return a;
}

class Recognizer {
 public:
  Recognizer(GraphRewriter& r, const PassContext& context) : r_(r), g_(r.source()), context_(context) {}

  void visit(NodeId id) {
    if (!is_float(g_.node(id).shape().dtype())) return;
    if (softmax(id)) return;
    if (std::optional<Quotient> q = quotient(id)) norm(id, *q);
  }

 private:
  // numerator / denominator, or numerator * reciprocal(denominator).
  bool softmax(NodeId id) {
    Value e, sum;
    const Node& n = g_.node(id);
    if (as_binary(g_, id, BinaryKind::Div)) {
      e = n.inputs[0], sum = n.inputs[1];
    } else if (as_binary(g_, id, BinaryKind::Mul)) {
      for (std::size_t i = 0; i < 2; ++i)
        if (const Node* recip = as_activation(g_, n.inputs[i], ActivationKind::Recip))
          e = n.inputs[1 - i], sum = recip->inputs[0];
    }
    if (!sum.node.valid()) return false;
    std::optional<Reduced> total = reduced(g_, sum, ReduceKind::Sum);
    const Node* exp = as_activation(g_, e, ActivationKind::Exp);
    if (!exp || !total || total->axes.size() != 1 || total->of != e || !(g_.shape(e) == n.shape())) return false;
    auto stop = [&](MissReason reason, std::string detail, std::string hint = {}) {
      context_.missed("softmax", g_, id, reason, std::move(detail), std::move(hint));
      return true;
    };
    const Node* shifted = as_binary(g_, exp->inputs[0], BinaryKind::Sub);
    std::optional<Reduced> top = shifted ? reduced(g_, shifted->inputs[1], ReduceKind::Max) : std::nullopt;
    if (!top || top->of != shifted->inputs[0] || top->axes != total->axes || !(g_.shape(top->of) == n.shape()))
      return stop(MissReason::NotFused, concat_text(exp->inputs[0], " is not reduced by its maximum"),
                  "subtract the maximum: it does not change the result, and exp cannot overflow");
    if (r_.uses().is_output(e)) return stop(MissReason::IsOutput, concat_text(e, " is an output of the graph"));
    if (r_.uses().uses(e).size() != 2)
      return stop(MissReason::MultiConsumer, concat_text(e, " has ", r_.uses().uses(e).size(), " readers"));
    Expr y = r_.stage().softmax(r_.expr(top->of), top->axes[0]);
    if (const char* why = context_.refuses(r_, y, Value(id)))
      return stop(MissReason::NotClaimed, concat_text("the target does not claim softmax of ", n.shape(), ": ", why));
    r_.replace(Value(id), y);
    context_.fused("softmax");
    return true;
  }

  // d / sqrt(mean(d^2) + eps) at a node.
  struct Quotient {
    Value d, root, squares;  // squares: the mean of d^2
    std::vector<std::int64_t> axes;
    double eps = 0;
    std::optional<Value> gamma{};  // a vector that multiplies the root, along the only axis that is not reduced
  };
  std::optional<Quotient> quotient(NodeId id) const {
    const Node& n = g_.node(id);
    const bool div = as_binary(g_, id, BinaryKind::Div);
    if (!div && !as_binary(g_, id, BinaryKind::Mul)) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      if (div && i == 1) break;
      if (std::optional<Quotient> q = quotient(n, n.inputs[i], n.inputs[1 - i], div)) return q;
      if (div) break;
      // d * (root * gamma), as batch norms multiply the channels once
      Value inside = n.inputs[1 - i];
      while (g_.node(inside.node).kind() == OpKind::Expand) inside = g_.node(inside.node).inputs[0];
      const Node* product = as_binary(g_, inside, BinaryKind::Mul);
      if (!product || !r_.uses().single_use(inside)) continue;
      for (std::size_t k = 0; k < 2; ++k) {
        std::optional<Quotient> q = quotient(n, n.inputs[i], product->inputs[k], false);
        const std::optional<int> channels = q ? axis_left(q->axes, n.shape().rank()) : std::nullopt;
        if (channels) q->gamma = vector_along(g_, product->inputs[1 - k], n.shape(), *channels);
        if (channels && q->gamma) return q;
      }
    }
    return std::nullopt;
  }
  // d / root, or with a reciprocal root d * root, as the value of `n`.
  std::optional<Quotient> quotient(const Node& n, Value d, Value root, bool div) const {
    Value inside = root;
    while (g_.node(inside.node).kind() == OpKind::Expand) inside = g_.node(inside.node).inputs[0];
    const Node* recip = div ? nullptr : as_activation(g_, inside, ActivationKind::Recip);
    if (recip) inside = recip->inputs[0];
    const Node* sqrt = as_activation(g_, inside, div || recip ? ActivationKind::Sqrt : ActivationKind::Rsqrt);
    const Node* add = sqrt ? as_binary(g_, sqrt->inputs[0], BinaryKind::Add) : nullptr;
    std::optional<WithConstant> eps = add ? with_constant(g_, *add) : std::nullopt;
    std::optional<Reduced> mean = eps ? mean_of(g_, eps->other) : std::nullopt;
    std::optional<Value> squared = mean ? square_of(g_, mean->of) : std::nullopt;
    if (squared == d && eps->constant >= 0 && std::isfinite(eps->constant) && g_.shape(d) == n.shape())
      return Quotient{d, root, eps->other, mean->axes, eps->constant};
    return std::nullopt;
  }

  // Rewrites the norm whose normalised value is node `hat`, with the gamma and beta after it.
  void norm(NodeId hat, const Quotient& q) {
    const Shape& shape = g_.shape(q.d);
    Value x = q.d;
    const Node* centred = as_binary(g_, q.d, BinaryKind::Sub);
    std::optional<Reduced> mean = centred ? mean_of(g_, centred->inputs[1]) : std::nullopt;
    const bool centres = mean && mean->of == centred->inputs[0] && mean->axes == q.axes && g_.shape(mean->of) == shape;
    if (centres) x = mean->of;
    // Over one axis it is a layer norm.
    const std::optional<int> channels = q.axes.size() > 1 && centres ? axis_left(q.axes, shape.rank()) : std::nullopt;
    if (channels ? accumulator_dtype(shape.dtype()) != shape.dtype() : q.axes.size() > 1 || q.gamma) return;
    const bool layer = centres && !channels;
    const std::string_view pattern = channels ? "batch_norm" : layer ? "layer_norm" : "rms_norm";
    auto stop = [&](MissReason reason, std::string detail) {
      context_.missed(pattern, g_, hat, reason, std::move(detail));
    };
    if (r_.uses().is_output(q.root))
      return stop(MissReason::IsOutput, concat_text(q.root, " is an output of the graph"));
    if (!r_.uses().single_use(q.root))
      return stop(MissReason::MultiConsumer, concat_text(q.root, " has ", r_.uses().use_count(q.root), " readers"));
    // d is read by its square (once or twice) and by the quotient. With another reader it would be computed again.
    if (centres && r_.uses().is_output(q.d))
      return stop(MissReason::IsOutput, concat_text(q.d, " is an output of the graph"));
    if (centres)
      for (const UseIndex::Use& u : r_.uses().uses(q.d))
        if (u.user != hat && square_of(g_, u.user) != q.d)
          return stop(MissReason::MultiConsumer, concat_text(q.d, " is also read by ", node_text(g_, u.user)));

    Value result(hat);
    std::optional<Value> gamma = q.gamma, beta;
    const int axis = channels.value_or(static_cast<int>(q.axes[0]));
    if (channels || axis == shape.rank() - 1) {
      if (!gamma) gamma = next_vector(result, BinaryKind::Mul, axis);
      beta = next_vector(result, BinaryKind::Add, axis);
    }
    Graph& stage = r_.stage();
    auto vector = [&](std::optional<Value> v) -> std::optional<Expr> {
      if (!v) return std::nullopt;
      const Expr e = r_.expr(*v);
      return e.rank() == 1 ? e : stage.reshape(e, {shape.dim(axis)});
    };
    const std::optional<Expr> g1 = vector(gamma), b1 = vector(beta);
    Expr y;
    if (channels) {
      ops::BatchNorm op;
      op.axis = axis, op.eps = q.eps;
      std::vector<std::pair<std::string_view, Expr>> operands{{"x", r_.expr(x)}};
      if (g1) operands.emplace_back("gamma", *g1);
      if (b1) operands.emplace_back("beta", *b1);
      y = stage.add_named(std::move(op), operands);
    } else {
      y = layer ? stage.layer_norm(r_.expr(x), g1, b1, q.eps, q.axes)
                : stage.rms_norm(r_.expr(x), g1, b1, q.eps, q.axes);
    }
    if (const char* why = context_.refuses(r_, y, result))
      return stop(MissReason::NotClaimed, concat_text("the target does not claim ", pattern, " of ", shape, " over ",
                                                      channels ? "all axes but " : "axis ", axis, ": ", why));
    r_.replace(result, y);
    // What else reads the mean and the variance, as running statistics do, reads those of the norm.
    if (channels && (!gamma || is_leaf_in_any_shape(*gamma)) && (!beta || is_leaf_in_any_shape(*beta))) {
      statistic(centred->inputs[1], y.result(1));
      statistic(q.squares, y.result(2));
    }
    context_.fused(pattern);
  }

  // True for a leaf in any shape: it does not depend on the norm.
  bool is_leaf_in_any_shape(Value v) const {
    while (g_.node(v.node).kind() == OpKind::Reshape || g_.node(v.node).kind() == OpKind::Expand)
      v = g_.node(v.node).inputs[0];
    return op_def(g_.node(v.node).op).is_leaf();
  }
  void statistic(Value old, Expr now) {
    while (g_.node(old.node).kind() == OpKind::Expand) old = g_.node(old.node).inputs[0];
    const bool plain = g_.shape(old).num_elements() == now.shape().num_elements();
    if (plain && !r_.uses().single_use(old) && !r_.is_replaced(old))
      r_.replace(old, r_.stage().reshape(now, g_.shape(old).dims()));
  }

  // The vector that the only reader of `result` multiplies or adds. Moves `result` to that reader.
  std::optional<Value> next_vector(Value& result, BinaryKind fn, int axis) const {
    if (!r_.uses().single_use(result)) return std::nullopt;
    const UseIndex::Use use = r_.uses().uses(result)[0];
    const Node* n = as_binary(g_, use.user, fn);
    if (!n || !(n->shape() == g_.shape(result))) return std::nullopt;
    const Value other = n->inputs[1 - use.operand];
    std::optional<Value> v = vector_along(g_, other, n->shape(), axis);
    // The vector may be computed after the norm: commit() places nodes after their operands.
    if (v) result = Value(use.user);
    return v;
  }

  GraphRewriter& r_;
  const Graph& g_;
  const PassContext& context_;
};

std::optional<Graph> run_recognize_norms(const Graph& g, const PassContext& context) {
  GraphRewriter r(g);
  Recognizer recognizer(r, context);
  for (NodeId id : r.nodes())
    if (g.node(id).kind() == OpKind::Binary) recognizer.visit(id);
  if (!r.changed()) return std::nullopt;
  return r.commit(recognize_norms.name).graph;
}

}  // namespace

const Pass recognize_norms{"recognize-norms",
                           "Rewrites exp(x - max x) / sum as softmax, (x - mean) / sqrt(mean of squares + eps) [* "
                           "gamma] [+ beta] as layer_norm, the same over all axes but one as batch_norm, and without "
                           "the mean as rms_norm; means may be sums times 1/N, roots reciprocal. Legal: nothing else "
                           "reads the intermediates; layer_norm and rms_norm have one axis (the last one for gamma and "
                           "beta to join), and batch_norm is not in half precision. A row of -inf gives zeros instead "
                           "of NaN.",
                           run_recognize_norms};

}  // namespace rlx
