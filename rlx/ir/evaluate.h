// Runs any graph op by op with the reference rules, on heap tensors: the constant folder, the property oracle.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

/// Named tensors: inputs, params and states together (a graph's leaf names are distinct per kind, so one map serves).
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

struct EvaluateResult {
  std::vector<Tensor> outputs;
  NamedTensors states;  // every state after the run
};

/// Evaluates `g`. `values` binds every Input and Param, and any State that should not start at its initial value;
/// symbolic dimensions are solved from the bound shapes. Throws NotFound naming a missing or unknown leaf,
/// ShapeMismatch for a wrong shape.
EvaluateResult evaluate_with_states(const Graph& g, const NamedTensors& values);
/// The outputs alone.
std::vector<Tensor> evaluate(const Graph& g, const NamedTensors& values = {});

/// Runs one op on tensors with its reference rule, or through its decomposition when that is how it is defined.
std::vector<Tensor> evaluate_op(const OpBox& op, std::span<const Tensor> inputs);

/// Symbol values that make the declared leaf shapes equal the given ones; throws ShapeMismatch when there are none.
SymbolBinding solve_symbols(const Graph& g, const std::map<std::string, std::vector<std::int64_t>, std::less<>>& dims);

/// The graph computed in F64: every float leaf, constant and cast target becomes F64 (complex C128). Leaf names stay.
Graph to_f64(const Graph& g);

}  // namespace rlx
