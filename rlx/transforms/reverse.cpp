// The reverse-mode walker.
#include "rlx/transforms/reverse.h"

#include "rlx/transforms/walk.h"

namespace rlx {
namespace {

enum class Seed { Input, One };

struct Reverse {
  walk::Prepared forward;          // the graph being extended
  std::vector<Value> outputs;      // of the forward graph, in it
  std::vector<std::string> added;  // names of the seed inputs
  std::vector<Value> grads;
};

Reverse run_reverse(const Graph& forward, const std::vector<Wrt>& wrt, bool first_output_only, Seed seed,
                    std::string_view who) {
  if (forward.outputs().empty())
    throw Error(ErrorCode::InvalidArgument, concat_text(who, ": graph '", forward.name(), "' has no outputs"),
                "call set_outputs first");
  std::vector<Value> roots;
  for (const Wrt& w : wrt) {
    roots.push_back(walk::resolve(forward, w, who));
    walk::require_inexact(forward, roots.back(), who);
  }
  Reverse r;
  r.forward = walk::prepare(forward, std::move(roots), true, [](const OpDef& def) { return walk::state_of(def.vjp); });
  Graph& g = r.forward.graph;
  r.outputs = g.outputs();
  ValueSlots slot(g);
  const std::vector<bool> active = walk::dependents(g, r.forward.roots, true);
  const std::size_t num_forward = g.num_nodes();
  std::vector<Expr> cotangents(slot.size());
  auto add_to = [&](Value v, Expr ct) {
    Expr& sum = cotangents[slot(v)];
    sum = sum.valid() ? g.add(sum, ct) : ct;
  };

  const std::size_t num_seeded = first_output_only ? 1 : r.outputs.size();
  for (std::size_t i = 0; i < num_seeded; ++i) {
    const Shape shape = g.shape(r.outputs[i]);
    if (!is_inexact(shape.dtype())) {
      if (first_output_only) walk::require_inexact(forward, forward.outputs()[0], who);
      continue;
    }
    Expr ct;
    if (seed == Seed::One) {
      Expr one = g.scalar(1, shape.dtype());
      ct = shape.rank() == 0 ? one : g.reshape(one, shape.dims());
    } else {
      std::string name =
          r.outputs.size() == 1 || first_output_only ? std::string("d_output") : concat_text("d_output_", i);
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
    for (std::uint32_t k = 0; k < node.num_results(); ++k) {
      node_cotangents.push_back(cotangents[slot(Value(id, k))]);
      outputs.push_back(g.expr(Value(id, k)));
      reached = reached || node_cotangents.back().valid();
    }
    if (!wanted || !reached) continue;
    const OpDef& def = op_def(node.op);
    if (!def.vjp.has())
      walk::throw_no_rule(g, id, who, "has no reverse-mode derivative", def.vjp.reason(), walk::kAvoidOp);
    for (Value v : node.inputs) inputs.push_back(g.expr(v));
    const std::size_t first = g.num_nodes();
    VjpContext c(g, node.op, inputs, outputs, node.shapes, node_cotangents);
    def.vjp(c);
    walk::stamp(g, first, id, who);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      Expr ct = c.gradients()[k];
      if (!ct.valid() || !active[slot(node.inputs[k])]) continue;
      check_rule(ct.shape() == g.shape(node.inputs[k]), node.op,
                 concat_text("derivative of ", def.name, " gives ", ct.shape(), " for operand ", k, " of ",
                             g.shape(node.inputs[k])));
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
          ErrorCode::ShapeMismatch, concat_text("value_and_grad: the loss is ", loss, ", not one element"),
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
