// Random programs whose extents are values that inputs, params, states or the run itself decide, and a check of many
// runs of one against the evaluator.
#pragma once

#include <cstdint>
#include <functional>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::test {

/// Leaves: inputs x [n] F64 and k [] I64, params w [n] F64 and p [] I64, states total [n] F64 and count [] I64. All
/// numbers that it makes are whole, so every order of additions gives the same.
struct ValueProgram {
  Graph graph;
  std::int64_t n = 0;
  std::int64_t symbols = 0;  // drawn; some may fold away
};
ValueProgram random_value_program(std::uint64_t seed);

/// Values of its leaves but the states.
NamedTensors random_value_inputs(const ValueProgram& program, std::uint64_t seed);

/// Runs `f`, compiled of `program`, `runs` times with changing inputs, params, written states and clones, and compares
/// outputs and states with the evaluator's after each.
void check_value_program(const ValueProgram& program, CompiledGraph f, std::uint64_t seed, int runs);

}  // namespace rlx::test
