// The table of kernel entries, and helpers of entries.
#include "rlx/codegen/entries/conv.h"
#include "rlx/codegen/entry.h"

namespace rlx::codegen {

const EntryTable<KernelEntry>& entry_table() {
  // Never destroyed: threads may compile while the process ends.
  static const EntryTable<KernelEntry>& table = *new EntryTable<KernelEntry>(
      {dot_entries(), conv_entries(), grouped_entries(), attention_entries(), norm_entries(), elementwise_entries(),
       move_entries(), reduce_entries(), index_entries(), sort_entries(), random_entries(), collective_entries()});
  return table;
}

NodeLaunches launches_of(const LirModule& lir, NodeId id, const Dialect& dialect) {
  const KernelEntry* row = entry_table().find(lir.graph, id);
  if (!row) check(false, concat_text("no kernel entry for a planned step: ", op_text_name(lir.graph.node(id).op)));
  NodeKernels node(lir, id, dialect);
  row->write(node);
  NodeLaunches made = node.take();
  if (row->steps) made.steps = row->steps(lir.graph, id, dialect);
  return made;
}

ScratchBytes widened_bytes(const Graph& g, NodeId id) {
  const Shape& y = g.shape(id);
  if (!y.is_static() || size_bytes(y.dtype()) >= 4) return {};
  const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(y.num_elements());
  return {bytes, bytes};
}

const char* refuse_node_dtypes(const Graph& g, const Node& n) {
  bool ok = true;
  for (Value v : n.inputs) ok = ok && computes(g.shape(v).dtype());
  for (const Shape& s : n.shapes) ok = ok && computes(s.dtype());
  return refuse_unless(ok, "WGSL has no type for the dtype of an operand or result");
}

}  // namespace rlx::codegen
