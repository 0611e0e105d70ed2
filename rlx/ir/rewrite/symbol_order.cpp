// Depths of nodes over data, symbols and the order of ordered ops. The depths of the sources give the stages.
#include "rlx/ir/rewrite/symbol_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

bool is_any_leaf(const Node& n) { return op_def(n.kind()).is_leaf(); }

// The dependences of a node besides its operands: sources of symbols, and the ordered op before it.
class Edges {
 public:
  explicit Edges(const Graph& g) : g_(g), previous_(g.num_nodes(), kNone), symbols_(g.num_nodes()) {
    std::uint32_t last = kNone;
    for (NodeId id : g.ordered()) previous_[id.index] = std::exchange(last, id.index);
    for (const auto& [name, source] : g.symbol_sources()) {
      index_.emplace(name, static_cast<std::uint32_t>(sources_.size()));
      sources_.push_back(source.node.index);
    }
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
      if (!has_symbols(g.nodes()[i])) continue;
      for (const std::string& name : symbols_of(g.nodes()[i]))
        if (const auto it = index_.find(name); it != index_.end()) symbols_[i].push_back(it->second);
    }
  }
  /// Calls f for each node that `node` depends on, with the symbol of the dependence, or kNone.
  template <class F>
  void each_before(std::uint32_t node, const F& f) const {
    for (Value v : g_.nodes()[node].inputs) f(v.node.index, kNone);
    if (previous_[node] != kNone) f(previous_[node], kNone);
    for (std::uint32_t s : symbols_[node]) f(sources_[s], s);
  }

 private:
  const Graph& g_;
  std::vector<std::uint32_t> previous_;              // by ordered op
  std::vector<std::vector<std::uint32_t>> symbols_;  // by node
  std::map<std::string, std::uint32_t, std::less<>> index_;
  std::vector<std::uint32_t> sources_;
};

// The number of symbols that must be known one after the other before a node can run; none for circular dependences.
std::optional<std::vector<std::uint32_t>> depths(const Graph& g, const Edges& edges) {
  enum State : std::uint8_t { Unseen, Open, Done };
  std::vector<State> state(g.num_nodes(), Unseen);
  std::vector<std::uint32_t> depth(g.num_nodes(), 0), open;
  bool circle = false;
  for (std::uint32_t start = 0; start < g.num_nodes(); ++start) {
    if (state[start] == Unseen) open.push_back(start);
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      if (state[at] == Done) {
        open.pop_back();
        continue;
      }
      const bool back = std::exchange(state[at], Open) == Open;  // all nodes that it depends on are done
      edges.each_before(at, [&](std::uint32_t before, std::uint32_t symbol) {
        if (back)
          depth[at] = std::max(depth[at], depth[before] + (symbol == kNone ? 0 : 1));
        else if (state[before] == Unseen)
          open.push_back(before);
        else if (state[before] == Open)
          circle = true;
      });
      if (circle) return std::nullopt;
      if (!back) continue;
      state[at] = Done;
      open.pop_back();
    }
  }
  return depth;
}

// For a graph with a circular dependence: a symbol, and the node with it that its source needs.
SymbolCircle find_circle(const Graph& g, const Edges& edges) {
  for (const auto& [name, source] : g.symbol_sources()) {
    std::vector<bool> seen(g.num_nodes(), false);
    std::vector<std::uint32_t> work{source.node.index};
    while (!work.empty()) {
      const std::uint32_t at = work.back();
      work.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      const std::vector<std::string> used = symbols_of(g.nodes()[at]);
      if (std::find(used.begin(), used.end(), name) != used.end()) return {name, NodeId{at}};
      edges.each_before(at, [&](std::uint32_t before, std::uint32_t) { work.push_back(before); });
    }
  }
  check(false, "nodes that wait for each other do so through a symbol");
  return {};
}

}  // namespace

std::vector<std::string> symbols_of(const Node& n) {
  std::set<std::string> names;
  const auto add = [&](const Dim& d) {
    if (d.is_static()) return;
    for (std::string& name : d.symbols()) names.insert(std::move(name));
  };
  for (const Shape& s : n.shapes)
    for (const Dim& d : s.dims()) add(d);
  for (const AttrField& f : op_def(n.op).attrs) {
    if (f.type != AttrType::DimList && !holds_body(f.type)) continue;
    const AttrValue value = f.get(n.op.data());
    if (const auto* dims = std::get_if<Dims>(&value))
      for (const Dim& d : *dims) add(d);
    else if (const auto& body = std::get<Subgraph>(value))
      for (std::string& name : body->dynamic_symbols()) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

bool has_symbols(const Node& n) {
  const auto open = [](const Dim& d) { return !d.is_static(); };
  for (const Shape& s : n.shapes)
    if (!s.is_static()) return true;
  for (const AttrField& f : op_def(n.op).attrs) {
    if (f.type != AttrType::DimList && !holds_body(f.type)) continue;
    const AttrValue value = f.get(n.op.data());
    if (const auto* dims = std::get_if<Dims>(&value)) {
      if (std::any_of(dims->begin(), dims->end(), open)) return true;
    } else if (const auto& body = std::get<Subgraph>(value); body && !body->is_static()) {
      return true;
    }
  }
  return false;
}

std::optional<SymbolOrder> symbol_order(const Graph& g, SymbolCircle* circle) {
  const Edges edges(g);
  const auto depth = depths(g, edges);
  if (!depth) {
    if (circle) *circle = find_circle(g, edges);
    return std::nullopt;
  }
  SymbolOrder out;
  // The stages are the depths of the sources, without gaps.
  std::map<std::uint32_t, std::vector<std::string>> by_depth;
  for (const auto& [name, source] : g.symbol_sources()) by_depth[(*depth)[source.node.index]].push_back(name);
  for (auto& [at, names] : by_depth) out.stages.push_back(std::move(names));
  out.stage.assign(g.num_nodes(), static_cast<std::uint32_t>(out.stages.size()));
  // Assigns each node to the first stage that needs it.
  std::vector<std::uint32_t> work;
  for (std::uint32_t t = 0; t < out.stages.size(); ++t) {
    for (const std::string& name : out.stages[t]) work.push_back(g.symbol_sources().at(name).node.index);
    while (!work.empty()) {
      const std::uint32_t at = work.back();
      work.pop_back();
      if (out.stage[at] <= t) continue;
      out.stage[at] = t;
      // Sources of earlier stages are already assigned. So the walk follows only operands and the order of ordered ops.
      edges.each_before(at, [&](std::uint32_t before, std::uint32_t) { work.push_back(before); });
    }
  }
  return out;
}

bool in_symbol_order(const Graph& g) {
  if (g.symbol_sources().empty()) return true;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (const std::string& name : symbols_of(g.nodes()[i]))
      if (const auto it = g.symbol_sources().find(name); it != g.symbol_sources().end() && it->second.node.index >= i)
        return false;
  return true;
}

Graph sorted_by_symbols(const Graph& g) {
  SymbolCircle circle;
  const std::optional<SymbolOrder> order = symbol_order(g, &circle);
  if (!order)
    throw Error(Diagnostic{
        ErrorCode::InvalidArgument,
        concat_text("graph '", g.name(), "': symbol '", circle.symbol, "' is used by the computation of its own value"),
        node_where(g, circle.node), "compute the value from values without this symbol in their shape"});
  const auto stages = static_cast<std::uint32_t>(order->stages.size());
  std::vector<std::vector<std::uint32_t>> parts(stages + 2);  // leaves, the stages, the rest
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    parts[is_any_leaf(g.nodes()[i]) ? 0 : order->stage[i] + 1].push_back(i);
  Graph out = copy_shell(g);
  out.reserve(g.num_nodes());
  std::vector<NodeId> map(g.num_nodes());
  for (const std::vector<std::uint32_t>& part : parts)
    for (std::uint32_t i : part) {
      Node n = g.nodes()[i];
      for (Value& v : n.inputs) v = Value(map[v.node.index], v.result);
      map[i] = out.add_node(std::move(n));
    }
  copy_ends(out, g, [&](Value v) { return Value(map[v.node.index], v.result); });
  return out;
}

DimRange bounds_of(const Graph& g, const Dim& d) {
  if (d.is_static()) return {d.value(), d.value()};
  SymbolRanges ranges;
  for (std::string& name : d.symbols()) {
    const auto declared = g.symbols().find(name);
    const SymbolInfo info = declared == g.symbols().end() ? SymbolInfo{} : declared->second;
    ranges.emplace(std::move(name), DimRange{info.min, info.max});
  }
  return d.range(ranges);
}

void check_computed_symbol(const Graph& g, const std::string& symbol, std::int64_t value) try {
  if (const auto info = g.symbols().find(symbol); info != g.symbols().end())
    check_symbol_value(symbol, info->second, value);
} catch (const Error& e) {
  Diagnostic d = e.diagnostic();
  d.where = node_where(g, g.symbol_sources().at(symbol).node);
  d.hint = "declare wider bounds, or clamp the value";
  throw Error(std::move(d));
}

}  // namespace rlx
