// Op structs: collectives, which the ranks of a mesh run together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

// Who runs one together: the ranks that differ in the coordinates of `mesh_axes` alone ("data", or several as
// "data,model"), `ranks` of them, numbered row-major. The op holds the number, for shapes depend on it; the mesh that a
// program is compiled for has to agree (CompileOptions::mesh).

/// Every operand reduced over the ranks, on all of them. Results: one for each operand, of its shape.
struct AllReduce {
  RLX_OP(AllReduce);
  ReduceKind fn = ReduceKind::Sum;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// The values of all ranks joined along `axis`, on all of them: [.., n, ..] -> [.., ranks n, ..].
struct AllGather { RLX_OP(AllGather); std::int64_t axis = 0; std::string mesh_axes{}; std::int64_t ranks = 1; };
/// Rank r gets part r along `axis` of the reduced values: [.., ranks n, ..] -> [.., n, ..]. fn is sum or mean.
struct ReduceScatter {
  RLX_OP(ReduceScatter);
  ReduceKind fn = ReduceKind::Sum;
  std::int64_t axis = 0;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// Rank r sends part s along `split` to rank s, and joins what it gets along `concat`, in the order of ranks.
struct AllToAll {
  RLX_OP(AllToAll);
  std::int64_t split = 0, concat = 0;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// The value of rank a goes to rank b for every pair a, b of `pairs`, one after the other; no rank is twice a source or
/// twice a target, and one that is no target gets zeros.
struct Permute { RLX_OP(Permute); std::vector<std::int64_t> pairs{}; std::string mesh_axes{}; std::int64_t ranks = 1; };
/// The number of this rank among those that differ in `mesh_axes`, an I64 scalar. Not ordered: nobody waits for it.
struct AxisIndex { RLX_OP(AxisIndex); std::string mesh_axes{}; std::int64_t ranks = 1; };

}  // namespace ops
}  // namespace rlx
// clang-format on
