// recognize-norms: finds softmax, layer norm and RMS norm written out of reductions, as exporters emit them.
#include <cmath>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/rewrite.h"
#include "rlx/passes/match.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

// A reduction over one axis that keeps it as 1, ready to broadcast against `of`.
struct Reduced {
  Value of;
  std::int64_t axis = 0;
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
  if (!op || op->fn != fn || op->axes.size() != 1) return std::nullopt;
  const Reduced r{n.inputs[0], op->axes[0]};
  Dims want = g.shape(r.of).dims();
  want[static_cast<std::size_t>(r.axis)] = 1;
  return want == kept ? std::optional(r) : std::nullopt;
}

// The mean: a mean reduction, or a sum times 1 / N.
std::optional<Reduced> mean_of(const Graph& g, Value v) {
  if (std::optional<Reduced> r = reduced(g, v, ReduceKind::Mean)) return r;
  const Scaled s = peel_scale(g, v);
  if (s.base == v) return std::nullopt;
  std::optional<Reduced> r = reduced(g, s.base, ReduceKind::Sum);
  if (!r) return std::nullopt;
  const Dim n = g.shape(r->of).dim(static_cast<int>(r->axis));
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

// The vector [N] that `v` is when it broadcasts along the last axis of `x`: [N], [1, .., N] or an expand of those.
std::optional<Value> vector_along_last(const Graph& g, Value v, const Shape& x) {
  while (g.node(v.node).kind() == OpKind::Expand) v = g.node(v.node).inputs[0];
  const Shape& s = g.shape(v);
  if (s.rank() == 0 || s.rank() > x.rank() || !(s.dim(-1) == x.dim(-1)) || s.dtype() != x.dtype()) return std::nullopt;
  for (int i = 0; i + 1 < s.rank(); ++i)
    if (!s.dim(i).is_static(1)) return std::nullopt;
  return v;
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
    if (!exp || !total || total->of != e || !(g_.shape(e) == n.shape())) return false;
    auto stop = [&](MissReason reason, std::string detail, std::string hint = {}) {
      context_.missed("softmax", g_, id, reason, std::move(detail), std::move(hint));
      return true;
    };
    const Node* shifted = as_binary(g_, exp->inputs[0], BinaryKind::Sub);
    std::optional<Reduced> top = shifted ? reduced(g_, shifted->inputs[1], ReduceKind::Max) : std::nullopt;
    if (!top || top->of != shifted->inputs[0] || top->axis != total->axis || !(g_.shape(top->of) == n.shape()))
      return stop(MissReason::NotFused, concat_text(exp->inputs[0], " is not reduced by its maximum"),
                  "subtract the maximum: it does not change the result, and exp cannot overflow");
    if (r_.uses().is_output(e)) return stop(MissReason::IsOutput, concat_text(e, " is an output of the graph"));
    if (r_.uses().uses(e).size() != 2)
      return stop(MissReason::MultiConsumer, concat_text(e, " has ", r_.uses().uses(e).size(), " readers"));
    Expr y = r_.stage().softmax(r_.expr(top->of), top->axis);
    if (const char* why = context_.refuses(r_, y, Value(id)))
      return stop(MissReason::NotClaimed, concat_text("the target does not claim softmax of ", n.shape(), ": ", why));
    r_.replace(Value(id), y);
    context_.fused("softmax");
    return true;
  }

  // d / sqrt(mean(d^2) + eps) at a node.
  struct Quotient {
    Value d, root;
    std::int64_t axis = 0;
    double eps = 0;
  };
  std::optional<Quotient> quotient(NodeId id) const {
    const Node& n = g_.node(id);
    const bool div = as_binary(g_, id, BinaryKind::Div);
    if (!div && !as_binary(g_, id, BinaryKind::Mul)) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      if (div && i == 1) break;
      const Value d = n.inputs[i], root = n.inputs[1 - i];
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
        return Quotient{d, root, mean->axis, eps->constant};
    }
    return std::nullopt;
  }

  // Rewrites the norm whose normalised value is node `hat`, with the gamma and beta after it.
  void norm(NodeId hat, const Quotient& q) {
    const Shape& shape = g_.shape(q.d);
    Value x = q.d;
    const Node* centred = as_binary(g_, q.d, BinaryKind::Sub);
    std::optional<Reduced> mean = centred ? mean_of(g_, centred->inputs[1]) : std::nullopt;
    const bool layer = mean && mean->of == centred->inputs[0] && mean->axis == q.axis && g_.shape(mean->of) == shape;
    if (layer) x = mean->of;
    const std::string_view pattern = layer ? "layer_norm" : "rms_norm";
    auto stop = [&](MissReason reason, std::string detail) {
      context_.missed(pattern, g_, hat, reason, std::move(detail));
    };
    if (r_.uses().is_output(q.root))
      return stop(MissReason::IsOutput, concat_text(q.root, " is an output of the graph"));
    if (!r_.uses().single_use(q.root))
      return stop(MissReason::MultiConsumer, concat_text(q.root, " has ", r_.uses().use_count(q.root), " readers"));
    // d is read by its square (once or twice) and by the quotient. With another reader it would be computed again.
    if (layer && r_.uses().is_output(q.d))
      return stop(MissReason::IsOutput, concat_text(q.d, " is an output of the graph"));
    if (layer)
      for (const UseIndex::Use& u : r_.uses().uses(q.d))
        if (u.user != hat && square_of(g_, u.user) != q.d)
          return stop(MissReason::MultiConsumer, concat_text(q.d, " is also read by ", node_text(g_, u.user)));

    Value result(hat);
    std::optional<Value> gamma, beta;
    if (q.axis == shape.rank() - 1) {
      gamma = next_vector(result, BinaryKind::Mul);
      beta = next_vector(result, BinaryKind::Add);
    }
    Graph& stage = r_.stage();
    auto vector = [&](std::optional<Value> v) -> std::optional<Operand> {
      if (!v) return std::nullopt;
      const Expr e = r_.expr(*v);
      return e.rank() == 1 ? e : stage.reshape(e, {shape.dim(static_cast<int>(q.axis))});
    };
    const std::optional<Operand> g1 = vector(gamma), b1 = vector(beta);
    Expr y = layer ? stage.layer_norm(r_.expr(x), g1, b1, q.eps, {q.axis})
                   : stage.rms_norm(r_.expr(x), g1, b1, q.eps, {q.axis});
    if (const char* why = context_.refuses(r_, y, result))
      return stop(MissReason::NotClaimed,
                  concat_text("the target does not claim ", pattern, " of ", shape, " over axis ", q.axis, ": ", why));
    r_.replace(result, y);
    context_.fused(pattern);
  }

  // The vector that the only reader of `result` multiplies or adds. Moves `result` to that reader.
  std::optional<Value> next_vector(Value& result, BinaryKind fn) const {
    if (!r_.uses().single_use(result)) return std::nullopt;
    const UseIndex::Use use = r_.uses().uses(result)[0];
    const Node* n = as_binary(g_, use.user, fn);
    if (!n || !(n->shape() == g_.shape(result))) return std::nullopt;
    const Value other = n->inputs[1 - use.operand];
    std::optional<Value> v = vector_along_last(g_, other, n->shape());
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
                           "gamma] [+ beta] as layer_norm and the same without the mean as rms_norm; means may be sums "
                           "times 1/N, roots reciprocal. Legal: one axis (the last one for gamma and beta to join), "
                           "and nothing else reads the intermediates. A row of -inf gives zeros instead of NaN.",
                           run_recognize_norms};

}  // namespace rlx
