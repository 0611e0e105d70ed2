// Kernel entries of ops that read or write at indices known at run time.
#include <algorithm>
#include <cmath>

#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::tpu {
namespace {

// The index operands of a gather or scatter as one tensor of index vectors: dims ++ [axes], or the indices themselves
// for one axis.
class Indices {
 public:
  Indices(EmitContext& c, std::span<const Hlo> parts, const std::vector<std::int64_t>& axes, const Extents& table)
      : w_(c.w), parts_(parts.begin(), parts.end()) {
    // All indices get one dtype.
    const bool mixed = std::any_of(parts.begin(), parts.end(), [&](const Hlo& p) { return p.dtype != parts[0].dtype; });
    if (mixed)
      for (Hlo& p : parts_) p = w_.convert(p, DType::I64);
    for (std::int64_t a : axes) extents_.push_back(table[static_cast<std::size_t>(a)]);
  }
  const Extents& dims() const { return parts_[0].dims; }
  std::int64_t vector_axis() const { return parts_[0].rank(); }

  /// A Bool per index vector: true when all its indices are in range.
  Hlo inside() const {
    Hlo all{};
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Hlo& p = parts_[i];
      const Hlo mine = w_.both(w_.compare("GE", p, 0), w_.compare("LT", p, w_.broadcast(last(i, 0), p.dims, {})));
      all = i == 0 ? mine : w_.both(all, mine);
    }
    return all;
  }
  /// Clamps every index to the nearest valid one.
  void clamp() {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i] = w_.max(w_.min(parts_[i], w_.broadcast(last(i, 1), parts_[i].dims, {})), 0);
  }
  /// Makes index vectors invalid where `cond` is false.
  void keep_where(const Hlo& cond) { parts_[0] = w_.select(cond, parts_[0], -1); }
  Hlo vectors() const {
    if (parts_.size() == 1) return parts_[0];
    Extents column = dims();
    column.push_back(1);
    Hlos columns;
    for (const Hlo& p : parts_) columns.push_back(w_.reshape(p, column));
    return w_.concat(columns, vector_axis());
  }
  const Extents& extents() const { return extents_; }

 private:
  // The extent of the axis of index i, minus `by`. It saturates at the largest I32 for I32 indices.
  Hlo last(std::size_t i, std::int64_t by) const {
    const DType t = parts_[i].dtype;
    const std::int64_t most = t == DType::I32 ? (std::int64_t{1} << 31) - 1 : ~(std::int64_t{1} << 63);
    return w_.scalar_bits(t, static_cast<std::uint64_t>(std::min(extents_[i] - by, most)));
  }
  Writer& w_;
  Hlos parts_;
  Extents extents_;
};

// The axes of gathered values that correspond to the table's other axes.
std::vector<std::int64_t> slice_axes(int rank, std::int64_t first, std::int64_t index_rank) {
  std::vector<std::int64_t> out;
  for (std::int64_t a = 0; a < rank; ++a)
    if (a < first || a >= first + index_rank) out.push_back(a);
  return out;
}

// A mask per index vector, broadcast to gathered values of `dims`.
Hlo spread_mask(Writer& w, const Hlo& mask, const Extents& dims, std::int64_t first) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < mask.rank(); ++i) axes.push_back(first + i);
  return w.broadcast(mask, dims, axes);
}

Hlo gather(Writer& w, const Hlo& table, const Hlo& vectors, std::int64_t vector_axis,
           const std::vector<std::int64_t>& axes, const HloType& out) {
  Extents sizes = table.dims;
  for (std::int64_t a : axes) sizes[static_cast<std::size_t>(a)] = 1;
  const auto rank = static_cast<int>(out.dims.size());
  const std::string list = i64_list(axes);
  return w.op("gather", {&table, &vectors}, out,
              concat_text("dimension_numbers = #stablehlo.gather<offset_dims = ",
                          i64_list(slice_axes(rank, axes.front(), vector_axis)), ", collapsed_slice_dims = ", list,
                          ", start_index_map = ", list, ", index_vector_dim = ", vector_axis,
                          ">, slice_sizes = ", i64_array(sizes), ", indices_are_sorted = false"));
}

void emit_gather(EmitContext& c) {
  const auto& op = c.op<ops::Gather>();
  const Hlo& table = c.in(0);
  const bool fills = op.mode == IndexMode::Fill;
  Indices indices(c, c.inputs().subspan(1), op.axes, table.dims);
  const bool no_elements =
      std::any_of(op.axes.begin(), op.axes.end(), [&](std::int64_t a) { return table.extent(a) == 0; });
  if (no_elements)  // no index is valid, so nothing is gathered, or all is filled
    return c.set(c.w.broadcast(c.w.scalar(c.dtype(), op.fill), c.dims(), {}));
  const Hlo picked = gather(c.w, table, indices.vectors(), indices.vector_axis(), op.axes, c.type());  // clamps
  if (!fills) return c.set(picked);
  const Hlo inside = spread_mask(c.w, indices.inside(), picked.dims, op.axes.front());
  c.set(c.w.select(inside, picked, c.w.broadcast(c.w.scalar(c.dtype(), op.fill), picked.dims, {})));
}

std::string scatter_attributes(int updates_rank, std::int64_t vector_axis, const std::vector<std::int64_t>& axes,
                               bool unique) {
  const std::string list = i64_list(axes);
  return concat_text("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ",
                     i64_list(slice_axes(updates_rank, axes.front(), vector_axis)), ", inserted_window_dims = ", list,
                     ", scatter_dims_to_operand_dims = ", list, ", index_vector_dim = ", vector_axis,
                     ">, indices_are_sorted = false, unique_indices = ", unique ? "true" : "false");
}

// Both XLA and the op drop updates out of range.
Hlo scatter(Writer& w, const Hlo& into, const Hlo& vectors, const Hlo& updates, std::int64_t vector_axis,
            const std::vector<std::int64_t>& axes, bool unique, const std::function<Hlo(const Hlo&, const Hlo&)>& fn) {
  const Hlo operands[] = {into, vectors, updates};
  const HloType results[] = {type_of(into)}, scalars[] = {{into.dtype, {}}, {into.dtype, {}}};
  return w.with_regions("scatter", operands, results, {{scalars, [&](const Hlos& v) { return Hlos{fn(v[0], v[1])}; }}},
                        scatter_attributes(updates.rank(), vector_axis, axes, unique))[0];
}

// The last update to an element wins. XLA leaves the order undefined, so the others are dropped: first the largest
// update index of each element is computed.
void keep_last(Writer& w, Indices& indices) {
  std::int64_t count = 1;
  for (std::int64_t d : indices.dims()) count *= d;
  if (count <= 1) return;
  std::vector<std::int64_t> axes(indices.extents().size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  const DType t = count < (std::int64_t{1} << 31) ? DType::I32 : DType::I64;
  const Hlo number = w.reshape(w.iota(t, {count}, 0), indices.dims()), vectors = indices.vectors();
  const Hlo last = scatter(w, w.full(t, -1, indices.extents()), vectors, number, indices.vector_axis(), axes, false,
                           [&](const Hlo& a, const Hlo& b) { return w.max(a, b); });
  const Hlo winner = gather(w, last, vectors, indices.vector_axis(), axes, {t, indices.dims()});
  indices.keep_where(w.compare("EQ", winner, number));
}

void emit_scatter(EmitContext& c) {
  const auto& op = c.op<ops::Scatter>();
  Writer& w = c.w;
  const Hlo& into = c.in(0);
  const Hlo& updates = c.in(c.num_inputs() - 1);
  if (into.elements() == 0 || updates.elements() == 0) return c.set(into);
  Indices indices(c, c.inputs().subspan(1, c.inputs().size() - 2), op.axes, into.dims);
  if (op.mode == IndexMode::Clamp) indices.clamp();
  if (op.fn == ScatterKind::Set) {
    keep_last(w, indices);
    return c.set(scatter(w, into, indices.vectors(), updates, indices.vector_axis(), op.axes, false,
                         [](const Hlo&, const Hlo& b) { return b; }));
  }
  const bool sums = op.fn == ScatterKind::Add || op.fn == ScatterKind::Mul;
  const bool is_bool = into.dtype == DType::Bool;
  const auto fn = [&](const Hlo& a, const Hlo& b) {
    switch (op.fn) {
      case ScatterKind::Add: return w.add(a, b);
      case ScatterKind::Mul: return w.mul(a, b);
      case ScatterKind::Min: return is_bool ? w.both(a, b) : w.min(a, b);
      default: return is_bool ? w.either(a, b) : w.max(a, b);
    }
  };
  // Sums and products of half-precision floats are rounded once.
  const auto wide = [&](const Hlo& x) { return sums ? widen(w, x) : x; };
  const Hlo out = scatter(w, wide(into), indices.vectors(), wide(updates), indices.vector_axis(), op.axes, false, fn);
  c.set(w.convert(out, into.dtype));
}

// The starts of a window of `sizes` in `of`, from a vector of them. The ops clamp them too, but XLA's CPU client omits
// that when it fuses a slice with a scatter.
Hlos starts_of(Writer& w, const Hlo& vector, const Extents& of, const Extents& sizes) {
  const double most = std::ldexp(1.0, dtype_bits(vector.dtype) - (is_signed_int(vector.dtype) ? 1 : 0)) - 1;
  Hlos out;
  for (std::int64_t i = 0; i < vector.extent(0); ++i) {
    const std::int64_t start[] = {i}, limit[] = {i + 1}, stride[] = {1};
    const auto axis = static_cast<std::size_t>(i);
    const double last = static_cast<double>(of[axis] - sizes[axis]);
    const Hlo given = w.reshape(w.slice(vector, start, limit, stride), {});
    const Hlo below = last < most ? w.min(given, w.scalar(vector.dtype, last)) : given;
    out.push_back(w.max(below, w.scalar(vector.dtype, 0)));
  }
  return out;
}

void emit_dynamic_slice(EmitContext& c) {
  if (c.in(0).rank() == 0) return c.set(c.in(0));
  c.set(c.w.dynamic_slice(c.in(0), starts_of(c.w, c.in(1), c.in(0).dims, c.dims()), c.dims()));
}
void emit_dynamic_update_slice(EmitContext& c) {
  if (c.in(0).rank() == 0) return c.set(c.in(1));
  c.set(c.w.dynamic_update_slice(c.in(0), c.in(1), starts_of(c.w, c.in(2), c.in(0).dims, c.in(1).dims)));
}

}  // namespace

Hlo rows_at(Writer& w, const Hlo& table, const Hlo& indices) {
  HloType out = type_of(table);
  out.dims[0] = indices.extent(0);
  return gather(w, table, indices, 1, {0}, out);
}

Hlo set_rows(Writer& w, const Hlo& into, const Hlo& indices, const Hlo& updates) {
  return scatter(w, into, indices, updates, 1, {0}, true, [](const Hlo&, const Hlo& b) { return b; });
}

std::span<const KernelEntry> index_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Gather, never_refuses, emit_gather},
      {OpKind::Scatter, never_refuses, emit_scatter},
      {OpKind::DynamicSlice, never_refuses, emit_dynamic_slice},
      {OpKind::DynamicUpdateSlice, never_refuses, emit_dynamic_update_slice},
  };
  return kRows;
}

}  // namespace rlx::tpu
