// The devices of nodes: the target's answers, views with their operands, states with their makers.
#include "rlx/compiler/node_devices.h"

#include <algorithm>
#include <map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"

namespace rlx {
namespace {

// Sets the devices of all nodes except leaves, which have their devices already.
void place_nodes(const Graph& g, const Target& target, std::uint32_t home, std::vector<std::uint32_t>& devices) {
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    const OpDef& def = op_def(n.kind());
    if (def.is_leaf()) continue;
    if (const auto* transfer = n.op.get_if<ops::Transfer>())
      devices[i] = static_cast<std::uint32_t>(transfer->to);
    else
      devices[i] =
          def.view == ViewKind::Always ? devices[n.inputs[0].node.index] : target.device_of(g, NodeId{i}, home);
  }
}

// A state lies on the device that makes its new value. A state that is only read lies on the first device that reads
// it, if that device keeps values as the home device does. Returns true when a state is not on the home device.
// Existing transfers change nothing.
bool place_states(const Graph& g, const Target& target, std::uint32_t home, std::vector<std::uint32_t>& devices) {
  std::map<NodeId, std::uint32_t> found;
  for (const Graph::StateUpdate& u : g.state_updates())
    if (!op_def(g.node(u.value.node).kind()).is_leaf())
      found.emplace(g.find_leaf(OpKind::State, u.name), devices[u.value.node.index]);
  std::map<NodeId, std::uint32_t> readers;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    for (Value v : g.nodes()[i].inputs) {
      if (g.node(v.node).kind() != OpKind::State || g.nodes()[i].kind() == OpKind::Transfer) continue;
      const auto [first, added] = readers.try_emplace(v.node, devices[i]);
      first->second = std::min(first->second, devices[i]);
    }
  found.merge(readers);  // states without a maker
  bool away = false;
  for (const auto& [state, device] : found) {
    if (device == home || target.of_device(device).opaque() != target.of_device(home).opaque()) continue;
    devices[state.index] = device;
    away = true;
  }
  return away;
}

}  // namespace

std::vector<std::uint32_t> devices_of_nodes(const Graph& g, const Target& target, std::uint32_t home) {
  std::vector<std::uint32_t> devices(g.num_nodes(), home);
  place_nodes(g, target, home, devices);
  if (place_states(g, target, home, devices)) place_nodes(g, target, home, devices);  // views of states move with them
  return devices;
}

}  // namespace rlx
