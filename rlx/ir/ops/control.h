// Op structs with bodies that are programs: branches, loops, calls; and the optimization barrier of recomputation.
//
// A body is closed: it has Inputs, Constants and ops, and its outputs are the results. Its Inputs take, in node order,
// the operands that are named here. Bodies may hold ops with bodies.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// then(operands..) if pred is true, otherwise(operands..) if it is false; only that branch runs. Inputs: pred (Bool
/// scalar), operands... Results: the outputs of the branch. Both branches have the same output shapes and dtypes.
struct If { RLX_OP(If); Subgraph then{}, otherwise{}; };
/// A loop: while cond(invariants.., carries..) holds, carries.., ys.. = body(invariants.., carries..). Inputs:
/// `invariants` loop-invariant values, then the initial carries. cond gives a Bool scalar. Results: the last carries;
/// every y stacked along a new axis 0 of extent max_trips, with zeros for iterations that did not run; the number of
/// iterations (I64 scalar). With max_trips the loop ends after that many iterations, without an error. Without
/// max_trips a body has no ys.
struct While {
  RLX_OP(While);
  std::int64_t invariants = 0;
  std::optional<std::int64_t> max_trips{};
  Subgraph cond{}, body{};
};
/// A loop over t = 0 .. length - 1, downwards with `reverse`: carries.., ys.. = body(invariants.., carries.., xs[t]..).
/// Inputs: `invariants` loop-invariant values, `carries` initial values, xs [length, ..]. Results: the last carries, ys
/// [length, ..]. With `checkpoint`, reverse mode keeps only the carries of each step and recomputes the rest.
struct Scan {
  RLX_OP(Scan);
  std::int64_t invariants = 0, carries = 0;
  Dims length{};  // one dimension
  bool reverse = false, checkpoint = false;
  Subgraph body{};
};
/// body(operands..). Composite. The other bodies are custom derivatives. Reverse mode uses `forward` (operands..) ->
/// results.., residuals.. and `backward` (residuals.., cotangents of the results..) -> cotangents of the operands.
/// Without `forward` the residuals are operands.., results... Forward mode uses `jvp` (operands.., tangents of the
/// operands..) -> results.., tangents of the results. Only floating and complex values have cotangents and tangents.
struct Call {
  RLX_OP(Call);
  CallSave save = CallSave::All;
  Subgraph body{}, forward{}, backward{}, jvp{};
};
/// The operands, as XLA's optimization-barrier. No result is computed before all operands are, and passes neither merge
/// nor move ops across it.
struct OptimizationBarrier { RLX_OP(OptimizationBarrier); };

}  // namespace ops
}  // namespace rlx
// clang-format on
