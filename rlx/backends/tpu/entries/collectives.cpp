// Kernel entries of collectives of one rank. They return their operands, in the order of the graph.
#include "rlx/ir/ops/collectives.h"
#include "rlx/backends/tpu/entries.h"

namespace rlx::tpu {
namespace {

template <class Op>
const char* refuses_ranks(const Graph& g, NodeId id) {
  return g.node(id).op.as<Op>().ranks == 1 ? nullptr : "the device runs one rank";
}

void emit_operands(EmitContext& c) {
  const Hlos values = c.w.in_order(c.inputs());
  for (std::uint32_t i = 0; i < values.size(); ++i) c.set(i, values[i]);
}
void emit_permute(EmitContext& c) {
  const Hlos values = c.w.in_order(c.inputs());
  c.set(c.op<ops::Permute>().pairs.empty() ? c.w.full(c.type().dtype, 0, c.dims()) : values[0]);
}
void emit_axis_index(EmitContext& c) { c.set(c.w.scalar(DType::I64, 0)); }

}  // namespace

std::span<const KernelEntry> collective_entries() {
  static constexpr KernelEntry kRows[] = {
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
