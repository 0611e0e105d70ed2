// Reductions over neighbouring axes: of f32, and of other real dtypes (kernels/wide_reduce.h).
#include <algorithm>

#include "rlx/backends/cpu/kernels/wide_reduce.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

// The axes must be neighbours, so that a row-major operand is [outer, r, inner].
const char* axes_refuse(const Graph& g, NodeId id) {
  const auto& axes = g.node(id).op.as<ops::Reduce>().axes;
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (axes[i] != axes[i - 1] + 1) return "its axes are not neighbours";
  return nullptr;
}

const char* refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return axes_refuse(g, id);
}
// Extrema of Bool, any and all, are those of bytes 0 and 1.
DType dtype_reduced_as(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0);
  const auto fn = g.node(id).op.as<ops::Reduce>().fn;
  return t == DType::Bool && (fn == rlx::ReduceKind::Max || fn == rlx::ReduceKind::Min) ? DType::U8 : t;
}
const char* wide_reduce_refuses(const Graph& g, NodeId id) {
  const DType t = in_dtype(g, id, 0);
  if (!has_wide_reduce(dtype_reduced_as(g, id)) || g.shape(id).dtype() != t)
    return "its dtype is none of those with kernels of reductions";
  if (is_int(t) && g.node(id).op.as<ops::Reduce>().fn == rlx::ReduceKind::Mean) return "it is a mean of integers";
  return axes_refuse(g, id);
}

// x as [outer, r, inner].
template <class R>
void set_reduced(R& reduce, const View& x, const std::vector<std::int64_t>& axes) {
  check(x.dense(), "x of a reduction lies row-major");
  reduce.outer = reduce.r = reduce.inner = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (axes.empty() || i < axes.front())
      reduce.outer *= x.dim(i);
    else if (i <= axes.back())
      reduce.r *= x.dim(i);
    else
      reduce.inner *= x.dim(i);
  }
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

void lower(LowerContext& c) {
  const auto& op = c.op<ops::Reduce>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<ReduceStep>();
  s.reduce.kind = kernel_kind(op.fn);
  set_reduced(s.reduce, x, op.axes);
  c.point(s.reduce.x, x);
  c.point(s.reduce.y, y);
  s.run = c.kernels().reduce_f32;
  s.finish = c.kernels().reduce_finish_f32;
  s.plan = c.kernels().reduce_plan_f32(s.reduce);
  if (s.plan.splits == 1 && s.plan.chunks > 0) {  // split ones have a grain that their sums depend on
    // Wide pieces of rows are read faster, where they are enough for all threads.
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
  c.step<run_reduce>(s, s.plan.chunks, 0.1 * static_cast<double>(std::max(x.elements(), y.elements())));
  if (s.plan.splits > 1) c.step<run_finish>(s, 1, 0.1 * static_cast<double>(s.plan.partial_floats));
}

struct WideReduceStep {
  WideReduce reduce;
  std::int64_t strips = 1, units = 0, per_chunk = 1;  // of columns; of all; in a chunk
  const WideReduceKernels* kernels = nullptr;
};
void run_wide_reduce(const WideReduceStep& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
  for (std::int64_t u = chunk * s.per_chunk; u < end; ++u) {
    const std::int64_t col = u % s.strips * kReduceColumns;
    s.kernels->run(s.reduce, u / s.strips, col, std::min(kReduceColumns, s.reduce.inner - col));
  }
}
// any and all of nothing.
struct NoneStep {
  bool* y = nullptr;
  std::int64_t n = 0;
  bool value = false;
};
void run_none(const NoneStep& s, std::int64_t) { std::fill_n(s.y, s.n, s.value); }

void lower_wide_reduce(LowerContext& c) {
  const auto& op = c.op<ops::Reduce>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  auto& s = c.keep<WideReduceStep>();
  s.reduce.kind = kernel_kind(op.fn);
  s.reduce.dtype = dtype_reduced_as(c.graph(), c.id());
  set_reduced(s.reduce, x, op.axes);
  c.point(s.reduce.x, x);
  c.point(s.reduce.y, y);
  if (x.dtype == DType::Bool && s.reduce.r == 0) {
    auto& none = c.keep<NoneStep>();
    none.n = y.elements();
    none.value = s.reduce.kind == ReduceKind::Min;
    c.point(none.y, y);
    c.step<run_none>(none, 1, static_cast<double>(none.n));
    return;
  }
  s.kernels = &wide_reduce_kernels(c.kernels().isa);
  s.strips = (s.reduce.inner + kReduceColumns - 1) / kReduceColumns;
  s.units = s.reduce.outer * s.strips;
  const std::int64_t elements = std::max<std::int64_t>(1, s.reduce.r * std::min(kReduceColumns, s.reduce.inner));
  s.per_chunk = c.grain(std::max<std::int64_t>(1, 32768 / elements));
  c.step<run_wide_reduce>(s, (s.units + s.per_chunk - 1) / s.per_chunk,
                          0.2 * static_cast<double>(std::max(x.elements(), y.elements())));
}

constexpr Row kReduceRows[] = {{OpKind::Reduce, "reduce_f32", refuses, lower},
                               {OpKind::Reduce, "reduce_wide", wide_reduce_refuses, lower_wide_reduce}};

}  // namespace

std::span<const Row> reduce_rows() { return kReduceRows; }

}  // namespace rlx::cpu
