// hoist-invariants: moves loop-invariant computations out of loops.
#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::size_t kSmallBytes = 4 * 1024;  // up to this size a result may be larger than its operands

// The values that leave a body: results of nodes become invariants, and casts of rows become xs.
struct Leaving {
  std::vector<Value> invariants;
  std::vector<NodeId> casts;
  bool any() const { return !invariants.empty() || !casts.empty(); }
};

bool stays_static(const Node& n) {
  return std::all_of(n.shapes.begin(), n.shapes.end(), [](const Shape& s) { return s.is_static(); });
}

class Body {
 public:
  Body(const Graph& body, const LoopParts& p) : g_(body), inputs_(body.leaves(OpKind::Input)), p_(p) {}

  Leaving find() {
    classify();
    Leaving out;
    const auto allowed_loss = [&](Value v) {
      // A view stays in the body. It costs nothing there, and may be much larger than its operand.
      while (fixed_[v.node.index] && op_def(g_.node(v.node).op).is_view()) v = g_.node(v.node).inputs[0];
      const Node& n = g_.node(v.node);
      if (!fixed_[v.node.index] || op_def(n.op).is_leaf() || !worth(n)) return;
      if (std::find(out.invariants.begin(), out.invariants.end(), v) == out.invariants.end())
        out.invariants.push_back(v);
    };
    for (const Node& n : g_.nodes())
      if (!fixed_[static_cast<std::size_t>(&n - g_.nodes().data())])
        for (Value v : n.inputs) allowed_loss(v);
    for (Value v : g_.outputs()) allowed_loss(v);
    std::sort(out.invariants.begin(), out.invariants.end());
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      if (n.kind() != OpKind::Cast || !stays_static(n)) continue;
      const auto x = std::find(inputs_.begin(), inputs_.end(), n.inputs[0].node);
      if (x == inputs_.end() || static_cast<std::size_t>(x - inputs_.begin()) < p_.first_x()) continue;
      if (n.shape().size_bytes() <= g_.shape(n.inputs[0]).size_bytes()) out.casts.push_back(NodeId{i});
    }
    return out;
  }

  // Copies a value that leaves, with its producers, into `to`. `operands` stand for the inputs.
  Expr copy_to(Graph& to, Value v, const std::vector<Expr>& operands, std::vector<Expr>& made) const {
    std::vector<NodeId> work{v.node};
    made.resize(g_.num_nodes());
    // An operand may be any result of its node. A copied node stands for all its results.
    const auto now = [&](Value old) {
      const Expr& e = made[old.node.index];
      return g_.node(old.node).kind() == OpKind::Input ? e : e.result(old.result);
    };
    while (!work.empty()) {
      const NodeId id = work.back();
      const Node& n = g_.node(id);
      bool ready = true;
      for (Value in : n.inputs)
        if (!made[in.node.index].valid()) work.push_back(in.node), ready = false;
      if (!ready) continue;
      work.pop_back();
      if (made[id.index].valid()) continue;
      if (n.kind() == OpKind::Input) {
        made[id.index] =
            operands[static_cast<std::size_t>(std::find(inputs_.begin(), inputs_.end(), id) - inputs_.begin())];
        continue;
      }
      std::vector<Value> in;
      for (Value from : n.inputs) in.push_back(now(from).value());
      made[id.index] = to.add(n.op, std::move(in), n.origin.loc);
      to.set_label(made[id.index].value().node, n.origin.label);
    }
    return now(v);
  }

  // The body with a new Input for each hoisted value: invariants follow the body's own invariants, casts of xs follow
  // the xs.
  Subgraph without(const Leaving& l) const {
    Graph out = copy_shell(g_);
    std::vector<Value> map(ValueSlots(g_).size());
    const ValueSlots slot(g_);
    std::size_t names = 0;
    const auto fresh = [&](const Shape& s) {
      std::string name;
      do name = concat_text("hoisted", names++);
      while (g_.find_leaf(OpKind::Input, name).valid());
      return out.input(name, s).value();
    };
    const auto keep = [&](std::size_t first, std::size_t end) {
      for (std::size_t k = first; k < end; ++k) map[slot(inputs_[k])] = Value(out.add_node(Node(g_.node(inputs_[k]))));
    };
    keep(0, p_.invariants);
    for (Value v : l.invariants) map[slot(v)] = fresh(g_.shape(v));
    keep(p_.invariants, inputs_.size());
    for (NodeId id : l.casts) map[slot(id)] = fresh(g_.shape(id));
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      Node n = g_.nodes()[i];
      if (n.kind() == OpKind::Input) continue;
      for (Value& v : n.inputs) v = map[slot(v)];
      const std::uint32_t results = n.num_results();
      const NodeId made = out.add_node(std::move(n));
      for (std::uint32_t r = 0; r < results; ++r)
        if (Value& to = map[slot(Value(NodeId{i}, r))]; !to.node.valid()) to = Value(made, r);
    }
    copy_ends(out, g_, [&](Value v) { return map[slot(v)]; });
    return std::make_shared<const Graph>(drop_dead(std::move(out)));
  }

 private:
  // Marks nodes that are loop-invariant and not constant.
  void classify() {
    fixed_.assign(g_.num_nodes(), false);
    std::vector<bool> constant(g_.num_nodes(), false);
    for (std::size_t k = 0; k < p_.invariants; ++k) fixed_[inputs_[k].index] = true;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      const Node& n = g_.nodes()[i];
      if (n.kind() == OpKind::Input) continue;
      constant[i] = std::all_of(n.inputs.begin(), n.inputs.end(), [&](Value v) { return constant[v.node.index]; });
      // A nested loop may take any time. It would run for nothing when the outer loop has no iteration.
      const bool stays =
          is_ordered(n.op) || n.kind() == OpKind::OptimizationBarrier || op_def(n.op).bodies == BodyKind::Programs;
      fixed_[i] = !constant[i] && stays_static(n) && !stays &&
                  std::all_of(n.inputs.begin(), n.inputs.end(),
                              [&](Value v) { return fixed_[v.node.index] || constant[v.node.index]; });
    }
  }
  bool worth(const Node& n) const {
    std::size_t from = 0, to = 0;
    for (Value v : n.inputs) from += g_.shape(v).is_static() ? g_.shape(v).size_bytes() : 0;
    for (const Shape& s : n.shapes) to += s.size_bytes();
    return to <= std::max(kSmallBytes, from);
  }

  const Graph& g_;
  std::vector<NodeId> inputs_;
  LoopParts p_;
  std::vector<bool> fixed_;
};

// The operands with the values that left: new invariants after the invariants, new xs at the end.
std::vector<Value> with_more(const std::vector<Expr>& old, const LoopParts& p, const std::vector<Expr>& invariants,
                             const std::vector<Expr>& xs) {
  std::vector<Value> out;
  const auto add = [&](auto first, auto last) {
    for (auto it = first; it != last; ++it) out.push_back(it->value());
  };
  const auto middle = old.begin() + static_cast<std::ptrdiff_t>(p.invariants);
  add(old.begin(), middle);
  add(invariants.begin(), invariants.end());
  add(middle, old.end());
  add(xs.begin(), xs.end());
  return out;
}

Replacement hoist(Rebuilder& r, NodeId id) {
  const Node& n = r.source().node(id);
  const std::optional<LoopParts> p = loop_parts(n.op);
  if (!p) return std::nullopt;
  const auto* scan = n.op.get_if<ops::Scan>();
  const auto* loop = n.op.get_if<ops::While>();
  Body body(scan ? *scan->body : *loop->body, *p);
  const Leaving leaving = body.find();
  if (!leaving.any()) return std::nullopt;
  const std::vector<Expr> operands = r.operands(id);
  std::vector<Expr> made, invariants, xs;
  for (Value v : leaving.invariants) invariants.push_back(body.copy_to(r.graph(), v, operands, made));
  const Graph& old = scan ? *scan->body : *loop->body;
  for (NodeId cast : leaving.casts) {
    const std::vector<NodeId> inputs = old.leaves(OpKind::Input);
    const auto x = std::find(inputs.begin(), inputs.end(), old.node(cast).inputs[0].node);
    xs.push_back(r.graph().add(old.node(cast).op, {operands[static_cast<std::size_t>(x - inputs.begin())]}));
    r.graph().set_label(xs.back().value().node, old.node(cast).origin.label);
  }
  OpBox form = n.op;
  const auto more = static_cast<std::int64_t>(invariants.size());
  if (scan) {
    ops::Scan op = *scan;
    op.invariants += more;
    op.body = body.without(leaving);
    form = std::move(op);
  } else {
    ops::While op = *loop;
    op.invariants += more;
    op.body = body.without(leaving);
    op.cond = [&] {  // it takes the same operands
      const Graph& c = *loop->cond;
      Graph out = copy_shell(c);
      std::vector<NodeId> map(c.num_nodes());
      const std::vector<NodeId> inputs = c.leaves(OpKind::Input);
      const auto keep = [&](std::size_t first, std::size_t end) {
        for (std::size_t k = first; k < end; ++k) map[inputs[k].index] = out.add_node(Node(c.node(inputs[k])));
      };
      keep(0, p->invariants);
      for (std::size_t h = 0, name = 0; h < leaving.invariants.size(); ++name)
        if (std::string text = concat_text("hoisted", name); !c.find_leaf(OpKind::Input, text).valid())
          out.input(text, old.shape(leaving.invariants[h++]));
      keep(p->invariants, inputs.size());
      for (std::uint32_t i = 0; i < c.num_nodes(); ++i) {
        Node copy = c.nodes()[i];
        if (copy.kind() == OpKind::Input) continue;
        for (Value& v : copy.inputs) v = Value(map[v.node.index], v.result);
        map[i] = out.add_node(std::move(copy));
      }
      copy_ends(out, c, [&](Value v) { return Value(map[v.node.index], v.result); });
      return std::make_shared<const Graph>(std::move(out));
    }();
    form = std::move(op);
  }
  const Expr first = r.graph().add(std::move(form), with_more(operands, *p, invariants, xs), n.origin.loc);
  std::vector<Expr> results;
  for (std::uint32_t k = 0; k < n.num_results(); ++k) results.push_back(first.result(k));
  return results;
}

std::optional<Graph> run_hoist_invariants(const Graph& g, const PassContext&) {
  if (std::none_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) { return loop_parts(n.op).has_value(); }))
    return std::nullopt;
  return replace_nodes(g, hoist_invariants.name, hoist);
}

}  // namespace

const Pass hoist_invariants{
    "hoist-invariants",
    "Computes values of a loop body that depend only on invariants before the loop, and casts xs before the loop where "
    "that does not make them larger. So weights that are used in bodies are prepared once. Views, results larger than "
    "their operands, ordered ops, inner loops and values through a barrier stay. Always legal.",
    run_hoist_invariants};

}  // namespace rlx
