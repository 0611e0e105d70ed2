// simplify-control-flow: inlines calls, replaces branches with constant predicates, and drops unread parts of loops.
#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

using Mask = std::vector<bool>;

std::size_t count_of(const Mask& m) { return static_cast<std::size_t>(std::count(m.begin(), m.end(), true)); }

// The nodes that the marked outputs and the ordered ops need.
std::vector<bool> needed(const Graph& body, const Mask& outputs) {
  std::vector<bool> live(body.num_nodes(), false);
  for (NodeId id : body.ordered()) live[id.index] = true;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k]) live[body.outputs()[k].node.index] = true;
  for (std::uint32_t i = static_cast<std::uint32_t>(body.num_nodes()); i-- > 0;)
    if (live[i])
      for (Value v : body.nodes()[i].inputs) live[v.node.index] = true;
  return live;
}

// By input of the body, of any dtype: true when one of the marked outputs depends on it.
Mask inputs_read(const Graph& body, const Mask& outputs) {
  const std::vector<bool> live = needed(body, outputs);
  Mask out;
  for (NodeId id : body.leaves(OpKind::Input)) out.push_back(live[id.index]);
  return out;
}

// The body with only the marked inputs and outputs.
Subgraph cut(const Graph& body, const Mask& inputs, const Mask& outputs) {
  Graph out = copy_shell(body);
  std::vector<NodeId> map(body.num_nodes());
  std::vector<bool> live = needed(body, outputs);
  const std::vector<NodeId> leaves = body.leaves(OpKind::Input);
  for (std::size_t k = 0; k < leaves.size(); ++k) live[leaves[k].index] = inputs[k];
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    if (!live[i]) continue;
    Node copy = body.nodes()[i];
    for (Value& v : copy.inputs) v = Value(map[v.node.index], v.result);
    map[i] = out.add_node(std::move(copy));
  }
  std::vector<Value> values;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k]) values.emplace_back(map[body.outputs()[k].node.index], body.outputs()[k].result);
  out.set_outputs(std::move(values));
  return std::make_shared<const Graph>(std::move(out));
}

class Simplifier {
 public:
  Simplifier(const Graph& g, const PassContext& context)
      : g_(g), context_(context), uses_(g), r_(g, simplify_control_flow.name) {}

  std::optional<Graph> run() {
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const NodeId id{i};
      if (op_def(g_.node(id).op).bodies != BodyKind::Programs || !simplify(id)) r_.copy(id);
    }
    if (!r_.changed()) return std::nullopt;
    return drop_dead(std::move(r_).finish());
  }

 private:
  bool simplify(NodeId id) {
    const OpBox& op = g_.node(id).op;
    if (op.is<ops::Call>()) return call(id, op.as<ops::Call>());
    if (op.is<ops::If>()) return branch(id, op.as<ops::If>());
    if (op.is<ops::Scan>()) return scan(id, op.as<ops::Scan>());
    if (op.is<ops::While>()) return loop(id, op.as<ops::While>());
    return false;
  }

  bool call(NodeId id, const ops::Call& op) {
    if (context_.claims->has(OpKind::Call) && context_.claims->claims(g_, id)) return false;
    r_.replace(id, inline_body(r_.graph(), *op.body, r_.operands(id)));
    return true;
  }

  bool branch(NodeId id, const ops::If& op) {
    const std::vector<Expr> operands = r_.operands(id);
    const std::vector<Expr> taken(operands.begin() + 1, operands.end());
    const auto* pred = r_.graph().node(operands[0].value().node).op.get_if<ops::Constant>();
    if (pred || same_graph(*op.then, *op.otherwise)) {
      const bool yes = !pred || pred->value.at_i64(0) != 0;
      r_.replace(id, inline_body(r_.graph(), yes ? *op.then : *op.otherwise, taken));
      return true;
    }
    Mask outputs = results_read(id);
    if (count_of(outputs) == 0) {
      if (!is_ordered(op)) return false;  // the whole op is dead
      outputs[0] = true;                  // a node needs a result
    }
    Mask inputs = inputs_read(*op.then, outputs);
    const Mask others = inputs_read(*op.otherwise, outputs);
    for (std::size_t k = 0; k < inputs.size(); ++k) inputs[k] = inputs[k] || others[k];
    if (full(inputs) && full(outputs)) return false;
    std::vector<Value> kept{operands[0].value()};
    for (std::size_t k = 0; k < taken.size(); ++k)
      if (inputs[k]) kept.push_back(taken[k].value());
    const ops::If form{cut(*op.then, inputs, outputs), cut(*op.otherwise, inputs, outputs)};
    put(id, form, std::move(kept), outputs);
    return true;
  }

  bool scan(NodeId id, const ops::Scan& op) {
    const std::vector<Expr> operands = r_.operands(id);
    const auto invariants = static_cast<std::size_t>(op.invariants), carries = static_cast<std::size_t>(op.carries);
    const std::size_t outputs = op.body->outputs().size();
    Graph& g = r_.graph();
    if (op.length[0].is_static(0)) {
      std::vector<Expr> results(operands.begin() + static_cast<std::ptrdiff_t>(invariants),
                                operands.begin() + static_cast<std::ptrdiff_t>(invariants + carries));
      for (std::size_t y = carries; y < outputs; ++y) results.push_back(zeros(g_.node(id).shapes[y]));
      r_.replace(id, results);
      return true;
    }
    if (op.length[0].is_static(1)) {
      std::vector<Expr> inputs = operands;
      for (std::size_t k = invariants + carries; k < inputs.size(); ++k) inputs[k] = g.squeeze(inputs[k], 0);
      std::vector<Expr> results = inline_body(g, *op.body, inputs);
      for (std::size_t y = carries; y < outputs; ++y) results[y] = g.unsqueeze(results[y], 0);
      r_.replace(id, results);
      return true;
    }
    Mask inputs, kept = results_read(id);
    if (count_of(kept) == 0) {
      if (!is_ordered(op)) return false;
      kept[0] = true;  // a node needs a result
    }
    close_over_carries(*op.body, invariants, carries, kept, inputs, {});
    if (full(inputs) && full(kept)) return false;
    ops::Scan form = op;
    form.invariants = marked_in(inputs, 0, invariants);
    form.carries = marked_in(inputs, invariants, carries);
    form.body = cut(*op.body, inputs, kept);
    put(id, form, chosen(operands, inputs), kept);
    return true;
  }

  bool loop(NodeId id, const ops::While& op) {
    const std::vector<Expr> operands = r_.operands(id);
    const auto invariants = static_cast<std::size_t>(op.invariants);
    const std::size_t carries = operands.size() - invariants, outputs = op.body->outputs().size();
    if (op.max_trips == 0) {
      std::vector<Expr> results(operands.begin() + static_cast<std::ptrdiff_t>(invariants), operands.end());
      for (std::size_t y = carries; y < outputs; ++y) results.push_back(zeros(g_.node(id).shapes[y]));
      results.push_back(r_.graph().scalar(0, DType::I64));
      r_.replace(id, results);
      return true;
    }
    Mask inputs, kept = results_read(id);
    if (count_of(kept) == 0) return false;
    kept.pop_back();  // the number of iterations, which is always a result
    close_over_carries(*op.body, invariants, carries, kept, inputs, inputs_read(*op.cond, {true}));
    if (full(inputs) && full(kept)) return false;
    ops::While form = op;
    form.invariants = marked_in(inputs, 0, invariants);
    form.cond = cut(*op.cond, inputs, {true});
    form.body = cut(*op.body, inputs, kept);
    kept.push_back(true);
    put(id, form, chosen(operands, inputs), kept);
    return true;
  }

  // Adds to `outputs` the carries that the kept outputs depend on. Returns the inputs that are then read.
  static void close_over_carries(const Graph& body, std::size_t invariants, std::size_t carries, Mask& outputs,
                                 Mask& inputs, const Mask& also) {
    for (bool more = true; more;) {
      more = false;
      inputs = inputs_read(body, outputs);
      for (std::size_t k = 0; k < also.size(); ++k) inputs[k] = inputs[k] || also[k];
      for (std::size_t c = 0; c < carries; ++c) {
        if (inputs[invariants + c] && !outputs[c]) outputs[c] = more = true;
        if (outputs[c]) inputs[invariants + c] = true;
      }
    }
  }

  Mask results_read(NodeId id) const {
    Mask out;
    for (std::uint32_t k = 0; k < g_.node(id).num_results(); ++k) out.push_back(uses_.use_count(Value(id, k)) > 0);
    return out;
  }
  static bool full(const Mask& m) { return count_of(m) == m.size(); }
  static std::int64_t marked_in(const Mask& m, std::size_t first, std::size_t count) {
    const auto begin = m.begin() + static_cast<std::ptrdiff_t>(first);
    return std::count(begin, begin + static_cast<std::ptrdiff_t>(count), true);
  }
  static std::vector<Value> chosen(const std::vector<Expr>& operands, const Mask& m) {
    std::vector<Value> out;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (m[k]) out.push_back(operands[k].value());
    return out;
  }
  // A replacement for results that nobody reads, or that have no elements but symbolic extents.
  Expr zeros(const Shape& shape) {
    const Expr zero = r_.graph().scalar(0, shape.dtype());
    return shape.rank() == 0 ? zero : r_.graph().expand(zero, shape.dims());
  }

  // Puts the smaller op. Zeros replace its dropped results, which nobody reads.
  void put(NodeId id, OpBox op, std::vector<Value> operands, const Mask& results) {
    Graph& g = r_.graph();
    const Expr first = g.add(std::move(op), std::move(operands), g_.node(id).origin.loc);
    std::vector<Expr> out;
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < results.size(); ++k)
      out.push_back(results[k] ? first.result(next++) : zeros(g_.node(id).shapes[k]));
    r_.replace(id, out);
  }

  const Graph& g_;
  const PassContext& context_;
  UseIndex uses_;
  Rebuilder r_;
};

std::optional<Graph> run_simplify_control_flow(const Graph& g, const PassContext& context) {
  if (std::none_of(g.nodes().begin(), g.nodes().end(),
                   [](const Node& n) { return op_def(n.op).bodies == BodyKind::Programs; }))
    return std::nullopt;
  return Simplifier(g, context).run();
}

}  // namespace

const Pass simplify_control_flow{
    "simplify-control-flow",
    "Inlines calls that the target does not claim; selects the branch of an If with a constant condition or equal "
    "branches; replaces loops without iterations and scans of one step by their values; removes operands and results "
    "of branches and loops that have no readers. Always legal.",
    run_simplify_control_flow};

}  // namespace rlx
