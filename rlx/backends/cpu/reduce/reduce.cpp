// Reductions over adjacent axes: of f32, and of other real dtypes (reduce/typed_reduce_kernels.h).
#include <algorithm>
#include <span>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

// A row-major operand is [outer, r, inner] around adjacent axes. Two groups of axes are reduced one after the other,
// the last group first, where the intermediate value is not rounded to 16 bits.
std::size_t last_group(const std::vector<std::int64_t>& axes) {
  std::size_t first = axes.size();
  while (first > 0 && (first == axes.size() || axes[first - 1] + 1 == axes[first])) --first;
  return first;
}
const char* axes_refuse(const Graph& g, NodeId id) {
  const auto& axes = g.node(id).op.as<ops::Reduce>().axes;
  const std::size_t second = last_group(axes);
  if (second == 0) return nullptr;
  const DType t = in_dtype(g, id, 0);
  if (t == DType::F16 || t == DType::BF16 || t == DType::Bool) return "its axes are not adjacent";
  return refuse_unless(last_group({axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(second)}) == 0,
                       "its axes form more than two groups of adjacent axes");
}

const char* refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return axes_refuse(g, id);
}
// Max and Min of Bool (any and all) are those of bytes 0 and 1.
DType dtype_reduced_as(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0);
  const auto fn = g.node(id).op.as<ops::Reduce>().fn;
  return t == DType::Bool && (fn == rlx::ReduceKind::Max || fn == rlx::ReduceKind::Min) ? DType::U8 : t;
}
const char* typed_reduce_refuses(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0);
  if (!has_typed_reduce(dtype_reduced_as(g, id)) || g.shape(id).dtype() != t)
    return "no reduction kernel has its dtype";
  if (is_int(t) && g.node(id).op.as<ops::Reduce>().fn == rlx::ReduceKind::Mean) return "it is a mean of integers";
  return axes_refuse(g, id);
}

// Extents [outer, r, inner] around adjacent axes.
template <class R>
void set_reduced(R& reduce, std::span<const std::int64_t> dims, std::span<const std::int64_t> axes) {
  reduce.outer = reduce.r = reduce.inner = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (axes.empty() || axis < axes.front())
      reduce.outer *= dims[i];
    else if (axis <= axes.back())
      reduce.r *= dims[i];
    else
      reduce.inner *= dims[i];
  }
}
// Calls add(dims, axes, from, to) for each group of axes. x comes first, the result last; null is an intermediate
// value.
template <class F>
void each_group(LowerContext& c, F add) {
  const View x = c.in(0), y = c.out();
  check(x.dense(), "x of a reduction is not row-major");
  const std::vector<std::int64_t>& axes = c.op<ops::Reduce>().axes;
  const std::size_t second = last_group(axes);
  const std::span<const std::int64_t> all(axes);
  if (second == 0) return add(x.dims, all, &x, &y);
  if (x.elements() == 0) {  // an intermediate value may have more elements than memory holds
    constexpr std::int64_t kLast[] = {1};
    return add(std::vector<std::int64_t>{y.elements(), 0}, std::span<const std::int64_t>(kLast), &x, &y);
  }
  std::vector<std::int64_t> dims = x.dims;
  add(dims, all.subspan(second), &x, nullptr);
  dims.erase(dims.begin() + axes[second], dims.begin() + axes.back() + 1);
  add(dims, all.first(second), nullptr, &y);
}

// Input and output of a group; null: an intermediate value.
template <class R, class T>
void point_ends(LowerContext& c, R& reduce, const View* from, const View* to, T* between) {
  if (from != nullptr)
    c.point(reduce.x, *from);
  else
    reduce.x = between;
  if (to != nullptr)
    c.point(reduce.y, *to);
  else
    reduce.y = between;
}

struct ReduceStep {
  ReduceF32 reduce;
  ReducePlan plan;
  float* partials = nullptr;
  void (*run)(const ReduceF32&, const ReducePlan&, std::int64_t, float*) = nullptr;
  void (*finish)(const ReduceF32&, const ReducePlan&, const float*) = nullptr;
};
void run_reduce(const ReduceStep& s, std::int64_t chunk) { s.run(s.reduce, s.plan, chunk, s.partials); }
void run_finish(const ReduceStep& s, std::int64_t) { s.finish(s.reduce, s.plan, s.partials); }

void add_reduce(LowerContext& c, ReduceStep& s) {
  s.run = c.kernels().reduce_f32;
  s.finish = c.kernels().reduce_finish_f32;
  s.plan = c.kernels().reduce_plan_f32(s.reduce);
  if (s.plan.splits == 1 && s.plan.chunks > 0) {  // the sums of split reductions depend on their grain
    // Wide chunks are read faster, so the inner axis is split only until each thread has a chunk.
    constexpr std::int64_t kNarrow = 64;
    while (s.plan.chunks < c.threads() && s.plan.inner_per_chunk >= 2 * kNarrow) {
      s.plan.inner_per_chunk = (s.plan.inner_per_chunk / 2 + kNarrow - 1) / kNarrow * kNarrow;
      s.plan.inner_chunks = (s.reduce.inner + s.plan.inner_per_chunk - 1) / s.plan.inner_per_chunk;
      s.plan.chunks = (s.reduce.outer + s.plan.outer_per_chunk - 1) / s.plan.outer_per_chunk * s.plan.inner_chunks;
    }
    s.plan.outer_per_chunk = c.grain(s.plan.outer_per_chunk);
    s.plan.chunks = (s.reduce.outer + s.plan.outer_per_chunk - 1) / s.plan.outer_per_chunk * s.plan.inner_chunks;
  }
  if (s.plan.partial_floats > 0)
    s.partials = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(s.plan.partial_floats) * sizeof(float)));
  c.step<run_reduce>(
      s, s.plan.chunks,
      0.1 * static_cast<double>(s.reduce.outer * s.reduce.inner * std::max<std::int64_t>(1, s.reduce.r)));
  if (s.plan.splits > 1) c.step<run_finish>(s, 1, 0.1 * static_cast<double>(s.plan.partial_floats));
}
void lower(LowerContext& c) {
  if (c.out().elements() == 0) return;
  float* between = nullptr;
  each_group(
      c, [&](std::span<const std::int64_t> dims, std::span<const std::int64_t> axes, const View* from, const View* to) {
        auto& s = c.keep<ReduceStep>();
        s.reduce.kind = kernel_kind(c.op<ops::Reduce>().fn);
        set_reduced(s.reduce, dims, axes);
        if (to == nullptr)
          between = reinterpret_cast<float*>(
              c.workspace(static_cast<std::size_t>(s.reduce.outer * s.reduce.inner) * sizeof(float)));
        point_ends(c, s.reduce, from, to, between);
        add_reduce(c, s);
      });
}

struct TypedReduceStep {
  TypedReduce reduce;
  std::int64_t column_blocks = 1, units = 0, per_chunk = 1;  // blocks of columns; units in all; units of a chunk
  const TypedReduceKernels* kernels = nullptr;
};
void run_typed_reduce(const TypedReduceStep& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
  for (std::int64_t u = chunk * s.per_chunk; u < end; ++u) {
    const std::int64_t col = u % s.column_blocks * kReduceColumns;
    s.kernels->run(s.reduce, u / s.column_blocks, col, std::min(kReduceColumns, s.reduce.inner - col));
  }
}
// any and all over zero elements.
struct NoneStep {
  bool* y = nullptr;
  std::int64_t n = 0;
  bool value = false;
};
void run_none(const NoneStep& s, std::int64_t) { std::fill_n(s.y, s.n, s.value); }

void lower_typed_reduce(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  if (x.dtype == DType::Bool && x.elements() == 0) {
    auto& none = c.keep<NoneStep>();
    none.n = y.elements();
    none.value = c.op<ops::Reduce>().fn == rlx::ReduceKind::Min;
    c.point(none.y, y);
    c.step<run_none>(none, 1, static_cast<double>(none.n));
    return;
  }
  std::byte* between = nullptr;
  each_group(
      c, [&](std::span<const std::int64_t> dims, std::span<const std::int64_t> axes, const View* from, const View* to) {
        auto& s = c.keep<TypedReduceStep>();
        s.reduce.kind = kernel_kind(c.op<ops::Reduce>().fn);
        s.reduce.dtype = dtype_reduced_as(c.graph(), c.id());
        set_reduced(s.reduce, dims, axes);
        const std::int64_t results = s.reduce.outer * s.reduce.inner;
        if (to == nullptr)
          between = c.workspace(static_cast<std::size_t>(results) * static_cast<std::size_t>(dtype_bits(x.dtype) / 8));
        point_ends(c, s.reduce, from, to, between);
        s.kernels = &typed_reduce_kernels(c.kernels().isa);
        s.column_blocks = (s.reduce.inner + kReduceColumns - 1) / kReduceColumns;
        s.units = s.reduce.outer * s.column_blocks;
        const std::int64_t r = std::max<std::int64_t>(1, s.reduce.r),
                           in_unit = r * std::min(kReduceColumns, s.reduce.inner);
        s.per_chunk = c.grain(std::max<std::int64_t>(1, 32768 / in_unit));
        c.step<run_typed_reduce>(s, (s.units + s.per_chunk - 1) / s.per_chunk, 0.2 * static_cast<double>(results * r));
      });
}

constexpr KernelEntry kReduceEntries[] = {{OpKind::Reduce, "reduce_f32", refuses, lower},
                                          {OpKind::Reduce, "reduce_typed", typed_reduce_refuses, lower_typed_reduce}};

}  // namespace

std::span<const KernelEntry> reduce_entries() { return kReduceEntries; }

}  // namespace rlx::cpu
