// Placement by label, host segments for refused nodes, and the transfers between devices.
#include "rlx/compiler/placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rlx/compiler/node_devices.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

/// True for the label `start`, and for labels that continue it after a '/'.
bool begins_with(std::string_view label, std::string_view start) {
  return label.starts_with(start) && (label.size() == start.size() || label[start.size()] == '/');
}

struct Placed {
  std::string label;
  std::uint32_t device = 0;
};

/// The longest entry that matches the label; null when none does.
template <class List>
auto placement_of(const List& list, std::string_view label) -> decltype(&*list.begin()) {
  auto best = decltype(&*list.begin()){};
  for (const auto& p : list)
    if (begins_with(label, p.label) && (!best || best->label.size() < p.label.size())) best = &p;
  return best;
}

class SeveralDevices final : public Target {
 public:
  SeveralDevices(std::shared_ptr<const Target> first, std::shared_ptr<const Target> host, std::uint32_t host_number,
                 bool falls_back, std::vector<Placed> placed)
      : first_(std::move(first)),
        host_(std::move(host)),
        host_number_(host_number),
        falls_back_(falls_back),
        placed_(std::move(placed)),
        kinds_(first_->kinds()) {
    const auto on_host = [&](const Placed& p) { return host_ && p.device == host_number_; };
    if (std::any_of(placed_.begin(), placed_.end(), on_host))
      for (const OpDef* def : all_op_defs())
        if (host_->has(def->kind)) kinds_.add(def->kind);
  }

  std::string_view name() const override { return first_->name(); }
  Device device() const override { return first_->device(); }
  int threads() const override { return first_->threads(); }
  TargetLimits limits() const override { return first_->limits(); }
  bool opaque() const override { return first_->opaque(); }
  bool branches_freely() const override { return first_->branches_freely(); }
  bool runtime_symbols() const override { return first_->runtime_symbols(); }
  // Includes the kinds of nodes placed on the host. The device of a node is decided per node.
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    return (sent_to_host(g.node(id).origin.label) ? host_ : first_)->refuses(g, id);
  }
  bool places() const override { return !placed_.empty(); }
  std::uint32_t place_of(std::string_view label) const override {
    const Placed* p = placement_of(placed_, label);
    return p ? p->device : 0;
  }
  // A fused node gets its label when it is built.
  bool by_kind() const override { return first_->by_kind() && !host_; }
  bool on_host(const Graph& g, NodeId id) const override {
    const bool sent = sent_to_host(g.node(id).origin.label);
    return (!sent && first_->on_host(g, id)) || ((falls_back_ || sent) && host_takes(g, id));
  }
  RegionLimits region_limits() const override { return first_->region_limits(); }
  std::uint32_t device_of(const Graph& g, NodeId id, std::uint32_t home) const override {
    if (on_host_segment(g, id)) return host_number_;
    const Placed* p = placement_of(placed_, g.node(id).origin.label);
    return p ? p->device : home;
  }
  const Target& of_device(std::uint32_t number) const override {
    return host_ && number == host_number_ ? *host_ : *first_;
  }
  std::optional<std::uint32_t> fallback(const Graph& g, NodeId id) const override {
    return falls_back_ && host_takes(g, id) ? std::optional(host_number_) : std::nullopt;
  }
  bool reads_strided(const Graph& g, NodeId id, int operand) const override {
    return runner(g, id).reads_strided(g, id, operand);
  }
  bool reads_encoded(const Graph& g, NodeId id, int operand) const override {
    return runner(g, id).reads_encoded(g, id, operand);
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    return runner(g, id).in_place(g, id, operand, result);
  }
  bool skips_unread(const Graph& g, NodeId id, int result) const override {
    return runner(g, id).skips_unread(g, id, result);
  }
  bool plans_bodies(const Graph& g, NodeId id) const override { return runner(g, id).plans_bodies(g, id); }
  // Weights get the packed layouts of the first device, because its code makes them.
  std::optional<PackedLayout> packed_layout(const Graph& g, NodeId id, int operand,
                                            const ConstantMatrix& of) const override {
    return on_host_segment(g, id) ? std::nullopt : first_->packed_layout(g, id, operand, of);
  }
  bool reads_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) const override {
    return !on_host_segment(g, id) && first_->reads_packed(g, id, operand, layout);
  }

 private:
  bool sent_to_host(std::string_view label) const {
    if (!host_ || placed_.empty()) return false;
    const Placed* p = placement_of(placed_, label);
    return p && p->device == host_number_;
  }
  bool host_takes(const Graph& g, NodeId id) const { return host_ && (host_->claims(g, id) || host_->on_host(g, id)); }
  // A part of the program that the host runs beside the first device.
  bool on_host_segment(const Graph& g, NodeId id) const {
    if (!host_ || op_def(g.node(id).kind()).is_leaf()) return false;
    if (sent_to_host(g.node(id).origin.label)) return true;
    return falls_back_ && first_->refuses(g, id) && !first_->on_host(g, id) && !host_controlled(g, id) &&
           host_takes(g, id);
  }
  const Target& runner(const Graph& g, NodeId id) const { return on_host_segment(g, id) ? *host_ : *first_; }

  std::shared_ptr<const Target> first_, host_;  // no host: null
  std::uint32_t host_number_;
  bool falls_back_;
  std::vector<Placed> placed_;
  OpSet kinds_;
};

/// Gives bodies the labels that place them with the node that holds them. Visits each body once per placement around
/// it.
class BodyLabels {
 public:
  explicit BodyLabels(std::span<const Placement> placement) : placement_(placement) {}

  /// None when all labels are already correct. `around` is the placement of the node that holds `g`; null: none.
  std::optional<Graph> labelled(const Graph& g, const Placement* around) {
    std::optional<Graph> out;
    for (std::uint32_t i = 0; i < g.num_nodes() && around; ++i) {
      const NodeId id{i};
      if (op_def(g.node(id).kind()).is_leaf()) continue;
      const Placement* own = placement_of(placement_, g.node(id).origin.label);
      if (own == around || (own && around->device.kind != Device::Cpu)) continue;
      if (!out) out = g;
      out->set_label(id, label_inside(g.node(id).origin.label, *around));
    }
    const Graph& now = out ? *out : g;
    std::optional<Graph> changed = change_bodies_of(now, [&](NodeId holder, const Subgraph& body) {
      return labelled(body, placement_of(placement_, now.node(holder).origin.label));
    });
    return changed ? std::move(changed) : std::move(out);
  }

 private:
  // Null: unchanged.
  Subgraph labelled(const Subgraph& body, const Placement* around) {
    if (const auto known = bodies_.find({body, around}); known != bodies_.end()) return known->second;
    std::optional<Graph> now = labelled(*body, around);
    Subgraph made = now ? std::make_shared<const Graph>(std::move(*now)) : nullptr;
    return bodies_.emplace(std::pair(body, around), std::move(made)).first->second;
  }
  // Returns a label that `around` places, followed by the node's own label unless a longer placement would match that.
  std::string label_inside(const std::string& own, const Placement& around) const {
    if (own.empty()) return around.label;
    std::string inside = concat_text(around.label, "/", own);
    return placement_of(placement_, inside) == &around ? inside : around.label;
  }

  std::span<const Placement> placement_;
  std::map<std::pair<Subgraph, const Placement*>, Subgraph> bodies_;
};

bool label_in(const Graph& g, std::string_view start) {
  for (const Node& n : g.nodes())
    if (begins_with(n.origin.label, start)) return true;
  return any_body(g, [&](const Graph& body) { return label_in(body, start); });
}

}  // namespace

ProgramTarget program_target(std::shared_ptr<const Target> target, const CompileOptions& options) {
  ProgramTarget out{std::move(target), {}, false};
  const Device kind = out.target->device();
  const bool falls_back = kind != Device::Cpu && options.kernel_dispatch.value_or(KernelDispatchConfig{}).host_fallback;
  if (options.placement.empty() && !falls_back) return out;
  std::vector<Placed> placed;
  std::vector<DeviceId> named;
  bool to_host = false;
  for (const Placement& p : options.placement) {
    for (const Placement& other : options.placement)
      if (other.label == p.label && other.device != p.device)
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("placement: label '", p.label, "' is placed on ", device_text(p.device), " and on ",
                                device_text(other.device)),
                    "give each label one device");
    if (p.device.kind != kind && p.device.kind != Device::Cpu)
      throw Error(
          ErrorCode::InvalidArgument,
          concat_text("placement: label '", p.label, "' is placed on ", device_text(p.device), ", but a program for ",
                      device_info(kind).name, " runs only on devices of that kind and on cpu"),
          "compile a graph for each kind of device");
    if (p.device.ordinal < 0)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("placement: label '", p.label, "' is placed on device number ", p.device.ordinal));
    if (p.device.kind == Device::Cpu && kind != Device::Cpu) {
      to_host = true;
      placed.push_back({p.label, ~0U});
      continue;
    }
    if (p.device.ordinal == options.ordinal) {  // back to the program's own device
      placed.push_back({p.label, 0});
      continue;
    }
    if (std::find(named.begin(), named.end(), p.device) == named.end()) named.push_back(p.device);
    const auto place = std::find(named.begin(), named.end(), p.device) - named.begin();
    placed.push_back({p.label, static_cast<std::uint32_t>(place) + 1});
  }
  std::shared_ptr<const Target> host;
  if (falls_back || to_host)
    if (const auto backend = backend_for(Device::Cpu)) host = backend->target({});
  if (to_host && !host)
    throw Error(ErrorCode::DeviceUnavailable, "placement on cpu: this build has no cpu backend",
                "build with RLX_CPU=ON");
  const auto host_number = static_cast<std::uint32_t>(named.size()) + 1;
  for (Placed& p : placed)
    if (p.device == ~0U) p.device = host_number;
  if (named.empty() && !host) return out;
  out.others = std::move(named);
  if (host) out.others.push_back(Device::Cpu);
  out.host_segments = host != nullptr;
  out.target = std::make_shared<const SeveralDevices>(std::move(out.target), std::move(host), host_number, falls_back,
                                                      std::move(placed));
  return out;
}

void check_placement(const Graph& g, const CompileOptions& options) {
  for (const Placement& p : options.placement) {
    if (label_in(g, p.label)) continue;
    std::vector<std::string> labels;
    for (const Node& n : g.nodes())
      if (!n.origin.label.empty()) labels.push_back(n.origin.label);
    throw Error(
        ErrorCode::NotFound,
        concat_text("placement: no node of graph '", g.name(), "' has a label that begins with '", p.label, "'"),
        did_you_mean(p.label, labels, "name the nodes with Graph::scope"));
  }
}

Graph label_bodies(Graph g, std::span<const Placement> placement) {
  if (placement.empty()) return g;
  std::optional<Graph> labelled = BodyLabels(placement).labelled(g, nullptr);
  return labelled ? std::move(*labelled) : std::move(g);
}

Graph insert_transfers(const Graph& g, const Target& target, std::uint32_t home) {
  std::vector<std::uint32_t> devices = devices_of_nodes(g, target, home);
  const bool several = std::any_of(devices.begin(), devices.end(), [&](std::uint32_t d) { return d != home; });
  // Bodies have their own transfers. The device of a loop is their home device.
  const auto with_placed_bodies = [&](std::uint32_t i) {
    const Node& n = g.nodes()[i];
    if (op_def(n.op).bodies != BodyKind::Programs || !target.host_controlled(g, NodeId{i})) return n.op;
    return with_bodies(n.op, [&](std::string_view, const Subgraph& body) -> Subgraph {
      return std::make_shared<const Graph>(insert_transfers(*body, target, devices[i]));
    });
  };
  Graph out = copy_shell(g);
  out.reserve(g.num_nodes());
  std::vector<NodeId> map(g.num_nodes());
  std::map<std::pair<Value, std::uint32_t>, Value> there;  // copies made so far
  const auto on = [&](Value old, std::uint32_t device) {
    const Value v(map[old.node.index], old.result);
    const Node& n = g.node(old.node);
    if (devices[old.node.index] == device || n.kind() == OpKind::Param || n.kind() == OpKind::Constant) return v;
    const auto [it, added] = there.try_emplace({old, device}, v);
    if (added) it->second = Value(out.add_node(Node{ops::Transfer{device}, {v}, {g.shape(old)}, n.origin}));
    return it->second;
  };
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    Node n = g.nodes()[i];
    n.op = with_placed_bodies(i);
    for (Value& v : n.inputs) v = several ? on(v, devices[i]) : Value(map[v.node.index], v.result);
    map[i] = out.add_node(std::move(n));
  }
  std::vector<Value> outputs;
  for (Value v : g.outputs()) outputs.push_back(on(v, home));
  out.set_outputs(std::move(outputs));
  for (const Graph::StateUpdate& u : g.state_updates())
    out.set_state(u.name, on(u.value, devices[NodeId(g.find_leaf(OpKind::State, u.name)).index]));
  for (const auto& [symbol, source] : g.symbol_sources()) out.set_symbol_source(symbol, on(source, home));
  return out;
}

bool runs_on(const Graph& g, const Target& target, std::uint32_t device, std::uint32_t home) {
  const std::vector<std::uint32_t> devices = devices_of_nodes(g, target, home);
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    if (op_def(n.kind()).is_leaf()) continue;
    if (devices[i] == device) return true;
    if (op_def(n.op).bodies != BodyKind::Programs || !target.host_controlled(g, NodeId{i})) continue;
    for (const Subgraph& body : body_graphs(n.op))
      if (runs_on(*body, target, device, devices[i])) return true;
  }
  return false;
}

}  // namespace rlx
