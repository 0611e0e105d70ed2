// The smallest program with states, and its behaviour that all devices share: bodies of tests that run on the
// adversarial test device and on the devices of tests/devices.
#pragma once

#include <vector>

#include "rlx/runtime/session.h"

namespace rlx::test {

/// count += 1; total += x. Outputs: the total before, x * w. All values but the count are f32 [4].
Graph counter();
/// The counter, compiled by `session` with w = 2.
CompiledGraph compiled_counter(const Session& session);
/// Four copies of `x`.
inline std::vector<float> fours(float x) { return std::vector<float>(4, x); }
/// The floats in a slot of `f`.
std::vector<float> values_at(const CompiledGraph& f, const Slot& s);

/// Checks every kind of run; states between runs, written and reset; a weight that changes; and a clone that keeps its
/// own weights.
void check_kinds_of_runs(const Session& session);
/// Checks pending runs: in order, drained, pipelined, and of a program that is destroyed meanwhile.
void check_runs_in_flight(const Session& session);
/// Checks tensors that stay on the device from run to run and are copied to the host on request.
void check_device_tensors(const Session& session);
/// Checks two programs that share states, each on its own stream.
void check_shared_states(const Session& session);

}  // namespace rlx::test
