// Programs with states for runs that fail on the adversarial test device's opaque mode: of one graph, and of parts.
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
  OpSet refused{};          // by the device
  std::string elsewhere{};  // the label of what runs on its second ordinal
  bool is_one_graph() const { return refused.count() == 0 && elsewhere.empty(); }
  AdversarialOptions mode() const;
  CompiledGraph compile() const;
};

/// Each updates states, and has one, "scale", that it only reads.
std::vector<StateProgram> state_programs();

/// The states of `f` by place; null for one that is invalid.
std::vector<Tensor> valid_states(const CompiledGraph& f);

}  // namespace rlx::test
