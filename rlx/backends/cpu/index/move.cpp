// Ops that move elements: no-ops where the plan made the result a view, strided copies otherwise.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::cpu {
namespace {

bool same_strides(const View& a, const std::vector<std::int64_t>& strides) {
  for (std::size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i] > 1 && a.strides[i] != strides[i]) return false;
  return true;
}

/// True when `y` is already the view of `x` that starts at `element` and has `strides`.
bool is_view_of(const View& y, const View& x, std::int64_t element, const std::vector<std::int64_t>& strides) {
  const LirValue &a = *y.where, &b = *x.where;
  const std::int64_t bits = element * dtype_bits(x.dtype);
  if (a.place != b.place || a.index != b.index || bits % 8 != 0) return false;
  return a.offset == static_cast<std::size_t>(static_cast<std::int64_t>(b.offset) + bits / 8) &&
         same_strides(y, strides);
}

/// Copies of blocks into one result, as one task.
struct CopyStep {
  struct Part {
    StridedCopy copy;  // when `fast`
    GenericMove move;  // otherwise
    bool fast = false;
    const void* x = nullptr;
    void* y = nullptr;
    std::int64_t chunks = 0;
  };
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::int64_t> first_chunk;  // of each part
  void (*run)(const StridedCopy&, const void*, void*, std::int64_t) = nullptr;
  double bytes = 0;
  bool serial = false;  // parts may share a byte, so one chunk writes them all
};
void run_copies(const CopyStep& s, std::int64_t chunk) {
  if (s.serial) {
    for (const auto& p : s.parts)
      for (std::int64_t i = 0; i < p->chunks; ++i) p->move.run(p->x, p->y, i);
    return;
  }
  const auto part = std::upper_bound(s.first_chunk.begin(), s.first_chunk.end(), chunk) - s.first_chunk.begin() - 1;
  const CopyStep::Part& p = *s.parts[static_cast<std::size_t>(part)];
  chunk -= s.first_chunk[static_cast<std::size_t>(part)];
  if (p.fast)
    s.run(p.copy, p.x, p.y, chunk);
  else
    p.move.run(p.x, p.y, chunk);
}

CopyStep& begin_copies(LowerContext& c) {
  auto& s = c.keep<CopyStep>();
  s.run = c.kernels().strided_copy;
  return s;
}

/// Adds y[y_element + i . y_strides] = x[x_element + i . x_strides] for i in `dims`.
void add_copy(LowerContext& c, CopyStep& s, std::span<const std::int64_t> dims, const View& x, std::int64_t x_element,
              const std::vector<std::int64_t>& x_strides, const View& y, std::int64_t y_element,
              const std::vector<std::int64_t>& y_strides) {
  if (product(dims) == 0) return;
  s.parts.push_back(std::make_unique<CopyStep::Part>());
  CopyStep::Part& p = *s.parts.back();
  const bool forward = std::all_of(x_strides.begin(), x_strides.end(), [](std::int64_t stride) { return stride >= 0; });
  p.fast = dims.size() <= kCopyMaxRank && forward && dtype_bits(x.dtype) >= 8;
  const bool bytewise = dtype_bits(x.dtype) >= 8;
  if (p.fast) {
    p.copy.rank = static_cast<int>(dims.size());
    p.copy.element_bytes = static_cast<int>(size_bytes(x.dtype));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      p.copy.dims[i] = dims[i];
      p.copy.x_strides[i] = x_strides[i];
      p.copy.y_strides[i] = y_strides[i];
    }
    copy_prepare(p.copy);
    p.copy.rows_per_chunk = c.grain(p.copy.rows_per_chunk);
    p.chunks = p.copy.chunks = (p.copy.rows + p.copy.rows_per_chunk - 1) / p.copy.rows_per_chunk;
  } else {
    p.move = GenericMove(dtype_bits(x.dtype), dims, x_strides, y_strides, bytewise ? 0 : x_element,
                         bytewise ? 0 : y_element);
    if (c.finest()) p.move.tile_finest();
    p.chunks = p.move.chunks();
  }
  c.point(p.x, x, bytewise ? x_element : 0);
  c.point(p.y, y, bytewise ? y_element : 0);
  s.serial = !bytewise;
  s.bytes += 2.0 * static_cast<double>(product(dims)) * dtype_bits(x.dtype) / 8;
}

void end_copies(LowerContext& c, CopyStep& s) {
  std::int64_t chunks = 0;
  for (const auto& p : s.parts) {
    s.first_chunk.push_back(chunks);
    chunks += p->chunks;
  }
  c.step<run_copies>(s, s.serial ? std::min<std::int64_t>(chunks, 1) : chunks, s.bytes / 12.0);
}

/// The result is x seen from `element` with `strides`: nothing to do when the plan made it a view, a copy otherwise.
void view_or_copy(LowerContext& c, const View& x, std::int64_t element, const std::vector<std::int64_t>& strides) {
  const View y = c.out();
  if (y.elements() == 0 || is_view_of(y, x, element, strides)) return;
  CopyStep& s = begin_copies(c);
  add_copy(c, s, y.dims, x, element, strides, y, 0, y.strides);
  end_copies(c, s);
}

// x with other dims, or its bits as another dtype. The copy iterates over x in its own dims, whatever its strides.
void lower_reshape(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  // The copy kernels do not work in place. So if y has the address of x, it is a view of x, and nothing is copied.
  if (y.where->place == x.where->place && y.where->index == x.where->index && y.where->offset == x.where->offset)
    return;
  check(y.dense(), "the result of a reshape is not row-major");
  CopyStep& s = begin_copies(c);
  add_copy(c, s, x.dims, x, 0, x.strides, y, 0, row_major_strides(x.dims));
  end_copies(c, s);
}

void lower_transpose(LowerContext& c) {
  const View x = c.in(0);
  std::vector<std::int64_t> strides;
  for (std::int64_t axis : c.op<ops::Transpose>().perm) strides.push_back(x.stride(static_cast<int>(axis)));
  view_or_copy(c, x, 0, strides);
}

void lower_expand(LowerContext& c) { view_or_copy(c, c.in(0), 0, broadcast_strides(c.in(0), c.out().dims)); }

void lower_slice(LowerContext& c) {
  const auto& op = c.op<ops::Slice>();
  const View x = c.in(0);
  std::int64_t element = 0;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    element += op.starts[i].value() * x.strides[i];
    strides.push_back(x.strides[i] * (op.strides.empty() ? 1 : op.strides[i]));
  }
  view_or_copy(c, x, element, strides);
}

void lower_reverse(LowerContext& c) {
  const View x = c.in(0);
  std::int64_t element = 0;
  std::vector<std::int64_t> strides = x.strides;
  for (std::int64_t axis : c.op<ops::Reverse>().axes) {
    const auto a = static_cast<std::size_t>(axis);
    element += (x.dims[a] - 1) * x.strides[a];
    strides[a] = -strides[a];
  }
  view_or_copy(c, x, element, strides);
}

void lower_concat(LowerContext& c) {
  const auto axis = static_cast<std::size_t>(c.op<ops::Concat>().axis);
  const View y = c.out();
  CopyStep& s = begin_copies(c);
  std::int64_t at = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const View x = c.in(i);
    const std::int64_t element = at * y.strides[axis];
    at += x.dims[axis];
    if (x.elements() == 0 || is_view_of(x, y, element, y.strides)) continue;  // the plan may have put x there already
    add_copy(c, s, x.dims, x, 0, x.strides, y, element, y.strides);
  }
  end_copies(c, s);
}

// Fills y, then copies the part of x that lies inside.
struct FillStep {
  void* y = nullptr;
  const void* value = nullptr;
  std::int64_t elements = 0;
  int bits = 0;
};
constexpr std::int64_t kFillChunk = 1 << 15;
void run_fill(const FillStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * kFillChunk;
  generic_fill(s.y, s.value, s.bits, begin, std::min(s.elements, begin + kFillChunk));
}

// Rows of y in whole elements, each written once: fill left of x, a run of x, fill right of it.
struct PadRows {
  std::vector<std::int64_t> dims, inner, low, strides;  // dims of y and of x, where x begins, its strides
  std::int64_t rows = 0, per_chunk = 1;
  int bits = 8;
  const void* value = nullptr;
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
};
void run_pad_rows(const PadRows& s, std::int64_t chunk) {
  const std::size_t last = s.dims.size() - 1;
  const std::int64_t cols = s.dims[last], bytes = s.bits / 8, end = std::min(s.rows, (chunk + 1) * s.per_chunk);
  const std::int64_t first = std::clamp<std::int64_t>(s.low[last], 0, cols),
                     past = std::clamp(s.low[last] + s.inner[last], first, cols);
  for (std::int64_t row = chunk * s.per_chunk; row < end; ++row) {
    std::int64_t rest = row, from = first - s.low[last];
    bool inside = true;
    for (std::size_t a = last; a-- > 0; rest /= s.dims[a]) {
      const std::int64_t i = rest % s.dims[a] - s.low[a];
      inside = inside && i >= 0 && i < s.inner[a];
      from += i * s.strides[a];
    }
    const std::int64_t at = row * cols;
    if (!inside || first == past) {
      generic_fill(s.y, s.value, s.bits, at, at + cols);
      continue;
    }
    generic_fill(s.y, s.value, s.bits, at, at + first);
    std::memcpy(s.y + (at + first) * bytes, s.x + from * bytes, static_cast<std::size_t>((past - first) * bytes));
    generic_fill(s.y, s.value, s.bits, at + past, at + cols);
  }
}
bool pad_by_rows(LowerContext& c) {
  const auto& op = c.op<ops::Pad>();
  const View x = c.in(0), y = c.out();
  const bool apart = std::any_of(op.interior.begin(), op.interior.end(), [](std::int64_t i) { return i != 0; });
  if (apart || y.rank() == 0 || y.dim(-1) < 32 || dtype_bits(y.dtype) < 8 || (x.dim(-1) > 1 && x.stride(-1) != 1))
    return false;
  auto& s = c.keep<PadRows>();
  s.dims = y.dims;
  s.inner = x.dims;
  s.low.assign(op.low.begin(), op.low.end());
  s.strides = x.strides;
  s.rows = y.elements() / y.dim(-1);
  s.per_chunk = c.grain(std::max<std::int64_t>(1, 32768 / y.dim(-1)));
  s.bits = dtype_bits(y.dtype);
  c.point(s.value, c.in(1));
  c.point(s.x, x);
  c.point(s.y, y);
  c.step<run_pad_rows>(s, (s.rows + s.per_chunk - 1) / s.per_chunk,
                       2.0 * static_cast<double>(y.elements()) * s.bits / 8 / 12.0);
  return true;
}

void lower_pad(LowerContext& c) {
  const auto& op = c.op<ops::Pad>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0 || pad_by_rows(c)) return;
  auto& f = c.keep<FillStep>();
  f.elements = y.elements();
  f.bits = dtype_bits(y.dtype);
  c.point(f.y, y);
  c.point(f.value, c.in(1));
  c.step<run_fill>(f, (f.elements + kFillChunk - 1) / kFillChunk, static_cast<double>(f.elements) * f.bits / 8 / 20.0);
  // Element i of x goes to low + i * (1 + interior). Keep the i that land inside.
  std::vector<std::int64_t> dims, strides;
  std::int64_t from = 0, to = 0;
  for (std::size_t a = 0; a < x.dims.size(); ++a) {
    const std::int64_t pace = 1 + (op.interior.empty() ? 0 : op.interior[a]), low = op.low[a];
    const std::int64_t first = low >= 0 ? 0 : (-low + pace - 1) / pace;
    const std::int64_t past = y.dims[a] - low <= 0 ? 0 : std::min(x.dims[a], (y.dims[a] - low - 1) / pace + 1);
    dims.push_back(std::max<std::int64_t>(0, past - first));
    from += first * x.strides[a];
    to += (low + first * pace) * y.strides[a];
    strides.push_back(y.strides[a] * pace);
  }
  CopyStep& s = begin_copies(c);
  add_copy(c, s, dims, x, from, x.strides, y, to, strides);
  end_copies(c, s);
}

bool always(const Graph&, NodeId, int) { return true; }
bool first_only(const Graph&, NodeId, int operand) { return operand == 0; }
// Only a concat has many operands, and they have the rank of its result.
const char* move_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(g.node(id).inputs[0]))) return why;
  return refuse_high_rank(g.shape(id));
}

// An integer constant known when planning.
struct SizeStep {
  std::int64_t* y = nullptr;
  std::int64_t value = 0;
};
void run_size(const SizeStep& s, std::int64_t) { *s.y = s.value; }
void lower_dim_size(LowerContext& c) {
  auto& s = c.keep<SizeStep>();
  c.point(s.y, c.out());
  s.value = c.in(0).dim(static_cast<int>(c.op<ops::DimSize>().axis));
  c.step<run_size>(s, 1, 5);
}

constexpr KernelEntry kMoveEntries[] = {
    {OpKind::Reshape, "copy", move_refuses, lower_reshape, always},
    {OpKind::StopGradient, "copy", move_refuses, lower_reshape, always},
    {OpKind::Bitcast, "copy", move_refuses, lower_reshape, always},
    {OpKind::Transpose, "copy", move_refuses, lower_transpose, always},
    {OpKind::Expand, "copy", move_refuses, lower_expand, always},
    {OpKind::Slice, "copy", move_refuses, lower_slice, always},
    {OpKind::Reverse, "copy", move_refuses, lower_reverse, always},
    {OpKind::Concat, "copy", move_refuses, lower_concat, always},
    {OpKind::Pad, "fill_copy", move_refuses, lower_pad, first_only},
    {OpKind::DimSize, "dim_size", never_refuses, lower_dim_size, always},
};

}  // namespace

std::span<const KernelEntry> move_entries() { return kMoveEntries; }

}  // namespace rlx::cpu
