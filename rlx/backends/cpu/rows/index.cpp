// Gather, scatter-add and windows at run-time positions, for every dtype.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::cpu {
namespace {

/// Reads an I32 or I64 index.
struct Indices {
  const void* data = nullptr;
  bool wide = false;
  std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};

// -- gather --

struct GatherStep {
  AxisView table;
  Indices indices;
  std::int64_t count = 0, rows = 0, rows_per_chunk = 1;
  int bits = 8;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_gather(const GatherStep& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.rows, (chunk + 1) * s.rows_per_chunk);
  const auto row_bytes = static_cast<std::size_t>(s.table.inner * s.bits / 8);
  for (std::int64_t r = chunk * s.rows_per_chunk; r < end; ++r) {
    // Clamped as the op defines.
    const std::int64_t at = std::clamp<std::int64_t>(s.indices.at(r % s.count), 0, s.table.extent - 1);
    const std::int64_t from = r / s.count * s.table.extent + at;
    if (s.bits >= 8) {
      std::memcpy(static_cast<std::byte*>(s.y) + static_cast<std::size_t>(r) * row_bytes,
                  static_cast<const std::byte*>(s.x) + static_cast<std::size_t>(from) * row_bytes, row_bytes);
    } else {
      generic_move_row(s.bits, s.x, from * s.table.inner, s.y, r * s.table.inner, s.table.inner);
    }
  }
}
void lower_gather(LowerContext& c) {
  const View x = c.in(0), indices = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<GatherStep>();
  s.table = around(x, c.op<ops::Gather>().axis);
  s.indices.wide = indices.dtype == DType::I64;
  s.count = indices.elements();
  s.rows = s.table.outer * s.count;
  s.bits = dtype_bits(x.dtype);
  const double row_ns = 3 + static_cast<double>(s.table.inner) * s.bits / 8 / 15.0;
  s.rows_per_chunk = s.bits < 8 ? s.rows : c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(5000 / row_ns)));
  c.point(s.indices.data, indices);
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_gather>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk, row_ns * static_cast<double>(s.rows));
}
const char* gather_refuses(const Graph& g, NodeId id) {
  const auto axis = static_cast<int>(g.node(id).op.as<ops::Gather>().axis);
  return refuse_unless(!in_shape(g, id, 0).dim(axis).is_static(0) || in_shape(g, id, 1).rank() > 0,
                       "it takes one row of none");
}

// -- scatter add --

// A chunk owns a range of columns of every row, so that duplicates add up in the order of the updates. Sums are kept
// wide and rounded once.
template <class A>
struct ScatterStep {
  AxisView table;
  Indices indices;
  std::int64_t count = 0, columns = 0, columns_per_chunk = 1;
  const void *x = nullptr, *updates = nullptr;
  void* y = nullptr;
  A* sums = nullptr;
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;

  static void run(const ScatterStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.columns, (chunk + 1) * s.columns_per_chunk);
    for (std::int64_t begin = chunk * s.columns_per_chunk; begin < end;) {
      // Columns of one outer index.
      const std::int64_t outer = begin / s.table.inner, col = begin % s.table.inner;
      const std::int64_t n = std::min({end - begin, s.table.inner - col, std::int64_t{kGenericBlock}});
      A values[kGenericBlock];
      const auto at = [&](std::int64_t row) { return (outer * s.table.extent + row) * s.table.inner + col; };
      for (std::int64_t row = 0; row < s.table.extent; ++row)
        s.load(s.x, at(row), 1, static_cast<int>(n), s.sums + at(row));
      for (std::int64_t i = 0; i < s.count; ++i) {
        const std::int64_t row = s.indices.at(i);
        if (row < 0 || row >= s.table.extent) continue;
        s.load(s.updates, (outer * s.count + i) * s.table.inner + col, 1, static_cast<int>(n), values);
        A* to = s.sums + at(row);
        for (std::int64_t k = 0; k < n; ++k) to[k] = wide_add(to[k], values[k]);
      }
      for (std::int64_t row = 0; row < s.table.extent; ++row)
        s.store(s.y, at(row), 1, static_cast<int>(n), s.sums + at(row));
      begin += n;
    }
  }
};
void lower_scatter(LowerContext& c) {
  const View x = c.in(0), indices = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  visit_wide(x.dtype, [&]<class A>(A) {
    auto& s = c.keep<ScatterStep<A>>();
    s.table = around(x, c.op<ops::ScatterAdd>().axis);
    s.indices.wide = indices.dtype == DType::I64;
    s.count = indices.elements();
    s.columns = s.table.outer * s.table.inner;
    s.columns_per_chunk =
        c.grain(std::max<std::int64_t>(16, 4096 / std::max<std::int64_t>(1, s.table.extent + s.count)));
    s.sums = reinterpret_cast<A*>(c.workspace(static_cast<std::size_t>(y.elements()) * sizeof(A)));
    s.load = load_block<A>(x.dtype);
    s.store = store_block<A>(x.dtype);
    c.point(s.indices.data, indices);
    c.point(s.x, x);
    c.point(s.updates, c.in(2));
    c.point(s.y, y);
    c.step<ScatterStep<A>::run>(s, (s.columns + s.columns_per_chunk - 1) / s.columns_per_chunk,
                                2.0 * static_cast<double>(y.elements() * 2 + s.count * s.columns));
  });
}
const char* scatter_refuses(const Graph& g, NodeId id) { return refuse_storage_only(in_dtype(g, id, 0)); }

// -- windows --

// Copies a window whose place in x (or y) is known at run time.
struct WindowStep {
  GenericMove move;
  Indices starts;
  int rank = 0, bits = 8;
  std::int64_t highest[kGenericMaxRank] = {}, strides[kGenericMaxRank] = {};
  bool in_y = false;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_window(const WindowStep& s, std::int64_t chunk) {
  std::int64_t element = 0;
  for (int a = 0; a < s.rank; ++a) element += std::clamp<std::int64_t>(s.starts.at(a), 0, s.highest[a]) * s.strides[a];
  s.move.run(s.x, s.y, chunk, s.in_y ? 0 : element, s.in_y ? element : 0);
}
/// `whole` holds the window at `starts`; the other side is the window itself.
void add_window(LowerContext& c, const View& whole, const View& window, const View& starts, bool in_y) {
  if (window.elements() == 0) return;
  auto& s = c.keep<WindowStep>();
  s.rank = whole.rank();
  s.bits = dtype_bits(whole.dtype);
  s.starts.wide = starts.dtype == DType::I64;
  s.in_y = in_y;
  for (int a = 0; a < s.rank; ++a) {
    s.highest[a] = whole.dim(a) - window.dim(a);
    s.strides[a] = whole.stride(a);
  }
  s.move = in_y ? GenericMove(s.bits, window.dims, window.strides, whole.strides, 0, 0)
                : GenericMove(s.bits, window.dims, whole.strides, window.strides, 0, 0);
  if (c.finest()) s.move.cut_finest();
  c.point(s.starts.data, starts);
  c.point(s.x, in_y ? window : whole);
  c.point(s.y, in_y ? whole : window);
  c.step<run_window>(s, s.move.chunks(), 1.0 * static_cast<double>(window.elements()));
}

void lower_dynamic_slice(LowerContext& c) { add_window(c, c.in(0), c.out(), c.in(1), false); }

struct WholeCopy {
  GenericMove move;
  const void* x = nullptr;
  void* y = nullptr;
};
void run_whole(const WholeCopy& s, std::int64_t chunk) {
  if (s.x != s.y) s.move.run(s.x, s.y, chunk);  // the same for a donated input
}

void lower_dynamic_update(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  const LirValue &a = *x.where, &b = *y.where;
  const bool in_place = a.place == b.place && a.index == b.index && a.offset == b.offset;
  if (!in_place && y.elements() > 0) {
    auto& s = c.keep<WholeCopy>();
    s.move = GenericMove(dtype_bits(x.dtype), x.dims, x.strides, y.strides, 0, 0);
    if (c.finest()) s.move.cut_finest();
    c.point(s.x, x);
    c.point(s.y, y);
    c.step<run_whole>(s, s.move.chunks(), 0.3 * static_cast<double>(y.elements()));
  }
  add_window(c, y, c.in(1), c.in(2), true);
}

const char* window_refuses(const Graph& g, NodeId id) { return refuse_high_rank(in_shape(g, id, 0)); }
bool window_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 || (g.node(id).kind() == OpKind::DynamicUpdateSlice && operand == 1);
}
bool over_first(const Graph&, NodeId, int operand, int) { return operand == 0; }

constexpr Row kRows[] = {
    {OpKind::Gather, "gather_rows", gather_refuses, lower_gather},
    {OpKind::ScatterAdd, "scatter_add", scatter_refuses, lower_scatter},
    {OpKind::DynamicSlice, "window_copy", window_refuses, lower_dynamic_slice, window_reads_strided},
    {OpKind::DynamicUpdateSlice, "window_update", window_refuses, lower_dynamic_update, window_reads_strided,
     over_first},
};

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace rlx::cpu
