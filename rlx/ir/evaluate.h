// The evaluator: runs any graph op by op with the reference rules, on heap tensors. It is the constant folder and the
// oracle of property tests.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Named inputs, params and states in one map.
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// What a run of the reference rules gives.
struct EvaluateResult {
  std::vector<Tensor> outputs;
  NamedTensors states;  // every state after the run
};

/// Evaluates `g`. `values` binds every Input and Param, and each State that should not start at its initial value.
/// Symbolic dimensions are solved from the bound shapes. Throws NotFound naming a missing or unknown leaf, and
/// ShapeMismatch for a wrong shape.
EvaluateResult evaluate_with_states(const Graph& g, const NamedTensors& values);
/// The outputs only.
std::vector<Tensor> evaluate(const Graph& g, const NamedTensors& values = {});

/// Runs one op on tensors with its reference rule, or by its decomposition when its reference is derived from that.
std::vector<Tensor> evaluate_op(const OpBox& op, std::span<const Tensor> inputs);

/// Symbol values for which the declared leaf shapes equal the given ones. Throws ShapeMismatch when there are none.
SymbolBinding solve_symbols(const Graph& g, const std::map<std::string, std::vector<std::int64_t>, std::less<>>& dims);

/// The graph in F64: every float leaf, constant and cast target becomes F64 (complex C128). Leaf names stay.
Graph to_f64(const Graph& g);

}  // namespace rlx
