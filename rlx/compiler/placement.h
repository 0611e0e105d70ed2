// One program over several devices: who runs which node, and the copies between them.
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

/// A target that stands for the devices of one program.
struct ProgramTarget {
  std::shared_ptr<const Target> target;
  std::vector<DeviceId> others;  // behind the first, which is the one compiled for (LirModule::others)
  bool host_segments = false;    // the last of them is the host, for what the first refuses: it may turn out unused
};

/// `target` with the devices that `options.placement` names, and with the host for what `target` refuses and nobody can
/// decompose, where `options` allow that. Where there is nothing of either it is `target` itself. Throws
/// InvalidArgument for a device of another kind than the target's or the host, and for a label with two devices.
ProgramTarget program_target(std::shared_ptr<const Target> target, const CompileOptions& options);

/// NotFound for a placement whose label no node of `g` has, bodies included.
void check_placement(const Graph& g, const CompileOptions& options);

/// `g` whose bodies say by labels what `placement` makes of them: a node of a body is placed with the branch or loop
/// that holds it, unless its own label places it. The cpu runs what it holds itself, whatever labels are in it. So
/// whoever asks a target about a node of a body asks of the device that will run it.
Graph label_bodies(Graph g, std::span<const Placement> placement);

/// `g`, whose inputs are on device `home`, with a Transfer wherever a node reads what another device made; outputs come
/// to `home`, new values of states to where these are. Params and constants are read by every device where it has them.
Graph insert_transfers(const Graph& g, const Target& target, std::uint32_t home = 0);

/// True when some node of `g`, bodies included, runs on device `device`.
bool runs_on(const Graph& g, const Target& target, std::uint32_t device, std::uint32_t home = 0);

}  // namespace rlx
