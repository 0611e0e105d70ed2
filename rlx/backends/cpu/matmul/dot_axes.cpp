// Finds the axes of a matmul by role.
#include "rlx/backends/cpu/matmul/dot_axes.h"

#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

/// Axes of a matmul by role.
struct DotRoles {
  std::vector<int> lhs_batch, rhs_batch, lhs_free, rhs_free, lhs_contract, rhs_contract;
};

template <class Op>
DotRoles dot_roles(const Op& op, int lhs_rank, int rhs_rank) {
  DotRoles r;
  const auto copy = [](const std::vector<std::int64_t>& from) { return std::vector<int>(from.begin(), from.end()); };
  r.lhs_batch = copy(op.lhs_batch);
  r.rhs_batch = copy(op.rhs_batch);
  r.lhs_contract = copy(op.lhs_contract);
  r.rhs_contract = copy(op.rhs_contract);
  const auto free = [](int rank, const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> out;
    for (int i = 0; i < rank; ++i)
      if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
    return out;
  };
  r.lhs_free = free(lhs_rank, r.lhs_batch, r.lhs_contract);
  r.rhs_free = free(rhs_rank, r.rhs_batch, r.rhs_contract);
  return r;
}

DotRoles roles_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const int a = in_shape(g, id, 0).rank(), b = in_shape(g, id, 1).rank();
  if (const auto* fused = n.op.get_if<ops::FusedDot>()) return dot_roles(*fused, a, b);
  return dot_roles(n.op.as<ops::DotGeneral>(), a, b);
}

}  // namespace

std::vector<GemmAxis> folded(const std::vector<GemmAxis>& axes) {
  std::vector<GemmAxis> out;
  for (const GemmAxis& axis : axes) {
    if (axis.extent == 1) continue;
    GemmAxis* last = out.empty() ? nullptr : &out.back();
    if (last && last->a == axis.a * axis.extent && last->b == axis.b * axis.extent && last->c == axis.c * axis.extent)
      *last = {last->extent * axis.extent, axis.a, axis.b, axis.c};
    else
      out.push_back(axis);
  }
  return out;
}

DotAxes dot_axes(const LowerContext& c, bool last_axis_alone) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  const DotRoles roles = roles_of(c.graph(), c.id());
  // The result is batch ++ lhs free ++ rhs free, row-major.
  std::vector<GemmAxis> batch, rows, cols, contracted;
  std::size_t at = 0;
  for (std::size_t i = 0; i < roles.lhs_batch.size(); ++i, ++at)
    batch.push_back({y.dims[at], x.stride(roles.lhs_batch[i]), w.stride(roles.rhs_batch[i]), y.strides[at]});
  for (int a : roles.lhs_free) rows.push_back({y.dims[at], x.stride(a), 0, y.strides[at]}), ++at;
  for (int b : roles.rhs_free) cols.push_back({y.dims[at], 0, w.stride(b), y.strides[at]}), ++at;
  for (std::size_t i = 0; i < roles.lhs_contract.size(); ++i)
    contracted.push_back(
        {x.dim(roles.lhs_contract[i]), x.stride(roles.lhs_contract[i]), w.stride(roles.rhs_contract[i]), 0});
  DotAxes out;
  out.outer = folded(batch);
  out.contracted = folded(contracted);
  const auto take_last = [](std::vector<GemmAxis>& axes, GemmAxis& last) {
    if (axes.empty()) return;
    last = axes.back();
    axes.pop_back();
  };
  rows = folded(rows);
  take_last(rows, out.row);
  if (last_axis_alone) {
    take_last(cols, out.col);
    cols = folded(cols);
  } else {
    cols = folded(cols);
    take_last(cols, out.col);
  }
  out.outer.insert(out.outer.end(), rows.begin(), rows.end());
  out.outer.insert(out.outer.end(), cols.begin(), cols.end());
  return out;
}

bool as_gemv(DotAxes& axes) {
  if (axes.col.extent != 1 || axes.row.extent <= 1 || axes.row.c != 1) return false;
  const auto swap = [](GemmAxis& axis) { std::swap(axis.a, axis.b); };
  std::swap(axes.row, axes.col);
  swap(axes.row), swap(axes.col);
  for (auto* list : {&axes.outer, &axes.contracted}) std::for_each(list->begin(), list->end(), swap);
  return true;
}

bool has_rhs_free_axis(const Graph& g, NodeId id) { return !roles_of(g, id).rhs_free.empty(); }

}  // namespace rlx::cpu
