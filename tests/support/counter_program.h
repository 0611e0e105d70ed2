// The smallest program with states, and what every device does alike with it: the bodies of tests that run on the
// adversarial test device and on the devices of tests/devices.
#pragma once

#include <vector>

#include "rlx/runtime/session.h"

namespace rlx::test {

/// count += 1; total += x; outputs: total before, x * w. All but the count are f32 [4].
Graph counter();
/// Compiled by `session`, with w = 2.
CompiledGraph compiled_counter(const Session& session);
/// Four times `x`.
inline std::vector<float> fours(float x) { return std::vector<float>(4, x); }
/// The floats of a slot of `f`.
std::vector<float> values_at(const CompiledGraph& f, const Slot& s);

/// Every kind of run; states between them, written and reset; a weight that changes, and a clone that keeps its own.
void check_kinds_of_runs(const Session& session);
/// Runs that nobody waits for yet: in order, drained, pipelined, and of a program that goes meanwhile.
void check_runs_in_flight(const Session& session);
/// Tensors that stay on the device from run to run, and come to the host when asked.
void check_device_tensors(const Session& session);
/// Two programs that share states, each on its stream.
void check_shared_states(const Session& session);

}  // namespace rlx::test
