// Placement of one program over several devices: the device of each node, and the transfers between devices.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/target.h"
#include "rlx/ir/graph.h"
#include "rlx/tensor/buffer.h"

namespace rlx {

struct CompileOptions;
struct Placement;

/// A target that stands for all devices of one program.
struct ProgramTarget {
  std::shared_ptr<const Target> target;
  std::vector<DeviceId> others;  // after the first, which is the one compiled for (LirModule::others)
  bool host_segments = false;    // the last of them is the host, for refused nodes; may be unused
};

/// `target` with the devices that `options.placement` names. The host is added, where `options` allow it, for nodes
/// that `target` refuses and that have no decomposition. Returns `target` itself when there are neither placements nor
/// host nodes. Throws InvalidArgument for a device that is neither of the target's kind nor the host, and for a label
/// with two devices.
ProgramTarget program_target(std::shared_ptr<const Target> target, const CompileOptions& options);

/// Throws NotFound for a placement whose label no node of `g` has, bodies included.
void check_placement(const Graph& g, const CompileOptions& options);

/// Labels the bodies of `g` with their placement. A node of a body is placed with the branch or loop that holds it,
/// unless its own label places it. The cpu runs the bodies of its nodes itself, whatever their labels. So a query about
/// a node of a body reaches the target of the device that will run it.
Graph label_bodies(Graph g, std::span<const Placement> placement);

/// `g`, whose inputs are on device `home`, with a Transfer wherever a node reads a value of another device. Outputs are
/// brought to `home`, new values of states to the devices of their states. Every device has its own params and
/// constants.
Graph insert_transfers(const Graph& g, const Target& target, std::uint32_t home = 0);

/// True when some node of `g`, bodies included, runs on device `device`.
bool runs_on(const Graph& g, const Target& target, std::uint32_t device, std::uint32_t home = 0);

}  // namespace rlx
