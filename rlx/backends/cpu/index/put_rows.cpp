// Replaces rows, each selected by one index. A row is moved or encoded in place.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/index/indices.h"
#include "rlx/backends/cpu/quant/encoder.h"
#include "rlx/backends/cpu/runs.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::cpu {
namespace {

struct RowsStep {
  Indices indices;
  std::int64_t index_stride = 1, count = 0, extent = 0;
  bool clamp = false;
  std::int64_t unit = 1, units = 0, per_chunk = 1;  // bytes of an element or block; units of a row; units of a chunk
  Runs runs{};
  Encoder encoder{};
  const std::byte* x = nullptr;
  std::byte* y = nullptr;

  template <class F>
  void each(std::int64_t chunk, F f) const {
    const std::int64_t first = chunk * per_chunk, end = std::min(units, first + per_chunk);
    for (std::int64_t j = 0; j < count; ++j) {
      std::int64_t at = indices.at(j * index_stride);
      if (clamp) at = std::clamp<std::int64_t>(at, 0, extent - 1);
      if (at >= 0 && at < extent) f(j * units + first, j * units + end, y + (at * units + first) * unit);
    }
  }
};
void run_moved_rows(const RowsStep& s, std::int64_t chunk) {
  s.each(chunk, [&](std::int64_t first, std::int64_t end, std::byte* to) {
    s.runs.each(first, end, [&](std::int64_t at, std::int64_t count, std::int64_t from) {
      std::memcpy(to + from * s.unit, s.x + at * s.unit, static_cast<std::size_t>(count * s.unit));
    });
  });
}
void run_encoded_rows(const RowsStep& s, std::int64_t chunk) {
  s.each(chunk, [&](std::int64_t first, std::int64_t end, std::byte* to) { s.encoder.write(first, end, to); });
}
const char* put_rows_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Scatter>();
  if (op.fn != ScatterKind::Set) return "it combines updates with old values";
  if (op.axes != std::vector<std::int64_t>{0}) return "its indices are not along the first axis";
  if (in_shape(g, id, 1).rank() != 1) return "its indices are not a vector";
  // Finding a row costs more than moving a short one.
  const Shape& x = in_shape(g, id, 0);
  std::int64_t row = 1;
  for (int a = 1; a < x.rank() && row != 0; ++a) row = x.dim(a).is_static() ? row * x.dim(a).value() : 0;
  if (row != 0 && row < 16) return "its rows have fewer than 16 elements";
  return refuse_unless(dtype_bits(in_dtype(g, id, 0)) >= 8, "its elements are smaller than a byte");
}
void lower_put_rows(LowerContext& c) {
  const View x = c.in(0), y = c.out(), indices = c.in(1), updates = c.in(2);
  if (y.elements() == 0) return;
  copy_unless_in_place(c, x, y);
  if (updates.elements() == 0) return;
  auto& s = c.keep<RowsStep>();
  s.indices.wide = indices.dtype == DType::I64;
  s.index_stride = indices.stride(0), s.count = indices.dim(0), s.extent = y.dim(0);
  s.clamp = c.op<ops::Scatter>().mode == IndexMode::Clamp;
  c.point(s.indices.data, indices);
  c.point(s.y, y);
  const bool encodes = updates.where->place == Place::None;
  double unit_ns = 0;
  if (encodes) {
    s.encoder.point(c, c.node().inputs[2].node);
    s.unit = s.encoder.block_bytes();
    s.units = s.encoder.blocks() / s.count;
    unit_ns = s.encoder.block_ns();
  } else {
    s.runs = Runs(updates);
    s.unit = dtype_bits(y.dtype) / 8;
    s.units = updates.elements() / s.count;
    unit_ns = static_cast<double>(s.unit) / 15.0;
    c.point(s.x, updates);
  }
  // Each chunk processes all rows in order, so that the last row of a position stays.
  const double row_ns = unit_ns * static_cast<double>(s.count);
  s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(5000 / row_ns)));
  if (!encodes) s.per_chunk = std::max<std::int64_t>(s.per_chunk, c.finest() ? 1 : 64);
  const std::int64_t chunks = (s.units + s.per_chunk - 1) / s.per_chunk;
  const double cost = (unit_ns * static_cast<double>(s.units) + 5) * static_cast<double>(s.count);
  if (encodes)
    c.step<run_encoded_rows>(s, chunks, cost);
  else
    c.step<run_moved_rows>(s, chunks, cost);
}
bool put_rows_reads_strided(const Graph&, NodeId, int operand) { return operand > 0; }
// Blocks are encoded directly in their position.
bool put_rows_reads_encoded(const Graph& g, NodeId id, int operand) {
  if (operand != 2 || put_rows_refuses(g, id) != nullptr) return false;
  const NodeId from = g.node(id).inputs[2].node;
  return g.node(from).kind() == OpKind::Quantize && in_shape(g, id, 0).rank() > 1 &&
         encoder_refuses(g, from) == nullptr;
}

constexpr KernelEntry kPutEntries[] = {
    {.kind = OpKind::Scatter,
     .kernel = "put_rows",
     .refuses = put_rows_refuses,
     .lower = lower_put_rows,
     .reads_strided = put_rows_reads_strided,
     .in_place = over_first,
     .reads_encoded = put_rows_reads_encoded},
};

}  // namespace

std::span<const KernelEntry> put_rows_entries() { return kPutEntries; }

}  // namespace rlx::cpu
