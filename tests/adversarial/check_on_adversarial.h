// Runs a graph on the adversarial test device and compares with the exact result.
#pragma once

#include <string>

#include "tests/adversarial/adversarial_device.h"
#include "tests/support/run_check.h"

namespace rlx::test {

/// Compiles `g` for the adversarial test device and checks two runs. Returns the kinds of nodes that are
/// host-controlled, and those that run on the host, as "host:kind".
inline std::string check_on_adversarial(const Graph& g, const NamedTensors& values,
                                        const CompileOptions& options = {}) {
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  check_runs(f, g, values);
  std::string text;
  for (const KindDispatch& k : f.compile_result().dispatch.summaries)
    if (k.path == DispatchPath::HostFallback || k.path == DispatchPath::HostControlled)
      text += concat_text(k.path == DispatchPath::HostControlled ? "" : "host:", k.name, " ");
  return text;
}

}  // namespace rlx::test
