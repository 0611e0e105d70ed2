// The forward-mode walker.
#include "rlx/transforms/jvp.h"

#include "rlx/transforms/walk.h"

namespace rlx {

TransformResult jvp(const Graph& forward, const std::vector<Wrt>& tangent_for) {
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
  walk::Slots slot(g);
  const std::size_t num_forward = g.num_nodes();
  std::vector<Expr> tangents(slot.size());  // invalid: zero
  std::vector<std::string> added;
  for (Value v : p.roots) {
    if (tangents[slot(v)].valid())
      throw Error(ErrorCode::InvalidArgument, concat_text(who, ": '", g.leaf_name(v.node), "' is named twice"),
                  "name each leaf once");
    added.push_back(walk::fresh_leaf_name(g, concat_text("tangent_", g.leaf_name(v.node))));
    const Shape shape = g.shape(v);
    tangents[slot(v)] = g.input(added.back(), shape);
  }

  for (std::size_t i = 0; i < num_forward; ++i) {
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
    const OpDef& def = op_def(node.kind());
    if (!def.jvp.has()) walk::throw_no_rule(g, id, who, "has no forward-mode derivative", def.jvp.reason());
    const std::size_t first = g.num_nodes();
    JvpContext c(g, node.op, inputs, outputs, node.shapes, node_tangents);
    def.jvp(c);
    walk::stamp(g, first, id, who);
    for (std::uint32_t k = 0; k < node.num_results(); ++k)
      if (is_inexact(node.shape(k).dtype())) tangents[slot(Value(id, k))] = c.result_tangents()[k];
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
  Graph pruned = walk::prune(g, p.ids);
  return {std::move(pruned), std::move(p.ids), std::move(added)};
}

}  // namespace rlx
