// Partitioning: assigns nodes to partitions, builds the graphs, and finds the values that a partition may write over.
#include "rlx/compiler/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rlx/compiler/memory_plan.h"
#include "rlx/compiler/node_devices.h"
#include "rlx/compiler/plan_bodies.h"
#include "rlx/compiler/sync_points.h"
#include "rlx/error.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {
namespace {

constexpr std::uint32_t kNoPart = ~std::uint32_t{0};

bool is_leaf(const Graph& g, NodeId id) { return op_def(g.node(id).kind()).is_leaf(); }
// Leaves that every device holds itself.
bool is_everywhere(OpKind kind) { return kind == OpKind::Param || kind == OpKind::Constant; }

class Cutter {
 public:
  Cutter(const Graph& g, const Target& target, std::uint32_t home, LirBufferPlan& plan)
      : g_(g), target_(target), home_(home), plan_(plan), devices_(devices_of_nodes(g, target, home)) {
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      host_controlled_.push_back(op_def(g.nodes()[i].op).bodies == BodyKind::Programs &&
                                 target.host_controlled(g, NodeId{i}));
    for (const SyncPoint& cut : sync_points(g, {})) stops_.push_back(cut.nodes);
    std::sort(stops_.begin(), stops_.end());
    for (const OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State}) {
      const std::vector<NodeId> leaves = g.leaves(kind);
      for (std::uint32_t i = 0; i < leaves.size(); ++i) leaf_index_[leaves[i]] = i;
    }
    for (const Graph::StateUpdate& u : g.state_updates()) {
      const Value state = g.find_leaf(OpKind::State, u.name);
      replaced_[u.value].push_back(state);
      donated_.insert(state);
    }
    const std::vector<NodeId> inputs = g.leaves(OpKind::Input);
    for (const LirAlias& a : plan.aliases) {
      if (!a.refused.empty()) continue;
      replaced_[g.outputs()[a.output]].emplace_back(inputs[a.input]);
      donated_.emplace(inputs[a.input]);
    }
  }

  void cut() {
    for (bool moved = true; moved;) {
      make_parts();
      moved = false;
      for (const Refused& r : refused()) {
        if (!goes_to_host(r.node)) fail(r);
        moved = true;
      }
    }
    if (parts_.empty()) return;
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      plan_part(p);
      plan_.parts.push_back(std::move(parts_[p]));
    }
    if (std::any_of(devices_.begin(), devices_.end(), [](std::uint32_t d) { return d != 0; }))
      plan_.node_devices = devices_;
    report_copies();
  }

  // Returns the first refused nodes that have a decomposition. Refused nodes without one move to the host meanwhile.
  std::vector<Refused> find_refused() {
    std::vector<Refused> out;
    for (bool moved = true; moved && out.empty();) {
      make_parts();
      moved = false;
      for (const Refused& r : refused())
        if (op_def(g_.node(r.node).op).decompose.has())
          out.push_back(r);
        else
          moved = goes_to_host(r.node) || moved;
    }
    return out;
  }

 private:
  // Nodes of equal Kind may share a partition: one device, and no sync point between them. Each host-controlled node is
  // a partition of its own.
  struct Kind {
    std::uint32_t device = 0;
    std::size_t stage = 0;
    std::uint32_t host_controlled = kNoPart;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  Kind kind_of(std::uint32_t i) const {
    const auto stage = std::upper_bound(stops_.begin(), stops_.end(), i) - stops_.begin();
    return {devices_[i], static_cast<std::size_t>(stage), host_controlled_[i] ? i : kNoPart};
  }

  // Makes no partitions when the home device runs the whole program.
  void make_parts() {
    groups_.clear(), last_reader_.clear(), crosses_.clear(), parts_.clear();
    const bool elsewhere = std::any_of(devices_.begin(), devices_.end(), [&](std::uint32_t d) { return d != home_; });
    if (!elsewhere && std::find(host_controlled_.begin(), host_controlled_.end(), true) == host_controlled_.end())
      return;
    group();
    find_reads();
    for (std::uint32_t p = 0; p < groups_.size(); ++p) {
      const NodeId first = groups_[p].front();
      parts_.push_back(host_controlled_[first.index] ? host_controlled_part(first) : straight_part(p));
    }
  }

  std::vector<Refused> refused() const {
    std::vector<Refused> out;
    const auto ask = [&](const Graph& given, std::uint32_t device, const std::vector<NodeId>* nodes) {
      const Target& target = target_.of_device(device);
      for (std::uint32_t i = 0; i < given.num_nodes(); ++i) {
        const NodeId id{i};
        if (is_leaf(given, id) || target.on_host(given, id)) continue;
        if (op_def(given.node(id).kind()).view == ViewKind::Always && !target.opaque()) continue;
        if (const char* why = target.refuses(given, id)) out.push_back({nodes ? (*nodes)[i] : id, device, why});
      }
    };
    if (parts_.empty()) ask(g_, home_, nullptr);
    for (const LirPart& part : parts_)
      if (!part.host_controlled) ask(part.modules[0].graph, part.device, &part.nodes);
    return out;
  }
  bool goes_to_host(NodeId id) {
    const std::optional<std::uint32_t> host = target_.fallback(g_, id);
    if (!host || *host == devices_[id.index]) return false;
    devices_[id.index] = *host;
    return true;
  }
  [[noreturn]] void fail(const Refused& r) const {
    throw Error(Diagnostic{
        ErrorCode::Unsupported,
        concat_text(op_text_name(g_.node(r.node).op), " has no kernel on ", target_.of_device(r.device).name(),
                    " in a partition of graph '", g_.name(), "': ", r.why),
        node_where(g_, r.node),
        "the nodes around it run on other devices: place them with it "
        "(CompileOptions::placement), or all of them on cpu"});
  }

  // Each partition takes all nodes that its device can run by then, up to the next sync point. It begins with the first
  // node that is ready. An ordered op stays after the earlier ordered ops.
  void group() {
    part_of_.assign(g_.num_nodes(), kNoPart);
    std::vector<std::uint32_t> waits(g_.num_nodes(), 0);
    std::vector<std::vector<std::uint32_t>> readers(g_.num_nodes());
    std::map<Kind, std::set<std::uint32_t>> ready;
    std::set<std::uint32_t> all_ready;
    const auto now_ready = [&](std::uint32_t i) { ready[kind_of(i)].insert(i), all_ready.insert(i); };
    std::optional<std::uint32_t> last_ordered;
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) {
      if (is_leaf(g_, NodeId{i})) continue;
      const auto behind = [&](std::uint32_t other) { readers[other].push_back(i), ++waits[i]; };
      for (Value v : g_.nodes()[i].inputs)
        if (!is_leaf(g_, v.node)) behind(v.node.index);
      if (is_ordered(g_.nodes()[i].op)) {
        if (last_ordered) behind(*last_ordered);
        last_ordered = i;
      }
      if (waits[i] == 0) now_ready(i);
    }
    while (!all_ready.empty()) {
      const auto part = static_cast<std::uint32_t>(groups_.size());
      std::vector<NodeId>& nodes = groups_.emplace_back();
      std::set<std::uint32_t>& mine = ready[kind_of(*all_ready.begin())];
      while (!mine.empty()) {  // nodes that become ready are appended
        const std::uint32_t i = *mine.begin();
        mine.erase(mine.begin());
        all_ready.erase(i);
        nodes.push_back(NodeId{i});
        part_of_[i] = part;
        for (std::uint32_t r : readers[i])
          if (--waits[r] == 0) now_ready(r);
      }
    }
  }

  // Finds the last partition that reads each value (kNoPart: read at the end of the program), and the values that cross
  // partitions.
  void find_reads() {
    for (std::uint32_t p = 0; p < groups_.size(); ++p)
      for (NodeId id : groups_[p])
        for (Value v : g_.node(id).inputs) {
          last_reader_[v] = p;
          if (is_leaf(g_, v.node) || part_of_[v.node.index] != p) crosses_.insert(v);
        }
    for (const Root& r : roots(g_))
      if (r.is_read()) crosses_.insert(r.value), last_reader_[r.value] = kNoPart;
  }

  LirPart host_controlled_part(NodeId id) const {
    const Node& n = g_.node(id);
    LirPart part;
    part.device = devices_[id.index];
    if (const Target& on = target_.of_device(part.device); !on.opaque())
      throw Error(
          Diagnostic{ErrorCode::Unsupported,
                     concat_text(op_text_name(n.op), " was placed on ", on.name(), ", which has no kernel for it"),
                     node_where(g_, id), "place it on the device that the program is compiled for"});
    part.host_controlled = true;
    part.nodes = {id};
    part.inputs = n.inputs;
    for (std::uint32_t r = 0; r < n.num_results(); ++r) part.outputs.emplace_back(id, r);
    return part;
  }

  LirPart straight_part(std::uint32_t p) {
    LirPart part;
    part.device = devices_[groups_[p].front().index];
    LirModule& m = part.modules.emplace_back();
    m.graph = copy_shell(g_, concat_text(g_.name(), ".part", p));
    std::map<Value, Value> here;
    const auto taken = [&](Value v) {
      if (const auto known = here.find(v); known != here.end()) return known->second;
      const Node& from = g_.node(v.node);
      const bool copied = is_everywhere(from.kind());
      Node leaf = copied ? from : Node{input_of(v), {}, {g_.shape(v)}, from.origin};
      if (!copied) part.inputs.push_back(v);
      if (from.kind() == OpKind::Param) part.params.push_back(leaf_index_.at(v.node));
      part.nodes.push_back(v.node);
      return here.emplace(v, Value(m.graph.add_node(std::move(leaf)))).first->second;
    };
    std::vector<Value> outputs;
    for (NodeId id : groups_[p]) {
      Node n = g_.node(id);
      for (Value& v : n.inputs) v = taken(v);
      const std::uint32_t results = n.num_results();
      part.nodes.push_back(id);
      const NodeId made = m.graph.add_node(std::move(n));
      for (std::uint32_t r = 0; r < results; ++r) {
        here.emplace(Value(id, r), Value(made, r));
        if (!crosses_.contains(Value(id, r))) continue;
        part.outputs.emplace_back(id, r);
        outputs.emplace_back(made, r);
      }
    }
    m.graph.set_outputs(std::move(outputs));
    return part;
  }

  void plan_part(std::uint32_t p) {
    LirPart& part = parts_[p];
    if (!part.host_controlled) {
      LirModule& m = part.modules[0];
      const Target& target = target_.of_device(part.device);
      m.plan = plan_memory(m.graph, target, target.opaque() ? aliases_of(p, part) : std::vector<LirAlias>());
      return;
    }
    const OpBox& op = g_.node(part.nodes[0]).op;
    const LoopParts loop = loop_parts(op).value_or(LoopParts{});
    const std::vector<Subgraph> bodies = body_graphs(op);
    for (const Subgraph& body : bodies) {
      LirModule m;
      m.graph = *body;
      if (!m.graph.is_static()) m.graph.set_symbols(symbols_in(g_, *body));
      std::vector<LirAlias> carried;
      if (&body == &bodies.back())
        for (std::uint32_t c = 0; c < loop.carries; ++c)
          carried.push_back({static_cast<std::uint32_t>(loop.first_carry()) + c, c, {}});
      m.plan = plan_memory(m.graph, target_, carried, part.device);
      part.modules.push_back(std::move(m));
    }
  }

  ops::Input input_of(Value v) const {
    const Shape& s = g_.shape(v);
    return {concat_text("v", v.node.index, "_", v.result), s.dims(), s.dtype()};
  }

  // The value behind views and updates, which may pass their bytes on.
  Value updated_from(Value v, std::uint32_t p) const {
    while (!is_leaf(g_, v.node) && part_of_[v.node.index] == p) {
      const Node& n = g_.node(v.node);
      std::optional<std::uint32_t> from = updated_operand(n.op, v.result, nullptr);
      if (!from && op_def(n.kind()).view == ViewKind::Always) from = 0;
      if (!from) break;
      v = n.inputs[*from];
    }
    return v;
  }
  bool may_give(Value v, std::uint32_t p) const {
    const auto last = last_reader_.find(v);
    if (last == last_reader_.end() || last->second != p) return false;
    const OpKind kind = g_.node(v.node).kind();
    return donated_.contains(v) || (kind != OpKind::State && kind != OpKind::Input);
  }

  // The inputs of a partition that nobody reads after it, each with the output that may be written over it.
  std::vector<LirAlias> aliases_of(std::uint32_t p, const LirPart& part) {
    std::map<Value, std::uint32_t> free;  // inputs without an output over them yet
    for (std::uint32_t k = 0; k < part.inputs.size(); ++k)
      if (may_give(part.inputs[k], p)) free.emplace(part.inputs[k], k);
    std::vector<LirAlias> out;
    for (std::uint32_t o = 0; o < part.outputs.size(); ++o) {
      std::vector<Value> from{updated_from(part.outputs[o], p)};
      if (const auto old = replaced_.find(part.outputs[o]); old != replaced_.end())
        from.insert(from.end(), old->second.begin(), old->second.end());
      for (Value v : from) {
        const auto input = free.find(v);
        if (input == free.end() || !(g_.shape(v) == g_.shape(part.outputs[o]))) continue;
        out.push_back({input->second, o, {}});
        made_over_.emplace(part.outputs[o], v);
        free.erase(input);
        break;
      }
    }
    return out;
  }

  // True when the partition that makes the new value may write it over the old one.
  bool made_over(Value v, Value state) const {
    if (is_leaf(g_, v.node)) return v == state;
    const LirPart& part = plan_.parts[part_of_[v.node.index]];
    if (part.host_controlled) {
      const std::optional<std::uint32_t> from = updated_operand(g_.node(v.node).op, v.result, nullptr);
      return from && part.inputs[*from] == state && may_give(state, part_of_[v.node.index]);
    }
    return made_over_.contains({v, state});
  }
  // Reports old values that cannot be overwritten by the new ones.
  void report_copies() {
    const std::vector<NodeId> inputs = g_.leaves(OpKind::Input);
    for (LirAlias& a : plan_.aliases)
      if (a.refused.empty() && !made_over(g_.outputs()[a.output], inputs[a.input]))
        a.refused = "the partition that computes the output is not the last one that reads the input";
    for (const Graph::StateUpdate& u : g_.state_updates()) {
      const Value state = g_.find_leaf(OpKind::State, u.name);
      if (made_over(u.value, state)) continue;
      plan_.state_copies.push_back(
          {u.value, leaf_index_.at(state.node),
           "the partition that computes the new value is not the last one that reads the old value"});
    }
  }

  const Graph& g_;
  const Target& target_;
  std::uint32_t home_;
  LirBufferPlan& plan_;
  std::vector<std::uint32_t> devices_;
  std::vector<bool> host_controlled_;
  std::vector<std::uint32_t> stops_;              // the first node after each sync point
  std::vector<std::vector<NodeId>> groups_;       // by partition
  std::vector<LirPart> parts_;                    // made so far; empty when the home device runs all
  std::vector<std::uint32_t> part_of_;            // by node
  std::map<Value, std::uint32_t> last_reader_;    // kNoPart: read after all partitions
  std::map<NodeId, std::uint32_t> leaf_index_;    // index of inputs, params and states within their kind
  std::map<Value, std::vector<Value>> replaced_;  // new value -> states and donated inputs it replaces
  std::set<std::pair<Value, Value>> made_over_;   // (new value, old value that it overwrites)
  std::set<Value> donated_;                       // the old values in replaced_
  std::set<Value> crosses_;                       // values read outside the partition that makes them
};

}  // namespace

void partition_parts(const Graph& g, const Target& target, std::uint32_t home, LirBufferPlan& plan) {
  Cutter(g, target, home, plan).cut();
}

std::vector<Refused> refused_in_parts(const Graph& g, const Target& target, std::uint32_t home) {
  LirBufferPlan plan;
  return Cutter(g, target, home, plan).find_refused();
}

LirPart resize_part(const Graph& g, const LirPart& part) {
  LirPart out = part;
  if (part.host_controlled) {
    const std::vector<Subgraph> bodies = body_graphs(g.node(part.nodes[0]).op);
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      out.modules[b].graph = *bodies[b];
      out.modules[b].plan = resize_plan(*bodies[b], part.modules[b].plan);
    }
    return out;
  }
  const Graph& symbolic = part.modules[0].graph;
  Graph bound = copy_shell(g, symbolic.name());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < symbolic.num_nodes(); ++i) {
    const Node& cut = symbolic.nodes()[i];
    if (const auto* input = cut.op.get_if<ops::Input>()) {
      const Shape& s = g.shape(part.inputs[next++]);
      bound.add_node(Node{ops::Input{input->name, s.dims(), s.dtype()}, {}, {s}, cut.origin});
      continue;
    }
    Node n = g.node(part.nodes[i]);
    n.inputs = cut.inputs;
    bound.add_node(std::move(n));
  }
  bound.set_outputs(symbolic.outputs());
  out.modules[0].graph = std::move(bound);
  out.modules[0].plan = resize_plan(out.modules[0].graph, part.modules[0].plan);
  return out;
}

std::vector<std::string> check_parts(const Graph& g, const LirBufferPlan& plan) {
  std::vector<std::string> problems;
  std::set<NodeId> made;
  const auto there = [&](Value v) {
    if (v.node.index >= g.num_nodes() || v.result >= g.node(v.node).num_results()) return false;
    return is_leaf(g, v.node) || made.contains(v.node);
  };
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const LirPart& part = plan.parts[p];
    const auto wrong = [&](auto&&... text) { problems.push_back(concat_text("partition ", p, " ", text...)); };
    const bool nodes_there =
        std::all_of(part.nodes.begin(), part.nodes.end(), [&](NodeId id) { return id.index < g.num_nodes(); });
    if (!nodes_there || part.modules.empty() || part.nodes.empty()) {
      wrong("belongs to another graph");
      continue;
    }
    for (Value v : part.inputs)
      if (!there(v)) wrong("reads ", v, ", which no earlier partition computes");
    if (part.host_controlled) {
      const OpBox& op = g.node(part.nodes[0]).op;
      const std::vector<Subgraph> bodies = body_graphs(op);
      bool same = part.nodes.size() == 1 && bodies.size() == part.modules.size() &&
                  part.inputs == g.node(part.nodes[0]).inputs &&
                  part.outputs.size() == g.node(part.nodes[0]).num_results();
      for (std::size_t b = 0; b < bodies.size() && same; ++b) same = same_graph(*bodies[b], part.modules[b].graph);
      if (!same) wrong("does not have the bodies of its node");
    } else {
      const Graph& cut = part.modules[0].graph;
      std::size_t inputs = 0, params = 0;
      bool same = part.modules.size() == 1 && part.nodes.size() == cut.num_nodes() &&
                  cut.outputs().size() == part.outputs.size();
      for (std::uint32_t i = 0; i < cut.num_nodes() && same; ++i) {
        const OpKind kind = cut.nodes()[i].kind();
        if (kind == OpKind::Input) {
          same = inputs < part.inputs.size() && there(part.inputs[inputs]) &&
                 g.shape(part.inputs[inputs]) == cut.nodes()[i].shape();
          ++inputs;
          continue;
        }
        params += kind == OpKind::Param ? 1 : 0;
        same = g.node(part.nodes[i]).kind() == kind && g.node(part.nodes[i]).shapes == cut.nodes()[i].shapes;
      }
      same = same && inputs == part.inputs.size() && params == part.params.size();
      for (std::size_t o = 0; o < part.outputs.size() && same; ++o)
        same = part.outputs[o].node == part.nodes[cut.outputs()[o].node.index] &&
               part.outputs[o].result == cut.outputs()[o].result;
      const std::size_t all = g.leaves(OpKind::Param).size();
      for (std::uint32_t param : part.params) same = same && param < all;
      if (!same) wrong("has a graph that is not that of its nodes");
    }
    for (NodeId id : part.nodes) made.insert(id);
    for (const LirModule& m : part.modules)
      for (const std::string& why : m.plan.opaque ? check_parts(m.graph, m.plan) : check_plan(m.graph, m.plan))
        wrong("has an invalid plan: ", why);
  }
  for (const Root& r : roots(g))
    if (!plan.parts.empty() && !there(r.value)) problems.push_back(concat_text("no partition computes ", r.value));
  return problems;
}

}  // namespace rlx
