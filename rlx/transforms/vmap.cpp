// Batching of graphs.
#include "rlx/transforms/vmap.h"

#include <numeric>

#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/transforms/walk.h"

namespace rlx {
namespace {

Expr moved_axis(Graph& g, Expr x, std::int64_t from, std::int64_t to) {
  if (from == to) return x;
  std::vector<std::int64_t> perm(static_cast<std::size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return g.transpose(x, perm);
}

}  // namespace

TransformResult vmap(const Graph& forward, const InAxes& in_axes, const Dim& batch, const OutAxes& out_axes) {
  constexpr std::string_view who = "vmap";
  if (!out_axes.empty() && out_axes.size() != forward.outputs().size())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(who, ": ", out_axes.size(), " out_axes for ", forward.outputs().size(), " outputs"),
                "give one for each output, or none");
  std::vector<Value> roots;
  for (const auto& [name, axis] : in_axes) {
    roots.push_back(walk::resolve_leaf(forward, Wrt(name), who));
    if (forward.node(roots.back().node).kind() == OpKind::State)
      throw Error(ErrorCode::Unsupported, concat_text(who, ": state '", name, "' cannot be batched"),
                  "make the state an input and an output");
  }
  walk::Prepared p =
      walk::prepare(forward, std::move(roots), false, [](const OpDef& def) { return walk::state_of(def.batch); });
  const Graph& from = p.graph;
  Graph g = copy_shell(from, forward.name());
  for (const std::string& s : batch.symbols()) (void)g.symbol(s);  // an existing symbol of the graph keeps its bounds

  ValueSlots slot(from);
  std::vector<Value> values(slot.size());
  std::vector<bool> batched(slot.size(), false);
  for (std::uint32_t i = 0; i < from.num_nodes(); ++i) {
    NodeId id{i};
    const Node& node = from.node(id);
    if (node.kind() == OpKind::Input || node.kind() == OpKind::Param) {
      if (auto it = in_axes.find(from.leaf_name(id)); it != in_axes.end()) {
        const std::int64_t axis =
            normalize_axis(it->second, node.shape().rank() + 1, concat_text(who, ": in_axes of '", it->first, "'"));
        Dims dims = node.shape().dims();
        dims.insert(dims.begin() + axis, batch);
        Shape shape(std::move(dims), node.shape().dtype());
        Expr leaf = node.kind() == OpKind::Input
                        ? g.input(it->first, shape, node.origin.loc)
                        : g.param(it->first, shape, node.op.as<ops::Param>().mode, node.origin.loc);
        g.origin(leaf.value().node) = node.origin;
        values[slot(id)] = moved_axis(g, leaf, axis, 0).value();
        batched[slot(id)] = true;
        continue;
      }
    }
    bool any = false;
    for (Value v : node.inputs) any = any || batched[slot(v)];
    if (!any) {
      Node copy = node;
      for (Value& v : copy.inputs) v = values[slot(v)];
      NodeId made = g.add_node(std::move(copy));
      for (std::uint32_t r = 0; r < node.num_results(); ++r) values[slot(Value(id, r))] = Value(made, r);
      continue;
    }
    const OpDef& def = op_def(node.op);
    if (!def.batch.has())
      walk::throw_no_rule(from, id, who, "cannot be batched", def.batch.reason(),
                          "run the graph once for each example, or give the op a batch rule");
    std::vector<Expr> inputs;
    std::vector<bool> is_batched;
    for (Value v : node.inputs) {
      inputs.push_back(g.expr(values[slot(v)]));
      is_batched.push_back(batched[slot(v)]);
    }
    const std::size_t first = g.num_nodes();
    BatchContext c(g, node.op, inputs, node.shapes, is_batched, batch);
    def.batch(c);
    for (std::size_t k = first; k < g.num_nodes(); ++k) {
      Origin& o = g.origin(NodeId{static_cast<std::uint32_t>(k)});
      o = node.origin;
      o.pass = who;
      o.from.push_back(concat_text(id, " ", op_text_name(node.op)));
    }
    for (std::uint32_t r = 0; r < node.num_results(); ++r) {
      Expr e = c.results()[r];
      Dims expected{batch};
      expected.insert(expected.end(), node.shape(r).dims().begin(), node.shape(r).dims().end());
      check_rule(e.valid(), node.op, "batch rule of ", def.name, " did not set result ", r);
      check_rule(e.shape() == Shape(expected, node.shape(r).dtype()), node.op, "batch rule of ", def.name, " gives ",
                 e.shape(), " for result ", r, " of ", node.shape(r));
      values[slot(Value(id, r))] = e.value();
      batched[slot(Value(id, r))] = true;
    }
  }

  std::vector<Value> outputs;
  for (std::size_t i = 0; i < from.outputs().size(); ++i) {
    Value v = from.outputs()[i];
    Expr e = g.expr(values[slot(v)]);
    std::optional<std::int64_t> to = out_axes.empty() ? std::optional<std::int64_t>(0) : out_axes[i];
    if (!to && batched[slot(v)])
      throw Error(Diagnostic{ErrorCode::InvalidArgument,
                             concat_text(who, ": output ", i, " depends on the batch, so it needs an axis"),
                             node_where(from, v.node), "set its entry of out_axes to a number"});
    if (to) {
      if (!batched[slot(v)]) {
        Dims dims{batch};
        dims.insert(dims.end(), e.shape().dims().begin(), e.shape().dims().end());
        e = g.expand(e, dims);
      }
      e = moved_axis(g, e, 0, normalize_axis(*to, e.rank(), concat_text(who, ": out_axes of output ", i)));
    }
    outputs.push_back(e.value());
  }
  for (const Graph::StateUpdate& u : from.state_updates()) {
    if (batched[slot(u.value)])
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text(who, ": the update of state '", u.name, "' depends on the batch"),
                             node_where(from, u.value.node), "make the state an input and an output"});
  }
  for (const auto& [symbol, source] : from.symbol_sources())
    if (batched[slot(source)])
      throw Error(Diagnostic{
          ErrorCode::Unsupported,
          concat_text(who, ": symbol '", symbol, "' depends on the batch: examples would differ in shape"),
          node_where(from, source.node), "compute it from values without a batch axis, or pad to its largest value"});
  copy_inner_ends(g, from, [&](Value v) { return values[slot(v)]; });
  g.set_outputs(std::move(outputs));
  std::map<Value, Value> ids;
  for (const auto& [before, middle] : p.ids) ids.emplace_hint(ids.end(), before, values[slot(middle)]);
  Graph pruned = walk::prune(g, ids);
  return {std::move(pruned), std::move(ids), {}};
}

}  // namespace rlx
