// Op structs: collectives, which the ranks of a mesh run together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

// A collective runs over a group of ranks: those that differ in the coordinates of `mesh_axes` alone ("data", or
// several axes as "data,model"). `ranks` is the size of the group, whose ranks are numbered row-major. The op holds the
// size, because shapes depend on it. The mesh of a program (CompileOptions::mesh) must agree with it.

/// Each operand reduced over the ranks, with the result on every rank. Results: one per operand, of its shape.
struct AllReduce {
  RLX_OP(AllReduce);
  ReduceKind fn = ReduceKind::Sum;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// The values of all ranks concatenated along `axis`, with the result on every rank: [.., n, ..] -> [.., ranks n, ..].
struct AllGather { RLX_OP(AllGather); std::int64_t axis = 0; std::string mesh_axes{}; std::int64_t ranks = 1; };
/// The values reduced over the ranks and split along `axis`: rank r gets part r, [.., ranks n, ..] -> [.., n, ..]. fn
/// is sum or mean.
struct ReduceScatter {
  RLX_OP(ReduceScatter);
  ReduceKind fn = ReduceKind::Sum;
  std::int64_t axis = 0;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// Rank r sends part s of x along the axis `split` to rank s, and concatenates the parts it receives along the axis
/// `concat`, in the order of ranks.
struct AllToAll {
  RLX_OP(AllToAll);
  std::int64_t split = 0, concat = 0;
  std::string mesh_axes{};
  std::int64_t ranks = 1;
};
/// Values sent between ranks, as lax.ppermute. `pairs` lists source and target ranks alternately: source 0, target 0,
/// source 1, target 1, ... No rank is a source twice or a target twice. A rank that is no target gets zeros.
struct Permute { RLX_OP(Permute); std::vector<std::int64_t> pairs{}; std::string mesh_axes{}; std::int64_t ranks = 1; };
/// The number of this rank in its group, an I64 scalar, as lax.axis_index. It is not an ordered op, since no rank waits
/// for another.
struct AxisIndex { RLX_OP(AxisIndex); std::string mesh_axes{}; std::int64_t ranks = 1; };

}  // namespace ops
}  // namespace rlx
// clang-format on
