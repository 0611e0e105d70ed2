// Reverse-mode differentiation.
#include "rlx/transforms/reverse.h"

#include <algorithm>

#include "rlx/ir/rewrite/roots.h"
#include "rlx/transforms/reverse_walk.h"

namespace rlx {
namespace walk {
namespace {

// The replacement of a node, with residuals after its results.
struct Stand {
  OpBox op;                              // the replacement op
  std::vector<std::uint32_t> results;    // indices of the node's results
  std::vector<std::uint32_t> residuals;  // indices of the residuals
  std::shared_ptr<const void> notes;
};

// The values from which an output of `seeded` is reached through float and complex values, and not only through
// stop_gradient.
std::vector<bool> reaching(const Graph& g, const ValueSlots& slot, const std::vector<Value>& seeded) {
  std::vector<bool> reaches(slot.size(), false);
  for (Value v : seeded) reaches[slot(v)] = is_inexact(g.shape(v).dtype());
  for (std::uint32_t i = static_cast<std::uint32_t>(g.num_nodes()); i-- > 0;) {
    const Node& n = g.nodes()[i];
    if (n.kind() == OpKind::StopGradient) continue;  // what lies behind it needs no rule: it may be a loop without one
    bool any = false;
    for (std::uint32_t r = 0; r < n.num_results(); ++r) any = any || reaches[slot(Value(NodeId{i}, r))];
    if (!any) continue;
    for (Value v : n.inputs)
      if (is_inexact(g.shape(v).dtype())) reaches[slot(v)] = true;
  }
  return reaches;
}

using Stands = std::map<std::uint32_t, Stand>;

Value moved(Value v, const Stands& stands) {
  const auto it = stands.find(v.node.index);
  return it == stands.end() ? v : Value(v.node, it->second.results[v.result]);
}

// Calls the rule. An error of the rule gets the node.
Augmented asked_of(const OpDef& def, const AugmentContext& c, const Graph& g, NodeId id) {
  try {
    return def.augment(c);
  } catch (const Error& e) {
    if (!e.diagnostic().where.empty()) throw;
    Diagnostic d = e.diagnostic();
    d.where = node_where(g, id);
    throw Error(std::move(d));
  }
}

Stand stand_for(const Node& node, const Augmented& form, const Shapes& results) {
  Stand s{node.op, form.results, {}, form.notes};
  if (s.results.empty())
    for (std::uint32_t r = 0; r < node.num_results(); ++r) s.results.push_back(r);
  std::vector<bool> taken(results.size(), false);
  bool same = s.results.size() == node.shapes.size();
  for (std::size_t r = 0; same && r < s.results.size(); ++r) {
    same = s.results[r] < results.size() && !taken[s.results[r]] && results[s.results[r]] == node.shapes[r];
    if (same) taken[s.results[r]] = true;
  }
  check_rule(same, node.op, "the augment rule of ", op_text_name(node.op), " returns other results than the op");
  for (std::uint32_t r = 0; r < results.size(); ++r)
    if (!taken[r]) s.residuals.push_back(r);
  return s;
}

// Replaces every op on the path that has an augment rule by an op that also returns residuals, in `p.graph`. Node ids
// stay.
Stands augment(Prepared& p, const std::vector<Value>& seeded) {
  const Graph& old = p.graph;
  Stands stands;
  const bool asked =
      std::any_of(old.nodes().begin(), old.nodes().end(), [](const Node& n) { return op_def(n.op).augment.has(); });
  if (!asked) return stands;
  const ValueSlots slot(old);
  const std::vector<bool> active = dependents(old, p.roots, true), reaches = reaching(old, slot, seeded);
  Graph next = copy_shell(old);
  next.reserve(old.num_nodes());
  for (std::uint32_t i = 0; i < old.num_nodes(); ++i) {
    Node node = old.nodes()[i];
    const OpDef& def = op_def(node.op);
    if (def.augment.has()) {
      std::vector<bool> wanted, reached;
      std::vector<Shape> shapes;
      for (Value v : node.inputs) {
        shapes.push_back(old.shape(v));
        wanted.push_back(active[slot(v)] && is_inexact(shapes.back().dtype()));
      }
      for (std::uint32_t r = 0; r < node.num_results(); ++r) {
        const std::uint32_t at = slot(Value(NodeId{i}, r));
        reached.push_back(active[at] && reaches[at]);
      }
      const auto any = [](const std::vector<bool>& m) { return std::find(m.begin(), m.end(), true) != m.end(); };
      if (any(wanted) && any(reached)) {
        Augmented form = asked_of(def, AugmentContext(node.op, shapes, node.shapes, wanted, reached), old, NodeId{i});
        Shapes results = infer_shapes(form.op, shapes).value();
        stands.emplace(i, stand_for(node, form, results));
        node.op = std::move(form.op);
        node.shapes = std::move(results);
      }
    }
    for (Value& v : node.inputs) v = moved(v, stands);
    next.add_node(std::move(node));
  }
  if (stands.empty()) return stands;
  copy_ends(next, old, [&](Value v) { return moved(v, stands); });
  for (Value& v : p.roots) v = moved(v, stands);
  for (auto& [from, to] : p.ids) to = moved(to, stands);
  p.graph = std::move(next);
  return stands;
}

// The cotangent of an output is an input, and inputs cannot have an extent that the graph computes.
void require_known_extents(const Graph& g, std::size_t output, std::string_view who) {
  const Value v = g.outputs()[output];
  for (const Dim& d : g.shape(v).dims())
    for (const std::string& name : d.symbols())
      if (g.symbol_sources().contains(name))
        throw Error(Diagnostic{
            ErrorCode::Unsupported,
            concat_text(who, ": output ", output, " is ", g.shape(v), ", and the graph computes the extent '", name,
                        "', so its cotangent cannot be an input"),
            node_where(g, v.node),
            "remove it from the outputs of the graph to differentiate, or make its extent static with slice or pad"});
}

}  // namespace

Reverse run_reverse(const Graph& forward, const std::vector<Wrt>& wrt, const std::vector<bool>& seeded_outputs,
                    bool single_seed, Seed seed, std::string_view who) {
  if (forward.outputs().empty())
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": graph '", forward.name(), "' has no outputs"),
                "call set_outputs first");
  std::vector<Value> roots;
  for (const Wrt& w : wrt) {
    roots.push_back(resolve(forward, w, who));
    require_inexact(forward, roots.back(), who);
  }
  Reverse r;
  r.forward = prepare(forward, std::move(roots), true, [](const OpDef& def) { return state_of(def.vjp); });
  Graph& g = r.forward.graph;
  std::vector<Value> seeded;
  for (std::size_t i = 0; i < seeded_outputs.size(); ++i)
    if (seeded_outputs[i]) seeded.push_back(g.outputs()[i]);
  const Stands stands = augment(r.forward, seeded);
  r.outputs = g.outputs();
  ValueSlots slot(g);
  const std::vector<bool> active = dependents(g, r.forward.roots, true);
  const std::size_t num_forward = g.num_nodes();
  std::vector<Expr> cotangents(slot.size());
  auto add_to = [&](Value v, Expr ct) {
    Expr& sum = cotangents[slot(v)];
    sum = sum.valid() ? g.add(sum, ct) : ct;
  };

  for (std::size_t i = 0; i < r.outputs.size(); ++i) {
    const Shape shape = g.shape(r.outputs[i]);
    if (!seeded_outputs[i] || !is_inexact(shape.dtype())) continue;
    Expr ct;
    if (seed == Seed::One) {
      Expr one = g.scalar(1, shape.dtype());
      ct = shape.rank() == 0 ? one : g.reshape(one, shape.dims());
    } else {
      require_known_extents(g, i, who);
      std::string name = single_seed ? std::string("d_output") : concat_text("d_output_", i);
      r.added.push_back(walk::fresh_leaf_name(g, name));
      ct = g.input(r.added.back(), shape);
    }
    if (active[slot(r.outputs[i])]) add_to(r.outputs[i], ct);
  }

  for (std::size_t i = num_forward; i-- > 0;) {
    NodeId id{static_cast<std::uint32_t>(i)};
    const Node node = g.node(id);  // a copy: rules append nodes
    bool wanted = false;
    for (Value v : node.inputs) wanted = wanted || active[slot(v)];
    bool reached = false;
    std::vector<Expr> node_cotangents, inputs, outputs;
    const auto stand = stands.find(id.index);
    const bool stands_for = stand != stands.end();
    const OpBox& op = stands_for ? stand->second.op : node.op;
    std::vector<Shape> result_shapes;
    for (std::uint32_t k = 0; k < (stands_for ? stand->second.results.size() : node.shapes.size()); ++k) {
      const Value result(id, stands_for ? stand->second.results[k] : k);
      node_cotangents.push_back(cotangents[slot(result)]);
      outputs.push_back(g.expr(result));
      result_shapes.push_back(g.shape(result));
      reached = reached || node_cotangents.back().valid();
    }
    if (!wanted || !reached) continue;
    const OpDef& def = op_def(op);
    if (!def.vjp.has()) throw_no_rule(g, id, who, "has no reverse-mode derivative", def.vjp.reason(), kAvoidOp);
    for (Value v : node.inputs) inputs.push_back(g.expr(v));
    const std::size_t first = g.num_nodes();
    std::vector<Expr> residuals;
    if (stands_for)
      for (std::uint32_t k : stand->second.residuals) residuals.push_back(g.expr(Value(id, k)));
    VjpContext c(g, op, inputs, outputs, result_shapes, node_cotangents, residuals,
                 stands_for ? stand->second.notes.get() : nullptr);
    def.vjp(c);
    stamp(g, first, id, who);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      Expr ct = c.gradients()[k];
      if (!ct.valid() || !active[slot(node.inputs[k])]) continue;
      check_rule(ct.shape() == g.shape(node.inputs[k]), op, "derivative of ", def.name, " gives ", ct.shape(),
                 " for operand ", k, " of ", g.shape(node.inputs[k]));
      add_to(node.inputs[k], ct);
    }
  }

  for (Value v : r.forward.roots) {
    Expr ct = cotangents[slot(v)];
    if (!ct.valid()) {
      const Shape shape = g.shape(v);
      ct = g.scalar(0, shape.dtype());
      if (shape.rank() > 0) ct = g.expand(ct, shape.dims());
    }
    r.grads.push_back(ct.value());
  }
  return r;
}

}  // namespace walk

namespace {

using walk::Reverse;
using walk::Seed;

// Differentiates output 0 only, or all outputs.
Reverse run_reverse(const Graph& forward, const std::vector<Wrt>& wrt, bool first_output_only, Seed seed,
                    std::string_view who) {
  std::vector<bool> seeded(forward.outputs().size(), !first_output_only);
  if (first_output_only && !seeded.empty()) {
    walk::require_inexact(forward, forward.outputs()[0], who);
    seeded[0] = true;
  }
  return walk::run_reverse(forward, wrt, seeded, first_output_only || seeded.size() == 1, seed, who);
}

GradResult finish(Reverse r, std::vector<Value> outputs) {
  r.forward.graph.set_outputs(std::move(outputs));
  Graph pruned = walk::prune(r.forward.graph, r.forward.ids);
  return {std::move(pruned), std::move(r.forward.ids), std::move(r.added)};
}

GradResult finish_with_loss(Reverse r) {
  std::vector<Value> outputs{r.outputs[0]};
  outputs.insert(outputs.end(), r.grads.begin(), r.grads.end());
  outputs.insert(outputs.end(), r.outputs.begin() + 1, r.outputs.end());
  return finish(std::move(r), std::move(outputs));
}

}  // namespace

GradResult grad(const Graph& forward, const std::vector<Wrt>& wrt) {
  Reverse r = run_reverse(forward, wrt, true, Seed::Input, "grad");
  std::vector<Value> outputs = r.grads;
  return finish(std::move(r), std::move(outputs));
}

GradResult grad_with_loss(const Graph& forward, const std::vector<Wrt>& wrt) {
  return finish_with_loss(run_reverse(forward, wrt, true, Seed::Input, "grad_with_loss"));
}

GradResult value_and_grad(const Graph& forward, const std::vector<Wrt>& wrt) {
  if (!forward.outputs().empty()) {
    const Shape& loss = forward.shape(forward.outputs()[0]);
    if (!loss.num_elements_dim().is_static(1))
      throw Error(Diagnostic{
          ErrorCode::ShapeMismatch, concat_text("value_and_grad: the loss must have one element, got ", loss),
          node_where(forward, forward.outputs()[0].node), "reduce it, or use grad_with_loss and pass d_output"});
  }
  return finish_with_loss(run_reverse(forward, wrt, true, Seed::One, "value_and_grad"));
}

GradResult vjp(const Graph& forward, const std::vector<Wrt>& wrt) {
  Reverse r = run_reverse(forward, wrt, false, Seed::Input, "vjp");
  std::vector<Value> outputs = r.outputs;
  outputs.insert(outputs.end(), r.grads.begin(), r.grads.end());
  return finish(std::move(r), std::move(outputs));
}

}  // namespace rlx
