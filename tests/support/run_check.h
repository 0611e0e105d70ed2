// Runs of a graph compared with the exact result of its reference rules, with params, states and drawn values.
#pragma once

#include <doctest/doctest.h>

#include "rlx/runtime/session.h"
#include "tests/support/rounding.h"
#include "tests/support/samples.h"
#include "tests/support/shapes.h"

namespace rlx::test {

/// Drawn values for inputs and params: true, 5, or numbers around 0.
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

/// Checks that every result is within the bound of the exact one.
inline void expect_within_bound(const std::vector<Tensor>& got, const BoundedResult& exact) {
  REQUIRE(got.size() == exact.outputs.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Gap gap = gap_to(got[i], exact.outputs[i]);
    CHECK_MESSAGE(gap.size <= 1, "result ", i, ": ", gap.text);
  }
}

/// Compiles `g` and compares a run with the exact result.
inline CompiledGraph check_run(const Session& session, const Graph& g, const NamedTensors& values,
                               Subnormals subnormals = Subnormals::Kept) {
  CompiledGraph f = session.compile(Graph(g));
  expect_within_bound(f.run_typed(values), evaluate_bounded(g, values, subnormals));
  return f;
}
/// The same for a sample.
inline CompiledGraph check_sample(const Session& session, const Sample& sample,
                                  Subnormals subnormals = Subnormals::Kept) {
  INFO("variant '", sample.name, "'");
  return check_run(session, sample_graph(sample), bind_operands(draw_operands(sample)), subnormals);
}

/// Compares two runs of `f`, from its initial states on, with the exact results of `g`.
inline void check_runs(CompiledGraph& f, const Graph& g, NamedTensors values,
                       Subnormals subnormals = Subnormals::Kept) {
  NamedTensors inputs;
  for (const IoInfo& p : f.params()) f.set_param(p.name, values.at(p.name));
  for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
  f.reset();
  for (int run = 0; run < 2; ++run) {
    INFO("run ", run);
    const BoundedResult exact = evaluate_bounded(g, values, subnormals);
    expect_within_bound(f.run_typed(inputs), exact);
    for (const IoInfo& s : f.states()) {
      const Tensor state = f.read_state(s.name);
      if (const auto it = exact.states.find(s.name); it != exact.states.end()) {
        const Gap gap = gap_to(state, it->second);
        CHECK_MESSAGE(gap.size <= 1, "state ", s.name, ": ", gap.text);
      }
      values.insert_or_assign(s.name, state);
    }
  }
}

}  // namespace rlx::test
