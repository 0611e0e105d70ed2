// Op structs with bodies that are programs: branches, loops, calls; and the barrier that keeps recomputation apart.
//
// A body is closed: Inputs, Constants and ops, whose results are its outputs. Its Inputs, in node order, take the
// operands that are named here. Bodies may hold ops with bodies.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// then(operands..) where pred is true, else otherwise(operands..): one of them runs. Inputs: pred (Bool scalar),
/// operands... Results: the outputs of the branches, whose shapes and dtypes agree.
struct If { RLX_OP(If); Subgraph then{}, otherwise{}; };
/// while cond(invariants.., carries..): carries.., ys.. = body(invariants.., carries..). Inputs: `invariants` values
/// that every trip reads, then the initial carries; cond gives a Bool scalar. Results: the last carries; every y
/// stacked along a new axis 0 of extent max_trips, rows of trips that did not happen zero; the number of trips (I64
/// scalar). With max_trips the loop stops silently after so many trips; without it a body has no ys.
struct While {
  RLX_OP(While);
  std::int64_t invariants = 0;
  std::optional<std::int64_t> max_trips{};
  Subgraph cond{}, body{};
};
/// For t = 0 .. length - 1 (downwards when `reverse`): carries.., ys.. = body(invariants.., carries.., xs[t]..).
/// Inputs: `invariants` values that every step reads, `carries` initial values, xs [length, ..]. Results: the last
/// carries, ys [length, ..]. `checkpoint`: reverse mode keeps the carries of each step alone, and computes the rest
/// again.
struct Scan {
  RLX_OP(Scan);
  std::int64_t invariants = 0, carries = 0;
  Dims length{};  // one dimension
  bool reverse = false, checkpoint = false;
  Subgraph body{};
};
/// body(operands..). Composite; derivatives may be given. `forward` (operands..) -> results.., residuals.. and
/// `backward` (residuals.., cotangents of the results..) -> cotangents of the operands are used together; without
/// `forward` the residuals are operands.., results... `jvp` (operands.., tangents of the operands..) -> results..,
/// tangents of the results. Cotangents and tangents are those of floating or complex values only.
struct Call {
  RLX_OP(Call);
  CallSave save = CallSave::All;
  Subgraph body{}, forward{}, backward{}, jvp{};
};
/// The operands; none of the results is computed before all operands are, and nothing is merged or moved across.
struct OptimizationBarrier { RLX_OP(OptimizationBarrier); };

}  // namespace ops
}  // namespace rlx
// clang-format on
