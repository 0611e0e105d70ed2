// Functions shared by the transforms.
#include "rlx/transforms/walk.h"

#include <algorithm>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx::walk {

namespace {
void finish_copy(Graph& to, const Graph& from, const std::map<Value, Value>& ids) {
  copy_ends(to, from, [&](Value v) { return ids.at(v); });
}
}  // namespace

Value resolve(const Graph& forward, const Wrt& wrt, std::string_view who) {
  if (!wrt.name().empty()) {
    NodeId found;  // an invalid id is larger than every other
    for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
      found = std::min(found, forward.find_leaf(kind, wrt.name()));
    if (found.valid()) return found;
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < forward.num_nodes(); ++i)
      if (is_named_leaf(forward.node(NodeId{i}).kind())) names.push_back(forward.leaf_name(NodeId{i}));
    throw Error(ErrorCode::NotFound,
                concat_text(who, ": graph '", forward.name(), "' has no input, param or state '", wrt.name(), "'"),
                did_you_mean(wrt.name(), names, "give an input, param or state of the graph"));
  }
  Value v = wrt.value();
  if (wrt.expr() && !wrt.expr()->belongs_to(forward))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(who, ": ", v, " belongs to graph '", wrt.expr()->graph().name(), "', not to '",
                            forward.name(), "'"),
                "give the name of a leaf, or a value of this graph");
  if (v.node.index >= forward.num_nodes() || v.result >= forward.node(v.node).num_results())
    throw Error(ErrorCode::NotFound,
                concat_text(who, ": ", v.node.valid() ? v.text() : std::string("an empty name"),
                            " is not a value of graph '", forward.name(), "'"),
                "give the name of a leaf, or a value of this graph");
  return v;
}

Value resolve_leaf(const Graph& forward, const Wrt& wrt, std::string_view who) {
  Value v = resolve(forward, wrt, who);
  if (!is_named_leaf(forward.node(v.node).kind()))
    throw Error(Diagnostic{ErrorCode::InvalidArgument, concat_text(who, ": ", v, " is not an input, param or state"),
                           node_where(forward, v.node), "differentiate with respect to inputs, params or states"});
  return v;
}

void require_inexact(const Graph& forward, Value v, std::string_view who) {
  if (is_inexact(forward.shape(v).dtype())) return;
  throw Error(Diagnostic{
      ErrorCode::InvalidArgument,
      concat_text(who, ": '", node_label(forward, v.node), "' is ", forward.shape(v), ", which has no derivative"),
      node_where(forward, v.node), "differentiate with respect to float or complex values"});
}

std::vector<bool> dependents(const Graph& g, std::span<const Value> roots, bool inexact_only) {
  ValueSlots slot(g);
  std::vector<bool> depends(slot.size(), false);
  for (Value v : roots) depends[slot(v)] = true;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    // No derivative passes through it, so no node before it needs a rule: it may be a loop without one.
    if (inexact_only && n.kind() == OpKind::StopGradient) continue;
    if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](Value v) { return depends[slot(v)]; })) continue;
    for (std::uint32_t r = 0; r < n.num_results(); ++r)
      if (!inexact_only || is_inexact(n.shape(r).dtype())) depends[slot(Value(NodeId{i}, r))] = true;
  }
  return depends;
}

std::map<Value, Value> compose(const std::map<Value, Value>& first, const std::map<Value, Value>& second) {
  std::map<Value, Value> out;
  for (const auto& [from, middle] : first)
    if (auto it = second.find(middle); it != second.end()) out.emplace_hint(out.end(), from, it->second);
  return out;
}

void copy_node(Graph& to, const Graph& from, NodeId id, std::map<Value, Value>& ids) {
  Node copy = from.node(id);
  for (Value& v : copy.inputs) v = ids.at(v);
  const std::uint32_t results = copy.num_results();
  const NodeId made = to.add_node(std::move(copy));
  for (std::uint32_t r = 0; r < results; ++r) ids.emplace_hint(ids.end(), Value(id, r), Value(made, r));
}

std::map<Value, Value> copy_nodes(Graph& to, const Graph& from, const std::function<Expr(NodeId)>& replace) {
  std::map<Value, Value> ids;
  for (std::uint32_t i = 0; i < from.num_nodes(); ++i) {
    NodeId id{i};
    if (replace)
      if (Expr other = replace(id); other.valid()) {
        ids.emplace_hint(ids.end(), Value(id), other.value());
        continue;
      }
    copy_node(to, from, id, ids);
  }
  return ids;
}

Prepared prepare(const Graph& forward, std::vector<Value> roots, bool inexact_only, RuleState (*rule)(const OpDef&)) {
  Prepared p{copy_shell(forward), {}, std::move(roots)};
  p.ids = copy_nodes(p.graph, forward);
  finish_copy(p.graph, forward, p.ids);
  for (Value& v : p.roots) v = p.ids.at(v);
  for (int depth = 0;; ++depth) {
    check(depth < 32, "decompositions do not end");
    const Graph& old = p.graph;
    ValueSlots slot(old);
    std::vector<bool> depends = dependents(old, p.roots, inexact_only);
    auto must_expand = [&](std::uint32_t i) {
      const Node& n = old.nodes()[i];
      if (rule(op_def(n.op)) != RuleState::Derived || n.inputs.empty()) return false;
      // The walk ends at a root in the middle of the graph: nodes before it have no effect.
      if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](Value v) { return depends[slot(v)]; })) return false;
      for (std::uint32_t r = 0; r < n.num_results(); ++r)
        if (depends[slot(Value(NodeId{i}, r))]) return true;
      return false;
    };
    bool any = false;
    for (std::uint32_t i = 0; i < old.num_nodes() && !any; ++i) any = must_expand(i);
    if (!any) return p;

    Graph next = copy_shell(old);
    std::map<Value, Value> ids;
    for (std::uint32_t i = 0; i < old.num_nodes(); ++i) {
      NodeId id{i};
      const Node& n = old.node(id);
      if (must_expand(i)) {
        std::vector<Expr> operands;
        for (Value v : n.inputs) operands.push_back(next.expr(ids.at(v)));
        std::size_t first = next.num_nodes();
        std::vector<Expr> results = decompose_into(next, n.op, operands);
        for (std::size_t k = first; k < next.num_nodes(); ++k) {
          NodeId made{static_cast<std::uint32_t>(k)};
          next.origin(made) = n.origin;
          next.origin(made).pass = "decompose";
          next.origin(made).from.push_back(concat_text(id, " ", op_text_name(n.op)));
        }
        for (std::uint32_t r = 0; r < n.num_results(); ++r) ids.emplace(Value(id, r), results[r].value());
      } else {
        copy_node(next, old, id, ids);
      }
    }
    finish_copy(next, old, ids);
    for (Value& v : p.roots) v = ids.at(v);
    p.ids = compose(p.ids, ids);
    p.graph = std::move(next);
  }
}

void throw_no_rule(const Graph& g, NodeId id, std::string_view who, std::string_view what, const char* reason,
                   std::string_view way_out) {
  throw Error(Diagnostic{ErrorCode::Unsupported,
                         concat_text(who, ": ", op_text_name(g.node(id).op), " ", what, ": ",
                                     reason ? reason : "its OpDef has no such rule"),
                         node_where(g, id), std::string(way_out)});
}

void stamp(Graph& g, std::size_t first, NodeId source, std::string_view pass) {
  const Origin origin = g.node(source).origin;
  const std::string from = concat_text(source, " ", op_text_name(g.node(source).op));
  for (std::size_t i = first; i < g.num_nodes(); ++i) {
    Origin& o = g.origin(NodeId{static_cast<std::uint32_t>(i)});
    o = origin;
    o.pass = std::string(pass);
    o.from.push_back(from);
  }
}

std::string fresh_leaf_name(const Graph& g, std::string name) {
  auto taken = [&](const std::string& n) {
    for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
      if (g.find_leaf(kind, n).valid()) return true;
    return false;
  };
  if (!taken(name)) return name;
  for (int k = 2;; ++k)
    if (std::string other = concat_text(name, "_", k); !taken(other)) return other;
}

Graph prune(const Graph& g, std::map<Value, Value>& ids) {
  ValueMap kept;
  Graph out = drop_dead(g, &kept);
  for (auto it = ids.begin(); it != ids.end();) {
    it->second = kept(it->second);
    it = it->second.node.valid() ? std::next(it) : ids.erase(it);
  }
  return out;
}

}  // namespace rlx::walk
