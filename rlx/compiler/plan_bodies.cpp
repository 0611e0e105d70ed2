// Plans bodies as programs whose carries are donated: output c may be written over the input that it replaces.
#include "rlx/compiler/plan_bodies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rlx/compiler/memory_plan.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {
std::optional<std::uint32_t> updated_operand(const OpBox& op, std::uint32_t r, const LirBodies* bodies) {
  if (op_def(op).updates == UpdateKind::Yes && r == 0) return 0;
  if (const std::optional<LoopParts> p = loop_parts(op); p && r < p->carries)
    return static_cast<std::uint32_t>(p->first_carry()) + r;
  if (bodies)
    for (const LirBodies::Shared& s : bodies->shared)
      if (s.result == r) return s.operand;
  return std::nullopt;
}

namespace {

// Finds the input of a body that a value is, or is an update of. Each value is visited once.
class UpdatedInputs {
 public:
  explicit UpdatedInputs(const Graph& body) : body_(body), slot_(body), found_(slot_.size()) {
    std::uint32_t next = 0;
    for (NodeId id : body.leaves(OpKind::Input)) found_[slot_(Value(id))] = {true, next++};
  }
  std::optional<std::uint32_t> operator()(Value v) {
    path_.clear();
    while (!found_[slot_(v)].known) {
      const Node& n = body_.node(v.node);
      std::optional<std::uint32_t> from = updated_operand(n.op, v.result, nullptr);
      if (!from && op_def(n.op).is_view()) from = 0;
      path_.push_back(v);
      if (!from) break;
      v = n.inputs[*from];
    }
    const std::optional<std::uint32_t> input = found_[slot_(v)].input;
    for (Value passed : path_) found_[slot_(passed)] = {true, input};
    return input;
  }

 private:
  struct Found {
    bool known = false;
    std::optional<std::uint32_t> input{};
  };
  const Graph& body_;
  ValueSlots slot_;
  std::vector<Found> found_;  // by slot
  std::vector<Value> path_;
};

// For a branch: the candidate pairs of a result that may share the bytes of an operand.
std::vector<LirBodies::Shared> shared_candidates(const Graph& g, const Node& n, const std::vector<Subgraph>& bodies) {
  std::vector<LirBodies::Shared> out;
  if (n.kind() != OpKind::If) return out;
  UpdatedInputs first(*bodies[0]), second(*bodies[1]);
  std::map<Value, int> uses;
  for (Value v : n.inputs) ++uses[v];
  std::vector<bool> taken(n.inputs.size());
  for (std::uint32_t r = 0; r < n.num_results(); ++r) {
    const std::optional<std::uint32_t> a = first(bodies[0]->outputs()[r]), b = second(bodies[1]->outputs()[r]);
    if ((!a && !b) || (a && b && *a != *b)) continue;
    const std::uint32_t operand = a.value_or(b.value_or(0)) + 1;  // pred comes first
    const Value v = n.inputs[operand];
    if (taken[operand] || !(g.shape(v) == n.shapes[r]) || uses[v] != 1) continue;
    taken[operand] = true;
    out.push_back({operand, r, {}});
  }
  return out;
}

}  // namespace

std::map<std::string, SymbolInfo> symbols_in(const Graph& g, const Graph& body) {
  std::map<std::string, SymbolInfo> out;
  for (const std::string& name : body.dynamic_symbols())
    if (const auto it = g.symbols().find(name); it != g.symbols().end()) out.insert(*it);
  return out;
}

PlannedBodies plan_bodies(const Graph& g, NodeId id, const Target& target, bool host_controlled, std::uint32_t home) {
  const Node& n = g.node(id);
  const LoopParts loop = loop_parts(n.op).value_or(LoopParts{});
  PlannedBodies planned;
  LirBodies& out = planned.bodies;
  out.node = id;
  out.host_controlled = host_controlled;
  const auto new_range = [&](std::size_t bytes, std::uint32_t device) {
    out.ranges.push_back({0, 0, bytes});
    planned.devices.push_back(device);
    return static_cast<std::uint32_t>(out.ranges.size() - 1);
  };
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> shared;  // (device, index of its arena) -> range
  const std::vector<Subgraph> graphs = body_graphs(n.op);
  out.shared = shared_candidates(g, n, graphs);
  for (const Subgraph& body : graphs) {
    LirModule m;
    m.graph = *body;
    if (!m.graph.is_static())
      m.graph.set_symbols(symbols_in(g, *body));  // with the bounds that the program is planned for
    std::vector<LirAlias> donated;
    if (&body == &graphs.back())  // the last body of a loop is its step
      for (std::uint32_t c = 0; c < loop.carries; ++c)
        donated.push_back({static_cast<std::uint32_t>(loop.first_carry()) + c, c, {}});
    for (const LirBodies::Shared& s : out.shared) donated.push_back({s.operand - 1, s.result, {}});
    m.plan = plan_unchecked(m.graph, target, donated, home);  // checked with the program
    for (std::size_t k = 0; k < out.shared.size(); ++k)
      if (out.shared[k].refused.empty()) out.shared[k].refused = m.plan.aliases[k].refused;
    std::map<std::uint32_t, std::size_t> seen;
    std::vector<std::uint32_t>& ranges = out.arenas.emplace_back();
    for (std::size_t a = 0; a < m.plan.arenas.size(); ++a) {
      const std::uint32_t device = m.plan.arena_device(a);
      const auto [range, added] = shared.try_emplace({device, seen[device]++}, 0);
      if (added) range->second = new_range(0, device);
      std::size_t& bytes = out.ranges[range->second].bytes;
      bytes = std::max(bytes, m.plan.arenas[a]);
      ranges.push_back(range->second);
    }
    out.modules.push_back(std::move(m));
  }
  for (std::uint32_t c = 0; c < loop.carries; ++c) {
    const std::string& refused = out.modules.back().plan.aliases[c].refused;
    out.reasons.push_back(refused);
    out.second.emplace_back();
    if (!refused.empty()) out.second.back() = new_range(max_bytes(g, Value(id, c)), home);
  }
  if (!host_controlled) return planned;
  // Rows that the device cannot bind in place pass through their own buffer.
  const Dim apart(std::max(target.limits().view_alignment, target.limits().copy_granule));
  const Graph& step = out.modules.back().graph;
  const auto row = [&](Value v) {
    const bool bound = mod(stored_size(step, v), apart).is_static(0);
    out.rows.push_back(bound ? std::nullopt : std::optional(new_range(max_bytes(step, v), home)));
  };
  const std::vector<NodeId> inputs = step.leaves(OpKind::Input);
  for (std::size_t x = 0; x < loop.xs; ++x) row(Value(inputs[loop.first_x() + x]));
  for (std::size_t y = 0; y < loop.ys; ++y) row(step.outputs()[loop.carries + y]);
  if (n.kind() == OpKind::While) out.decision = new_range(1, home);
  return planned;
}

std::vector<std::optional<std::uint32_t>> body_updates(const Node& n, const LirBodies& bodies) {
  std::vector<std::optional<std::uint32_t>> out(n.num_results());
  if (const std::optional<LoopParts> loop = loop_parts(n.op))
    for (std::uint32_t c = 0; c < loop->carries; ++c) out[c] = static_cast<std::uint32_t>(loop->first_carry()) + c;
  for (const LirBodies::Shared& s : bodies.shared)
    if (s.refused.empty()) out[s.result] = s.operand;
  return out;
}

LirBodies resize_bodies(const Graph& g, const LirBodies& bodies) {
  LirBodies out = bodies;
  const std::vector<Subgraph> graphs = body_graphs(g.node(bodies.node).op);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    out.modules[i].graph = *graphs[i];
    out.modules[i].plan = resize_plan(*graphs[i], bodies.modules[i].plan);
  }
  return out;
}

}  // namespace rlx
