// Runs one op: by its reference rule, by its decomposition under both policies, and its shape rule.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "tests/support/values.h"

namespace rlx::test {

/// The results of `op` on `inputs`. Checks that the decomposition, if any, gives the same.
inline std::vector<Tensor> run_op(const OpBox& op, const std::vector<Tensor>& inputs, double tolerance = 1e-12) {
  std::vector<Tensor> results = evaluate_op(op, inputs);
  if (!op_def(op.kind()).decompose.has()) return results;
  for (FusionPolicy policy : {FusionPolicy::Fusable, FusionPolicy::Direct}) {
    Graph g;
    std::vector<Expr> operands;
    NamedTensors values;
    for (const Tensor& t : inputs) {
      const std::string name = "in" + std::to_string(operands.size());
      operands.push_back(g.input(name, t.shape()));
      values.emplace(name, t);
    }
    g.set_outputs(decompose_into(g, op, operands, policy));
    const std::vector<Tensor> derived = evaluate(g, values);
    REQUIRE(derived.size() == results.size());
    for (std::size_t r = 0; r < derived.size(); ++r) expect_close(derived[r], results[r], tolerance);
  }
  return results;
}

/// The first result of `op` by its reference rule.
inline Tensor run(const OpBox& op, const std::vector<Tensor>& inputs) { return evaluate_op(op, inputs).at(0); }

/// The shape rule's refusal of operands of the given shapes, or "" when it accepts them.
inline std::string infer_error(const OpBox& op, const std::vector<Shape>& inputs) {
  auto shapes = infer_shapes(op, inputs);
  return shapes.ok() ? std::string() : shapes.error().text();
}

}  // namespace rlx::test
