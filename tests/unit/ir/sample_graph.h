// A graph around one op sample: an input per operand, every result an output.
#pragma once

#include "rlx/ir/op_def.h"
#include "rlx/testing/op_samples.h"
#include "tests/support/custom_ops.h"

namespace rlx::test {

inline Graph graph_of(const testing::Sample& sample) {
  Graph g("sample");
  std::vector<Value> operands;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    operands.push_back(g.input(concat_text("in", i), sample.inputs[i].shape));
  Expr e = g.add(sample.op, operands);
  g.set_label(e.value().node, "the \"sample\"");
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.emplace_back(e.value().node, r);
  g.set_outputs(outputs);
  return g;
}

/// Calls f(def, sample) for every sample of every op, as its library declares it: without values and subcases.
template <class F>
void for_each_op_sample(F f) {
  for (const OpDef* def : test::ops_under_test())
    for (const testing::Sample& s : testing::op_samples(*def)) f(*def, s);
}

}  // namespace rlx::test
