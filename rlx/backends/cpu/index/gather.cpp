// Gather for every dtype, also from packed tables.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/index/indices.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/tensor/visit.h"

namespace rlx::cpu {
namespace {

struct GatherStep : Gathered {
  std::int64_t units = 0, per_chunk = 1;
};
void run_gather(const GatherStep& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
  for (std::int64_t u = chunk * s.per_chunk; u < end;) {
    const std::int64_t first = u % s.from.count, last = std::min(s.from.count, first + end - u);
    gather_blocks(s, u / s.from.count, first, last);
    u += last - first;
  }
}
void lower_gather(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  const auto& op = c.op<ops::Gather>();
  auto& s = c.keep<GatherStep>();
  point_blocks(c, s.from, x, op.axes, op.mode);
  s.units = s.from.blocks.outer * s.from.count;
  s.bits = dtype_bits(x.dtype);
  store_element(s.fill, x.dtype, 0, op.fill);
  const double bytes = static_cast<double>(s.from.blocks.size()) * s.bits / 8;
  const double unit_ns = bytes <= 16 ? 1.5 * static_cast<double>(op.axes.size()) : 10 + bytes / 15.0;
  s.per_chunk = s.bits < 8 ? s.units : c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(5000 / unit_ns)));
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_gather>(s, (s.units + s.per_chunk - 1) / s.per_chunk, unit_ns * static_cast<double>(s.units));
}
const char* gather_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Gather>();
  for (const std::int64_t axis : op.axes)
    if (op.mode == IndexMode::Clamp && in_shape(g, id, 0).dim(static_cast<int>(axis)).is_static(0) &&
        in_shape(g, id, 1).rank() == 0)
      return "it gathers a row from an axis of extent 0";
  return index_refuses(g, id);
}
bool gather_reads_strided(const Graph&, NodeId, int operand) { return operand > 0; }

// Gathers rows of a table that a matmul reads as packed B tiles. A row of the table is a column of B [inner, extent].
struct PanelGather {
  Indices indices;
  Panels panels;
  std::int64_t extent = 0, inner = 0, rows = 0, rows_per_chunk = 1;
  const std::byte* x = nullptr;
  float* y = nullptr;
};
void run_panel_gather(const PanelGather& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.rows, (chunk + 1) * s.rows_per_chunk);
  for (std::int64_t r = chunk * s.rows_per_chunk; r < end; ++r) {
    const std::int64_t at = std::clamp<std::int64_t>(s.indices.at(r), 0, s.extent - 1);
    read_panel_column(s.panels, s.inner, s.extent, at, s.x, s.y + r * s.inner);
  }
}
void lower_panel_gather(LowerContext& c) {
  const View x = c.in(0), indices = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<PanelGather>();
  s.panels = *panels_of(packed_layout_of(c.graph(), c.node().inputs[0]));
  s.indices.wide = indices.dtype == DType::I64;
  s.extent = x.dim(0);
  s.inner = x.dim(1);
  s.rows = indices.elements();
  const double row_ns = 3 + static_cast<double>(s.inner) * 2;  // each element lies in a cache line of its own
  s.rows_per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(5000 / row_ns)));
  c.point(s.indices.data, indices);
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_panel_gather>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk, row_ns * static_cast<double>(s.rows));
}
const char* panel_gather_refuses(const Graph& g, NodeId id) {
  return refuse_unless(panels_of(packed_layout_of(g, g.node(id).inputs[0])).has_value(), "its table is not prepacked");
}
// True for gathers of table rows with clamped indices.
bool reads_rows(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Gather>();
  return op.axes == std::vector<std::int64_t>{0} && op.mode == IndexMode::Clamp;
}
bool gather_reads_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) {
  return operand == 0 && reads_rows(g, id) && in_dtype(g, id, 0) == DType::F32 && layout.lossless &&
         panels_of(layout).has_value();
}

constexpr KernelEntry kGatherEntries[] = {
    {OpKind::Gather, "gather_packed", panel_gather_refuses, lower_panel_gather},
    {OpKind::Gather, "gather_blocks", gather_refuses, lower_gather, gather_reads_strided, nullptr, false, nullptr,
     gather_reads_packed},
};

}  // namespace

std::span<const KernelEntry> gather_entries() { return kGatherEntries; }

}  // namespace rlx::cpu
