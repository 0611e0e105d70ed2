// Gather, scatter and windows at run-time positions, for every dtype.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/encoder.h"
#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/kernels/scatter.h"
#include "rlx/backends/cpu/panels.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/backends/cpu/runs.h"
#include "rlx/ir/indexed_blocks.h"
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

// -- index tensors --

/// Where the blocks lie that the index operands of a node name, one after the other.
struct NamedBlocks {
  struct Axis {
    Indices indices;
    std::vector<std::int64_t> strides;  // of the index tensor
  };
  IndexedBlocks blocks;
  std::vector<Axis> axes;
  std::vector<std::int64_t> dims;  // of the index tensors
  std::int64_t count = 1;
  bool clamp = false;

  /// Calls f(i, offset of the block from its outer part, -1 when it is out of range) for i in [begin, end).
  template <class F>
  void each(std::int64_t begin, std::int64_t end, F f) const {
    if (axes.size() == 1)
      each_of<1>(begin, end, f);
    else
      each_of<0>(begin, end, f);
  }

 private:
  // kAxes: how many axes have indices, 0 for any number.
  template <std::size_t kAxes, class F>
  void each_of(std::int64_t begin, std::int64_t end, F f) const {
    const std::size_t count_axes = kAxes != 0 ? kAxes : axes.size();
    const std::int64_t cols = dims.empty() ? 1 : dims.back();
    std::int64_t starts[kGenericMaxRank] = {}, steps[kGenericMaxRank] = {};  // of each index tensor's row
    for (std::int64_t i = begin; i < end;) {
      // The row of the last axis that i lies in, from i on.
      const std::int64_t col = i % cols, last = std::min(end, i - col + cols);
      for (std::size_t k = 0; k < count_axes; ++k) {
        std::int64_t element = 0, rest = i;
        for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) element += rest % dims[d] * axes[k].strides[d];
        starts[k] = element;
        steps[k] = dims.empty() ? 0 : axes[k].strides.back();
      }
      for (std::int64_t j = 0; i < last; ++i, ++j) {
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < count_axes; ++k) {
          std::int64_t at = axes[k].indices.at(starts[k] + j * steps[k]);
          const std::int64_t extent = blocks.extents[k];
          if (clamp) at = std::clamp<std::int64_t>(at, 0, extent - 1);
          if (at < 0 || at >= extent) {
            offset = -1;
            break;
          }
          offset += at * blocks.strides[k];
        }
        f(i, offset);
      }
    }
  }
};
/// Fills in `b`, which stays where it is; operands 1 and on are the indices.
void point_blocks(LowerContext& c, NamedBlocks& b, const View& x, const std::vector<std::int64_t>& axes,
                  IndexMode mode) {
  b.blocks = IndexedBlocks(x.dims, axes);
  b.clamp = mode == IndexMode::Clamp;
  b.axes.resize(axes.size());
  b.dims = c.in(1).dims;
  b.count = c.in(1).elements();
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const View v = c.in(1 + static_cast<int>(k));
    b.axes[k].indices.wide = v.dtype == DType::I64;
    b.axes[k].strides = v.strides;
    c.point(b.axes[k].indices.data, v);
  }
}
const char* index_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(in_shape(g, id, 0))) return why;
  return refuse_high_rank(in_shape(g, id, 1));
}

// -- gather --

struct GatherStep {
  NamedBlocks from;
  std::int64_t units = 0, per_chunk = 1;
  int bits = 8;
  alignas(16) std::byte fill[16] = {};
  const void* x = nullptr;
  void* y = nullptr;
};
// Single elements of a type.
template <class E>
void gather_elements(const GatherStep& s, std::int64_t outer, std::int64_t first, std::int64_t last) {
  const E* x = static_cast<const E*>(s.x) + outer * s.from.blocks.outer_stride;
  E* y = static_cast<E*>(s.y) + outer * s.from.count;
  E fill;
  std::memcpy(&fill, s.fill, sizeof fill);
  const std::int64_t row = s.from.blocks.rows.front();
  s.from.each(first, last, [&](std::int64_t i, std::int64_t at) { y[i] = at < 0 ? fill : x[at + row]; });
}
void run_gather(const GatherStep& s, std::int64_t chunk) {
  const IndexedBlocks& b = s.from.blocks;
  const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk), size = b.size();
  for (std::int64_t u = chunk * s.per_chunk; u < end;) {
    const std::int64_t outer = u / s.from.count, first = u % s.from.count,
                       last = std::min(s.from.count, first + end - u);
    if (size == 1 && (s.bits == 32 || s.bits == 64 || s.bits == 16 || s.bits == 8)) {
      s.bits == 32   ? gather_elements<std::uint32_t>(s, outer, first, last)
      : s.bits == 64 ? gather_elements<std::uint64_t>(s, outer, first, last)
      : s.bits == 16 ? gather_elements<std::uint16_t>(s, outer, first, last)
                     : gather_elements<std::uint8_t>(s, outer, first, last);
      u += last - first;
      continue;
    }
    s.from.each(first, last, [&](std::int64_t i, std::int64_t at) {
      std::int64_t to = (outer * s.from.count + i) * size;
      if (at < 0) {
        generic_fill(s.y, s.fill, s.bits, to, to + size);
        return;
      }
      for (const std::int64_t row : b.rows) {
        const std::int64_t source = outer * b.outer_stride + at + row;
        if (s.bits >= 8 && b.run > 1) {
          const auto bytes = static_cast<std::size_t>(s.bits / 8);
          std::memcpy(static_cast<std::byte*>(s.y) + static_cast<std::size_t>(to) * bytes,
                      static_cast<const std::byte*>(s.x) + static_cast<std::size_t>(source) * bytes,
                      static_cast<std::size_t>(b.run) * bytes);
        } else {
          generic_move_row(s.bits, s.x, source, s.y, to, b.run);
        }
        to += b.run;
      }
    });
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
  const double unit_ns =
      3 + 2 * static_cast<double>(op.axes.size()) + static_cast<double>(s.from.blocks.size()) * s.bits / 8 / 15.0;
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
      return "it takes one row of none";
  return index_refuses(g, id);
}
bool gather_reads_strided(const Graph&, NodeId, int operand) { return operand > 0; }

// Rows of a table that lies in the panels of a product's second operand: the columns of its matrix [inner, extent].
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
  s.panels = *panels_of(form_of(c.graph(), c.node().inputs[0]));
  s.indices.wide = indices.dtype == DType::I64;
  s.extent = x.dim(0);
  s.inner = x.dim(1);
  s.rows = indices.elements();
  const double row_ns = 3 + static_cast<double>(s.inner) * 2;  // each element lies in a line of its own
  s.rows_per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(5000 / row_ns)));
  c.point(s.indices.data, indices);
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_panel_gather>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk, row_ns * static_cast<double>(s.rows));
}
const char* panel_gather_refuses(const Graph& g, NodeId id) {
  return refuse_unless(panels_of(form_of(g, g.node(id).inputs[0])).has_value(), "its table is not in panels");
}
// Rows of a table, an index out of range being the nearest one.
bool reads_rows(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Gather>();
  return op.axes == std::vector<std::int64_t>{0} && op.mode == IndexMode::Clamp;
}
bool gather_reads_form(const Graph& g, NodeId id, int operand, const Form& form) {
  return operand == 0 && reads_rows(g, id) && in_dtype(g, id, 0) == DType::F32 && form.lossless &&
         panels_of(form).has_value();
}

// -- scatter --

// The work follows the updates: where each goes is found once, then chunks take ranges of the columns of all blocks, so
// that updates to one element act in their order. Where the dtype is narrow, updates to one element are brought
// together and summed wide.
struct Targets {
  NamedBlocks to;
  std::int64_t* at = nullptr;     // [count], -1: nowhere
  std::int64_t* order = nullptr;  // [count], or null: as they come
  std::int64_t update(std::int64_t j) const { return order ? order[j] : j; }
};
void find_targets(const Targets& t, std::int64_t) {
  t.to.each(0, t.to.count, [&](std::int64_t i, std::int64_t at) { t.at[i] = at; });
  if (!t.order) return;
  for (std::int64_t i = 0; i < t.to.count; ++i) t.order[i] = i;
  std::sort(t.order, t.order + t.to.count,
            [&](std::int64_t i, std::int64_t j) { return t.at[i] != t.at[j] ? t.at[i] < t.at[j] : i < j; });
}

template <class A>
struct ScatterStep {
  DType dtype = DType::F32;
  const Targets* targets = nullptr;
  ScatterKind fn = ScatterKind::Set;
  int bits = 8;
  std::int64_t columns = 0, per_chunk = 1;
  const void* updates = nullptr;
  void* y = nullptr;
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;

  static void run(const ScatterStep& s, std::int64_t chunk) {
    const IndexedBlocks& b = s.targets->to.blocks;
    const std::int64_t end = std::min(s.columns, (chunk + 1) * s.per_chunk), size = b.size();
    for (std::int64_t begin = chunk * s.per_chunk; begin < end;) {
      // Columns of one run.
      const std::int64_t outer = begin / size, column = begin % size, row = column / b.run, col = column % b.run;
      const std::int64_t most = s.direct() ? b.run : kGenericBlock;
      const std::int64_t n = std::min({end - begin, b.run - col, most});
      s.columns_of(outer * b.outer_stride + b.rows[static_cast<std::size_t>(row)] + col,
                   outer * s.targets->to.count * size + column, n);
      begin += n;
    }
  }
  bool direct() const { return puts_updates(dtype, fn); }
  void columns_of(std::int64_t y_base, std::int64_t update_base, std::int64_t n) const {
    const Targets& t = *targets;
    if (direct()) {
      put_updates(dtype, fn, t.at, t.to.count, t.to.blocks.size(), updates, update_base, y, y_base, n);
      return;
    }
    const std::int64_t count = t.to.count, size = t.to.blocks.size();
    A result[kGenericBlock], values[kGenericBlock];
    for (std::int64_t j = 0; j < count;) {
      const std::int64_t at = t.at[t.update(j)];
      if (at < 0) {
        ++j;
        continue;
      }
      if (fn == ScatterKind::Set) {
        generic_move_row(bits, updates, update_base + j * size, y, y_base + at, n);
        ++j;
        continue;
      }
      load(y, y_base + at, 1, static_cast<int>(n), result);
      for (; j < count && t.at[t.update(j)] == at; ++j) {
        load(updates, update_base + t.update(j) * size, 1, static_cast<int>(n), values);
        for (int k = 0; k < n; ++k) result[k] = put(result[k], values[k]);
      }
      store(y, y_base + at, 1, static_cast<int>(n), result);
    }
  }
  A put(A into, A value) const {
    switch (fn) {
      case ScatterKind::Set: return value;
      case ScatterKind::Add: return wide_add(into, value);
      case ScatterKind::Mul: return wide_mul(into, value);
      case ScatterKind::Min: return wide_beats(value, into, false) ? value : into;
      case ScatterKind::Max: break;
    }
    return wide_beats(value, into, true) ? value : into;
  }
};
void copy_unless_in_place(LowerContext& c, const View& x, const View& y);
void lower_scatter(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  copy_unless_in_place(c, x, y);
  const auto& op = c.op<ops::Scatter>();
  const View updates = c.in(c.num_inputs() - 1);
  if (updates.elements() == 0) return;
  auto& t = c.keep<Targets>();
  point_blocks(c, t.to, y, op.axes, op.mode);
  const auto bytes = static_cast<std::size_t>(t.to.count) * sizeof(std::int64_t);
  t.at = reinterpret_cast<std::int64_t*>(c.workspace(bytes));
  const bool rounds = op.fn == ScatterKind::Add || op.fn == ScatterKind::Mul;
  if (rounds && is_float(x.dtype) && dtype_bits(x.dtype) == 16)
    t.order = reinterpret_cast<std::int64_t*>(c.workspace(bytes));
  c.step<find_targets>(t, 1, (t.order ? 60.0 : 5.0) * static_cast<double>(t.to.count));
  visit_wide(x.dtype, [&]<class A>(A) {
    auto& s = c.keep<ScatterStep<A>>();
    s.dtype = x.dtype;
    s.targets = &t;
    s.fn = op.fn;
    s.bits = dtype_bits(x.dtype);
    s.columns = t.to.blocks.outer * t.to.blocks.size();
    s.per_chunk = s.bits < 8 ? s.columns : c.grain(std::max<std::int64_t>(64, 8192 / t.to.count));
    s.load = load_block<A>(x.dtype);
    s.store = store_block<A>(x.dtype);
    c.point(s.updates, updates);
    c.point(s.y, y);
    c.step<ScatterStep<A>::run>(s, (s.columns + s.per_chunk - 1) / s.per_chunk,
                                2.0 * static_cast<double>(updates.elements()));
  });
}
bool scatter_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand + 1 < static_cast<int>(g.node(id).inputs.size());
}

// Rows put in the place of others: each is found by one index, and moved, or encoded, as it lies.
struct RowsStep {
  Indices indices;
  std::int64_t index_stride = 1, count = 0, extent = 0;
  bool clamp = false;
  std::int64_t unit = 1, units = 0, per_chunk = 1;  // bytes of an element or block; of a row; in a chunk
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
  if (op.fn != ScatterKind::Set) return "it combines what it puts with what is there";
  if (op.axes != std::vector<std::int64_t>{0}) return "its indices run along other axes than the first";
  if (in_shape(g, id, 1).rank() != 1) return "its indices are no vector";
  return refuse_unless(dtype_bits(in_dtype(g, id, 0)) >= 8, "its elements are parts of bytes");
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
  // All chunks go through all rows in their order, so that the last one of a place stays there.
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
// Blocks are made in the places where they are put.
bool put_rows_reads_encoded(const Graph& g, NodeId id, int operand) {
  if (operand != 2 || put_rows_refuses(g, id) != nullptr) return false;
  const NodeId from = g.node(id).inputs[2].node;
  return g.node(from).kind() == OpKind::Quantize && in_shape(g, id, 0).rank() > 1 &&
         encoder_refuses(g, from) == nullptr;
}

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

void copy_unless_in_place(LowerContext& c, const View& x, const View& y) {
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
}

void lower_dynamic_update(LowerContext& c) {
  const View y = c.out();
  copy_unless_in_place(c, c.in(0), y);
  add_window(c, y, c.in(1), c.in(2), true);
}

const char* window_refuses(const Graph& g, NodeId id) { return refuse_high_rank(in_shape(g, id, 0)); }
bool window_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 || (g.node(id).kind() == OpKind::DynamicUpdateSlice && operand == 1);
}
// Updates, indices and starts are read while elements are written.
bool over_first(const Graph& g, NodeId id, int operand, int) { return operand == 0 && is_sole_operand(g, id, 0); }

constexpr Row kIndexRows[] = {
    {OpKind::Gather, "gather_panels", panel_gather_refuses, lower_panel_gather},
    {OpKind::Gather, "gather_blocks", gather_refuses, lower_gather, gather_reads_strided, nullptr, false, nullptr,
     gather_reads_form},
    {.kind = OpKind::Scatter,
     .kernel = "put_rows",
     .refuses = put_rows_refuses,
     .lower = lower_put_rows,
     .reads_strided = put_rows_reads_strided,
     .in_place = over_first,
     .reads_encoded = put_rows_reads_encoded},
    {OpKind::Scatter, "scatter_blocks", index_refuses, lower_scatter, scatter_reads_strided, over_first},
    {OpKind::DynamicSlice, "window_copy", window_refuses, lower_dynamic_slice, window_reads_strided},
    {OpKind::DynamicUpdateSlice, "window_update", window_refuses, lower_dynamic_update, window_reads_strided,
     over_first},
};

}  // namespace

std::span<const Row> index_rows() { return kIndexRows; }

}  // namespace rlx::cpu
