// Random programs whose extents depend on values of inputs, params, states or of the run itself, and a check of many
// runs of one against the evaluator.
#pragma once

#include <cstdint>
#include <functional>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::test {

/// Leaves: inputs x [n] F64 and k [] I64, params w [n] F64 and p [] I64, states total [n] F64 and count [] I64. All its
/// numbers are integers, so every order of additions gives the same result.
struct ValueProgram {
  Graph graph;
  std::int64_t n = 0;
  std::int64_t symbols = 0;  // number drawn; some may fold away
};
ValueProgram random_value_program(std::uint64_t seed);

/// Values of its inputs and params.
NamedTensors random_value_inputs(const ValueProgram& program, std::uint64_t seed);

/// Runs `f`, compiled from `program`, `runs` times with changing inputs, params, written states and clones, and
/// compares outputs and states with the evaluator after each run.
void check_value_program(const ValueProgram& program, CompiledGraph f, std::uint64_t seed, int runs);

}  // namespace rlx::test
