// An LIR with its kernel entries and the packed layouts of its weights.
#include "rlx/backends/cpu/executable.h"

#include <algorithm>

#include "rlx/backends/cpu/control/loop_writer.h"
#include "rlx/backends/cpu/instance.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/threads/chunk_audit.h"

namespace rlx::cpu {

CpuExecutable::CpuExecutable(LirModule lir, const KernelTable& kernels, const BackendOptions& options)
    : lir_(std::move(lir)),
      kernels_(kernels),
      threads_(checked_thread_count(options.threads, "threads")),
      finest_grain_(options.finest_grain),
      audit_(options.chunk_audit),
      row_of_(lir_.graph.num_nodes()) {
  for (const LirStep& s : lir_.plan.schedule) {
    if (!compiled(rows_.size())) {
      rows_.push_back(nullptr);
      continue;
    }
    const KernelEntry* row = entry_table().find(lir_.graph, s.node);
    if (!row && runs_on_host(lir_.graph, s.node)) row = &host_entry();
    if (!row)
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("the cpu backend has no kernel for ", node_text(lir_.graph, s.node)),
                             node_where(lir_.graph, s.node), "legalize the graph for this target first"});
    rows_.push_back(row);
    row_of_[s.node.index] = row;
  }
  for (std::uint32_t i = 0; i < lir_.prepare.num_nodes(); ++i) {
    const auto* op = lir_.prepare.nodes()[i].op.get_if<ops::Relayout>();
    if (!op) continue;
    const bool coded = is_block_scheme(op->scheme);
    if (!(coded ? reads_interleaved(kernels_, op->form, op->k, op->n) && interleaved_scheme(op->form) == op->scheme
                : reads_packed_b(kernels_, op->form, op->k, op->n)))
      throw Error(Diagnostic{ErrorCode::Unsupported,
                             concat_text("the kernels of cpu (", isa_name(kernels_.isa),
                                         ") do not read the packed layout '", packed_layout_text(op->form), "'"),
                             node_where(lir_.prepare, NodeId{i}), "compile the graph on this machine"});
    std::vector<std::int64_t>& begins = begins_[i];
    begins.push_back(0);
    for (std::size_t k = 0; k < op->sources.size() / 4; ++k) begins.push_back(begins.back() + op->source(k).columns);
  }
}

PanelSource CpuExecutable::panel_source(NodeId node, std::size_t source, const ColumnRange& columns) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  check(source < op.sources.size() / 4, "a relayout has no source of this number");
  const std::int64_t begin = begins_.at(node.index)[source];  // first column of the source in all matrices
  return {op, op.source(source), op.n == 0 ? 0 : begin % op.n, columns.begin, columns.end};
}

std::size_t CpuExecutable::matrix_offset(NodeId node, std::size_t source) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  const std::int64_t matrix = op.n == 0 ? 0 : begins_.at(node.index)[source] / op.n;
  return static_cast<std::size_t>(matrix * layout_of_one_matrix(op.form).bytes);
}

void CpuExecutable::encode(NodeId node, std::size_t source, const ColumnRange& columns, DType dtype,
                           const std::byte* values, std::byte* layout) const {
  const PanelSource all = panel_source(node, source, columns);
  std::byte* to = layout + matrix_offset(node, source);
  const bool coded = is_block_scheme(all.op.scheme);
  // Threads write disjoint cache lines, except at the ends of a source.
  const std::int64_t step =
      coded ? encode_columns_at_a_time(all.op.form, all.op.k) : panel_chunk(*panels_of(all.op.form), all.op.k);
  const std::int64_t first = (all.first + all.begin) / step, last = (all.first + all.end + step - 1) / step;
  ThreadPool::process().parallel_for(
      last - first,
      [&](std::int64_t chunk) {
        PanelSource part = all;
        part.begin = std::max(all.begin, (first + chunk) * step - all.first);
        part.end = std::min(all.end, (first + chunk + 1) * step - all.first);
        if (coded)
          encode_interleaved(part, values, to);
        else
          encode_packed_b(kernels_, part, dtype, values, to);
      },
      threads_);
}

void CpuExecutable::decode(NodeId node, std::size_t source, const std::byte* layout, DType dtype,
                           std::byte* values) const {
  const auto& op = lir_.prepare.node(node).op.as<ops::Relayout>();
  const PanelSource all = panel_source(node, source, {0, op.source(source).columns});
  const std::byte* matrix = layout + matrix_offset(node, source);
  if (is_block_scheme(op.scheme)) return decode_interleaved(all, matrix, values);
  decode_packed_b(all, matrix, dtype, values);
}

std::unique_ptr<Instance> CpuExecutable::bind(OpenDevice&, const LirModule& program,
                                              std::span<const BufferView> arenas) const {
  return std::make_unique<CpuInstance>(*this, program, arenas, false);
}

std::string CpuExecutable::kernel_name(NodeId node) const {
  const KernelEntry* row = node.index < row_of_.size() ? row_of_[node.index] : nullptr;
  if (!row) return "none";
  const std::string name = concat_text(row->kernel, " (", isa_name(kernels_.isa), ")");
  if (row->kind != OpKind::Scan && row->kind != OpKind::While) return name;
  const char* const why = bodies_not_small(lir_.graph, node);  // null for a loop of straight-line code
  return why ? concat_text(name, ", step by step: ", why) : name;
}

}  // namespace rlx::cpu
