// Programs with states, for runs that fail on the adversarial test device in opaque mode: of one graph, and of several
// parts.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"

namespace rlx::test {

struct StateProgram {
  std::string name;
  Graph graph;
  NamedTensors inputs;
  OpSet refused{};          // ops that the device refuses
  std::string elsewhere{};  // the label of the nodes on its second ordinal
  bool is_one_graph() const { return refused.count() == 0 && elsewhere.empty(); }
  AdversarialOptions mode() const;
  CompiledGraph compile() const;
};

/// The programs. Each updates states and has one state, "scale", that it only reads.
std::vector<StateProgram> state_programs();

/// The states of `f` in order; null for an invalid one.
std::vector<Tensor> valid_states(const CompiledGraph& f);

}  // namespace rlx::test
