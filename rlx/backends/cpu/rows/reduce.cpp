// F32 reductions over neighbouring axes.
#include <algorithm>

#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

// The axes must be neighbours, so that a row-major operand is [outer, r, inner].
const char* refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  const auto& axes = g.node(id).op.as<ops::Reduce>().axes;
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (axes[i] != axes[i - 1] + 1) return "its axes are not neighbours";
  return nullptr;
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
  check(x.dense(), "x of a reduction lies row-major");
  auto& s = c.keep<ReduceStep>();
  s.reduce.kind = kernel_kind(op.fn);
  s.reduce.outer = s.reduce.r = s.reduce.inner = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (op.axes.empty() || i < op.axes.front())
      s.reduce.outer *= x.dim(i);
    else if (i <= op.axes.back())
      s.reduce.r *= x.dim(i);
    else
      s.reduce.inner *= x.dim(i);
  }
  c.point(s.reduce.x, x);
  c.point(s.reduce.y, y);
  s.run = c.kernels().reduce_f32;
  s.finish = c.kernels().reduce_finish_f32;
  s.plan = c.kernels().reduce_plan_f32(s.reduce);
  if (s.plan.splits == 1 && s.plan.chunks > 0) {  // split ones have a grain that their sums depend on
    s.plan.outer_per_chunk = c.grain(s.plan.outer_per_chunk);
    s.plan.chunks = (s.reduce.outer + s.plan.outer_per_chunk - 1) / s.plan.outer_per_chunk * s.plan.inner_chunks;
  }
  if (s.plan.partial_floats > 0)
    s.partials = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(s.plan.partial_floats) * sizeof(float)));
  c.step<run_reduce>(s, s.plan.chunks, 0.1 * static_cast<double>(std::max(x.elements(), y.elements())));
  if (s.plan.splits > 1) c.step<run_finish>(s, 1, 0.1 * static_cast<double>(s.plan.partial_floats));
}

constexpr Row kReduceRows[] = {{OpKind::Reduce, "reduce_f32", refuses, lower}};

}  // namespace

std::span<const Row> reduce_rows() { return kReduceRows; }

}  // namespace rlx::cpu
