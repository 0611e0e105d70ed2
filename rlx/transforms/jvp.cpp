// Forward-mode differentiation.
#include "rlx/transforms/jvp.h"

#include <algorithm>
#include <numeric>

#include "rlx/ir/rewrite.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/transforms/walk.h"

namespace rlx {
namespace {

// The replacement of a result: an op that computes the result together with its tangents.
struct Replaced {
  Value old, now;
};

// Rebuilds the graph so that every reader of an old value reads its replacement, which is a later node. The node order
// changes, except for the leaves. `ids` are updated. made_for: for each node, the node whose tangents it computes, or
// itself.
Graph with_replaced(const Graph& g, const std::vector<Replaced>& replaced, const std::vector<std::uint32_t>& made_for,
                    std::map<Value, Value>& ids) {
  const ValueSlots slot(g);
  std::vector<Value> now(slot.size());
  for (const Replaced& v : replaced) now[slot(v.old)] = v.now;
  const auto read = [&](Value v) { return now[slot(v)].node.valid() ? now[slot(v)] : v; };
  Graph out = copy_shell(g);
  out.reserve(g.num_nodes());
  std::vector<NodeId> made(g.num_nodes());
  const auto copy = [&](std::uint32_t i) {
    Node n = g.nodes()[i];
    for (Value& v : n.inputs) v = Value(made[read(v).node.index], read(v).result);
    made[i] = out.add_node(std::move(n));
  };
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (g.nodes()[i].inputs.empty() && !is_ordered(g.nodes()[i].op)) copy(i);
  std::size_t edges = 0;
  for (const Node& n : g.nodes()) edges += n.inputs.size();
  // Ordered ops keep their order. Ordered ops of tangents stay next to the op whose tangents they compute: in its
  // place, an op reads only nodes made for it and for earlier ops. An ordered op with a replacement would otherwise
  // appear twice.
  const auto gone = [&](NodeId id) {
    const Node& n = g.node(id);
    for (std::uint32_t r = 0; r < n.num_results(); ++r)
      if (!now[slot(Value(id, r))].node.valid()) return false;
    return is_ordered(n.op);
  };
  std::vector<NodeId> ordered = g.ordered(), before_it(g.num_nodes());  // before_it: for ordered ops
  std::ranges::stable_sort(ordered, {}, [&](NodeId id) { return made_for[id.index]; });
  NodeId last;
  for (NodeId id : ordered)
    if (!gone(id)) before_it[id.index] = last, last = id;
  edges += ordered.size();
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    if (gone(NodeId{i})) continue;
    open.push_back(i);
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      const std::size_t before = open.size();
      if (!made[at].valid())
        for (Value v : g.nodes()[at].inputs)
          if (const NodeId from = read(v).node; !made[from.index].valid()) open.push_back(from.index);
      if (const NodeId from = before_it[at]; !made[at].valid() && from.valid() && !made[from.index].valid())
        open.push_back(from.index);
      check(open.size() <= edges + 1, "results and tangents wait for each other");
      if (open.size() != before) continue;
      open.pop_back();
      if (!made[at].valid()) copy(at);
    }
  }
  const auto value = [&](Value v) { return Value(made[read(v).node.index], read(v).result); };
  copy_ends(out, g, value);
  for (auto& [from, to] : ids) to = value(to);
  return out;
}

// jvp before pruning. With `join`, ops with bodies compute results and tangents together. Results may then be values of
// the tangent computation.
TransformResult run_jvp(const Graph& forward, const std::vector<Wrt>& tangent_for, bool join) {
  constexpr std::string_view who = "jvp";
  if (forward.outputs().empty())
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": graph '", forward.name(), "' has no outputs"),
                "call set_outputs first");
  std::vector<Value> roots;
  for (const Wrt& w : tangent_for) {
    roots.push_back(walk::resolve_leaf(forward, w, who));
    walk::require_inexact(forward, roots.back(), who);
  }
  walk::Prepared p =
      walk::prepare(forward, std::move(roots), true, [](const OpDef& def) { return walk::state_of(def.jvp); });
  Graph& g = p.graph;
  ValueSlots slot(g);
  const std::size_t num_forward = g.num_nodes();
  std::vector<Expr> tangents(slot.size());  // invalid: zero
  std::vector<Replaced> replaced;
  std::vector<std::uint32_t> made_for(num_forward);
  std::iota(made_for.begin(), made_for.end(), 0u);
  std::vector<std::string> added;
  for (Value v : p.roots) {
    if (tangents[slot(v)].valid())
      throw Error(ErrorCode::InvalidArgument, concat_text(who, ": '", g.leaf_name(v.node), "' is listed twice"),
                  "list each leaf once");
    added.push_back(walk::fresh_leaf_name(g, concat_text("tangent_", g.leaf_name(v.node))));
    const Shape shape = g.shape(v);
    tangents[slot(v)] = g.input(added.back(), shape);
  }

  // A value that no output reads needs neither a tangent nor a rule that gives one: a primal computed beside its
  // derivative.
  std::vector<bool> read(num_forward, false);
  for (Value v : g.outputs()) read[v.node.index] = true;
  for (std::size_t i = num_forward; i-- > 0;)
    if (read[i])
      for (Value v : g.nodes()[i].inputs) read[v.node.index] = true;
  for (std::size_t i = 0; i < num_forward; ++i) {
    if (!read[i]) continue;
    NodeId id{static_cast<std::uint32_t>(i)};
    const Node node = g.node(id);  // a copy: rules append nodes
    std::vector<Expr> inputs, outputs, node_tangents;
    bool moved = false, differentiable = false;
    for (Value v : node.inputs) {
      inputs.push_back(g.expr(v));
      node_tangents.push_back(tangents[slot(v)]);
      moved = moved || node_tangents.back().valid();
    }
    for (std::uint32_t k = 0; k < node.num_results(); ++k) {
      outputs.push_back(g.expr(Value(id, k)));
      differentiable = differentiable || is_inexact(node.shape(k).dtype());
    }
    if (!moved || !differentiable) continue;
    const OpDef& def = op_def(node.op);
    if (!def.jvp.has())
      walk::throw_no_rule(g, id, who, "has no forward-mode derivative", def.jvp.reason(), walk::kAvoidOp);
    const std::size_t first = g.num_nodes();
    made_for.resize(first, 0);  // inputs
    JvpContext c(g, node.op, inputs, outputs, node.shapes, node_tangents);
    def.jvp(c);
    made_for.resize(g.num_nodes(), id.index);
    walk::stamp(g, first, id, who);
    for (std::uint32_t k = 0; k < node.num_results(); ++k) {
      if (is_inexact(node.shape(k).dtype())) tangents[slot(Value(id, k))] = c.result_tangents()[k];
      if (Expr e = c.replaced_outputs()[k]; join && e.valid()) replaced.push_back({Value(id, k), e.value()});
    }
  }

  std::vector<Value> outputs = g.outputs();
  const std::size_t num_primals = outputs.size();
  for (std::size_t i = 0; i < num_primals; ++i) {
    Expr t = tangents[slot(outputs[i])];
    if (!t.valid()) {
      const Shape shape = g.shape(outputs[i]);
      t = g.constant(Tensor::scalar(shape.dtype(), 0));
      if (shape.rank() > 0) t = g.expand(t, shape.dims());
    }
    outputs.push_back(t.value());
  }
  g.set_outputs(std::move(outputs));
  if (replaced.empty()) return {std::move(g), std::move(p.ids), std::move(added)};
  made_for.resize(g.num_nodes(), 0);  // zeros
  Graph joined = with_replaced(g, replaced, made_for, p.ids);
  return {std::move(joined), std::move(p.ids), std::move(added)};
}

}  // namespace

TransformResult jvp(const Graph& forward, const std::vector<Wrt>& tangent_for) {
  TransformResult r = run_jvp(forward, tangent_for, true);
  r.graph = walk::prune(r.graph, r.ids);
  return r;
}

Linearized linearize(const Graph& forward, const std::vector<Wrt>& tangent_for) {
  for (NodeId id : forward.ordered())
    if (op_def(forward.node(id).op).bodies == BodyKind::Programs)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("linearize: ", op_text_name(forward.node(id).op),
                                         " has an ordered op, which would run in both parts"),
                             node_where(forward, id), "use jvp, which runs it once"});
  TransformResult both = run_jvp(forward, tangent_for, false);
  both.graph = walk::prune(both.graph, both.ids);
  const Graph& g = both.graph;
  const std::size_t num_primals = forward.outputs().size();
  const std::vector<Value>& outputs = g.outputs();
  std::vector<Value> roots;
  for (const std::string& name : both.added_inputs) roots.emplace_back(g.find_leaf(OpKind::Input, name));
  const std::vector<bool> by_slot = walk::dependents(g, roots, false);
  std::vector<bool> weights = param_only_nodes(g);
  for (const Wrt& w : tangent_for) weights[both.ids.at(walk::resolve(forward, w, "linearize")).node.index] = false;
  ValueSlots slot(g);
  auto moves = [&](std::uint32_t i) { return bool(by_slot[slot(Value(NodeId{i}))]); };

  // The nodes that the tangents need, back to the values that are constant along the tangents. Values of weights alone
  // are recomputed from the weights.
  std::vector<bool> needed(g.num_nodes(), false);
  for (std::size_t k = num_primals; k < outputs.size(); ++k) needed[outputs[k].node.index] = true;
  for (std::uint32_t i = static_cast<std::uint32_t>(g.num_nodes()); i-- > 0;)
    if (needed[i] && (moves(i) || weights[i]))
      for (Value v : g.nodes()[i].inputs) needed[v.node.index] = true;

  Linearized out{{copy_shell(g, forward.name()), {}, {}}, copy_shell(g, forward.name()), {}, both.added_inputs};
  Graph& primal = out.primal.graph;
  std::map<Value, Value> in_primal, in_linear;
  for (Value v : roots) in_linear.emplace(v, Value());  // after the residuals
  std::vector<Value> residuals;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const NodeId id{i};
    if (!moves(i)) walk::copy_node(primal, g, id, in_primal);
    if (!needed[i] || moves(i) || weights[i]) continue;
    for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r) {
      const Value v(id, r);
      out.residuals.push_back(walk::fresh_leaf_name(g, concat_text("residual_", residuals.size())));
      in_linear.emplace(v, out.linear.input(out.residuals.back(), g.shape(v)).value());
      residuals.push_back(v);
    }
  }
  for (std::size_t k = 0; k < roots.size(); ++k)
    in_linear[roots[k]] = out.linear.input(out.tangents[k], g.shape(roots[k])).value();
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (needed[i] && !in_linear.contains(Value(NodeId{i}))) walk::copy_node(out.linear, g, NodeId{i}, in_linear);

  std::vector<Value> primals, tangents;
  for (std::size_t k = 0; k < num_primals; ++k) primals.push_back(in_primal.at(outputs[k]));
  for (Value v : residuals) primals.push_back(in_primal.at(v));
  for (std::size_t k = num_primals; k < outputs.size(); ++k) tangents.push_back(in_linear.at(outputs[k]));
  primal.set_outputs(std::move(primals));
  out.linear.set_outputs(std::move(tangents));
  copy_inner_ends(primal, g, [&](Value v) { return in_primal.at(v); });
  out.primal.ids = walk::compose(both.ids, in_primal);
  primal = walk::prune(primal, out.primal.ids);
  return out;
}

}  // namespace rlx
