// Runs of a graph on the proof device against the exact result, with params, states and drawn values.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "rlx/runtime/session.h"
#include "tests/proof/proof_device.h"
#include "tests/support/rounding.h"
#include "tests/support/samples.h"

namespace rlx::test {

inline Shape f32(Dims dims) { return Shape(std::move(dims), DType::F32); }

/// Values for inputs and params: true, 5, or numbers around 0.
inline NamedTensors drawn(const Graph& g) {
  NamedTensors values;
  std::uint64_t seed = 1;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind)) {
      const Shape& s = g.shape(id);
      values.emplace(g.leaf_name(id), s.dtype() == DType::Bool ? Tensor::full(s, 1)
                                      : is_int(s.dtype())      ? Tensor::full(s, 5)
                                                               : draw(s, Fill::Unit, 1, seed++));
    }
  return values;
}

/// Compares two runs of `f`, from its first states on, with what the rules compute exactly of `g`.
inline void check_runs(CompiledGraph& f, const Graph& g, NamedTensors values) {
  NamedTensors inputs;
  for (const IoInfo& p : f.params()) f.set_param(p.name, values.at(p.name));
  for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
  f.reset();
  for (int run = 0; run < 2; ++run) {
    const BoundedResult exact = evaluate_bounded(g, values);
    const std::vector<Tensor> got = f.run_typed(inputs);
    REQUIRE(got.size() == exact.outputs.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Gap gap = gap_to(got[i], exact.outputs[i]);
      CHECK_MESSAGE(gap.size <= 1, "run ", run, ", result ", i, ": ", gap.text);
    }
    for (const IoInfo& s : f.states()) {
      const Tensor state = f.read_state(s.name);
      if (const auto it = exact.states.find(s.name); it != exact.states.end()) {
        const Gap gap = gap_to(state, it->second);
        CHECK_MESSAGE(gap.size <= 1, "run ", run, ", state ", s.name, ": ", gap.text);
      }
      values.insert_or_assign(s.name, state);
    }
  }
}

/// The same of a program compiled for the proof device; which nodes of it the host drives, and which it runs.
inline std::string check_on_proof(const Graph& g, const NamedTensors& values, const CompileOptions& options = {}) {
  CompiledGraph f = Session(ProofScope::kDevice).compile_with(Graph(g), options);
  check_runs(f, g, values);
  std::string text;
  for (const KindDispatch& k : f.compile_result().dispatch.summaries)
    if (k.path == DispatchPath::HostFallback || k.path == DispatchPath::Driven)
      text += concat_text(k.path == DispatchPath::Driven ? "" : "host:", k.name, " ");
  return text;
}

}  // namespace rlx::test
