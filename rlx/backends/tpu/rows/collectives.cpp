// Rows of collectives of one rank, which are their operands: nobody else sees them run, so that they need no order.
#include "rlx/ir/ops/collectives.h"
#include "rlx/backends/tpu/rows.h"

namespace rlx::tpu {
namespace {

template <class Op>
const char* refuses_ranks(const Graph& g, NodeId id) {
  return g.node(id).op.as<Op>().ranks == 1 ? nullptr : "the device runs one rank";
}

void emit_operands(RowContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set(static_cast<std::uint32_t>(i), c.in(i));
}
void emit_permute(RowContext& c) {
  c.set(c.op<ops::Permute>().pairs.empty() ? c.w.full(c.type().dtype, 0, c.dims()) : c.in(0));
}
void emit_axis_index(RowContext& c) { c.set(c.w.scalar(DType::I64, 0)); }

}  // namespace

std::span<const Row> collective_rows() {
  static constexpr Row kRows[] = {
      {OpKind::AllReduce, refuses_ranks<ops::AllReduce>, emit_operands},
      {OpKind::AllGather, refuses_ranks<ops::AllGather>, emit_operands},
      {OpKind::ReduceScatter, refuses_ranks<ops::ReduceScatter>, emit_operands},
      {OpKind::AllToAll, refuses_ranks<ops::AllToAll>, emit_operands},
      {OpKind::Permute, refuses_ranks<ops::Permute>, emit_permute},
      {OpKind::AxisIndex, refuses_ranks<ops::AxisIndex>, emit_axis_index},
  };
  return kRows;
}

}  // namespace rlx::tpu
