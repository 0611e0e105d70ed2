// Builder functions that read and write by index, and sorting.
#include <algorithm>
#include <limits>
#include <numeric>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/shape.h"

namespace rlx {
using namespace building;
namespace {

// Indices where negative ones count from the end of x's axis.
Expr counted(Graph& g, Expr indices, Expr x, std::int64_t axis, SourceLoc loc, const char* what) {
  if (!is_index(indices.dtype()))
    fail(loc, ErrorCode::DTypeMismatch, concat_text(what, ": indices must be i32 or i64, not ", indices.shape()),
         "cast them");
  const At at{loc};
  const Dim& d = x.dim(static_cast<int>(axis));
  const bool narrow = d.is_static() && d.value() <= std::numeric_limits<std::int32_t>::max();
  const DType t = narrow ? indices.dtype() : count_dtype(g, {{d}}, indices.dtype());
  const Expr i = cast_at(g, indices, t, loc);
  const Operand extent = narrow ? at(d.value()) : at(extent_of(g, x, axis, t, loc));
  return g.where(at(g.lt(at(i), at(0))), at(g.add(at(i), extent)), at(i));
}

// Index tensors broadcast to their common dims.
std::vector<Value> broadcast(Graph& g, const std::vector<Expr>& indices, SourceLoc loc, const char* what) {
  Dims dims;
  for (const Expr& e : indices) {
    auto joined = broadcast_dims(dims, e.shape().dims());
    if (!joined)
      fail(loc, ErrorCode::ShapeMismatch,
           concat_text(what, ": indices ", e.shape(), " do not broadcast with ", dims_text(dims)));
    dims = std::move(*joined);
  }
  std::vector<Value> out;
  for (const Expr& e : indices) out.push_back(e.shape().dims() == dims ? e : g.expand(At{loc}(e), dims));
  return out;
}

// Sorts the axes in ascending order, and the index tensors with them.
void sort_axes(std::vector<std::int64_t>& axes, std::vector<Value>& indices, int rank, SourceLoc loc,
               const char* what) {
  for (std::int64_t& a : axes) a = normalize_axis_at(loc, a, rank, what);
  if (axes.size() != indices.size() || axes.empty())
    fail(loc, ErrorCode::InvalidArgument,
         concat_text(what, ": ", axes.size(), " axes, but ", indices.size(), " index tensors"),
         "give one index tensor for each axis");
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return axes[a] < axes[b]; });
  const std::vector<std::int64_t> old_axes = axes;
  const std::vector<Value> old = indices;
  for (std::size_t i = 0; i < order.size(); ++i) axes[i] = old_axes[order[i]], indices[i] = old[order[i]];
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    fail(loc, ErrorCode::InvalidArgument, concat_text(what, ": an axis is named twice"));
}

std::vector<Value> joined(Value first, const std::vector<Value>& indices, std::optional<Value> last = {}) {
  std::vector<Value> out{first};
  out.insert(out.end(), indices.begin(), indices.end());
  if (last) out.push_back(*last);
  return out;
}

std::vector<Expr> own_indices(Graph& g, const ExprList& indices, SourceLoc loc) {
  std::vector<Expr> out;
  for (const Expr& e : indices) out.push_back(own(g, Operand(e, loc)));
  return out;
}

// An index tensor for each axis of x: `indices` at `axis`, and the position itself on other axes.
std::vector<Value> along_axis(Graph& g, Expr x, Expr indices, std::int64_t axis, SourceLoc loc, const char* what) {
  if (indices.rank() != x.rank())
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(what, ": indices ", indices.shape(), " must have the rank of x ", x.shape()));
  const Expr at = counted(g, indices, x, axis, loc, what);
  std::vector<Value> out;
  for (int a = 0; a < x.rank(); ++a) {
    const Dim &extent = x.dim(a), &count = indices.dim(a);
    if (a != axis && extent.is_static() && count.is_static() && count.value() > extent.value())
      fail(loc, ErrorCode::ShapeMismatch,
           concat_text(what, ": indices ", indices.shape(), " are longer than x ", x.shape(), " along axis ", a));
    out.push_back(a == axis ? at
                            : g.expand(At{loc}(positions(g, count, a, x.rank(), count_dtype(g, {{count}}), loc)),
                                       indices.shape().dims()));
  }
  return out;
}

std::vector<std::int64_t> first_axes(std::int64_t count) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(count));
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  return axes;
}

// The components of indices [.., A] along the last axis. Each indexes one axis of x, from axis `first` on.
std::vector<Expr> components(Graph& g, Expr x, Expr indices, std::int64_t first, SourceLoc loc, const char* what) {
  if (indices.rank() < 1 || !indices.dim(-1).is_static() || indices.dim(-1).value() < 1 ||
      first + indices.dim(-1).value() > x.rank())
    fail(loc, ErrorCode::ShapeMismatch,
         concat_text(what, ": the last axis of indices ", indices.shape(), " must index 1 to ", x.rank() - first,
                     " axes of x ", x.shape()));
  std::vector<Expr> out;
  Dims dims(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
  for (std::int64_t i = 0; i < indices.dim(-1).value(); ++i)
    out.push_back(counted(g, g.reshape(At{loc}(g.narrow(At{loc}(indices), -1, i, 1)), dims), x, first + i, loc, what));
  return out;
}

}  // namespace

Expr Builder::gather(Operand table, Operand indices, std::int64_t axis, const DeclaredShape& shape) {
  Expr v = own(graph(), table);
  return shape.check(graph().add(ops::Gather{{normalize_axis_at(table.loc(), axis, v.rank(), "gather")}},
                                 {v, own(graph(), indices)}, table.loc()));
}
Expr Builder::gather(Operand table, const ExprList& indices, ops::Gather op, const DeclaredShape& shape) {
  Expr v = own(graph(), table);
  std::vector<Value> at = broadcast(graph(), own_indices(graph(), indices, table.loc()), table.loc(), "gather");
  sort_axes(op.axes, at, v.rank(), table.loc(), "gather");
  return shape.check(graph().add(std::move(op), joined(v, at), table.loc()));
}
Expr Builder::scatter_add(Operand operand, Operand indices, Operand updates, std::int64_t axis,
                          const DeclaredShape& shape) {
  return scatter(ScatterKind::Add, operand, indices, updates, axis, shape);
}
Expr Builder::scatter(ScatterKind fn, Operand operand, Operand indices, Operand updates, std::int64_t axis,
                      const DeclaredShape& shape) {
  Expr v = own(graph(), operand);
  return shape.check(graph().add(ops::Scatter{fn, {normalize_axis_at(operand.loc(), axis, v.rank(), "scatter")}},
                                 {v, own(graph(), indices), stored_as(graph(), updates, v.dtype())}, operand.loc()));
}
Expr Builder::scatter(Operand operand, const ExprList& indices, Operand updates, ops::Scatter op,
                      const DeclaredShape& shape) {
  Expr v = own(graph(), operand);
  std::vector<Value> at = broadcast(graph(), own_indices(graph(), indices, operand.loc()), operand.loc(), "scatter");
  sort_axes(op.axes, at, v.rank(), operand.loc(), "scatter");
  const Expr u = stored_as(graph(), updates, v.dtype());
  return shape.check(graph().add(std::move(op), joined(v, at, u), operand.loc()));
}
Expr Builder::take(Operand table, Operand indices, std::int64_t axis, IndexMode mode) {
  Expr v = own(graph(), table);
  const std::int64_t a = normalize_axis_at(table.loc(), axis, v.rank(), "take");
  return graph().add(ops::Gather{{a}, mode}, {v, counted(graph(), own(graph(), indices), v, a, table.loc(), "take")},
                     table.loc());
}
Expr Builder::take_along_axis(Operand x, Operand indices, std::int64_t axis) {
  Expr v = own(graph(), x);
  const std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "take_along_axis");
  Expr i = own(graph(), indices);
  if (i.rank() == v.rank()) {  // as in NumPy, an extent of 1 stretches
    Dims dims = i.shape().dims();
    for (int k = 0; k < v.rank(); ++k)
      if (k != a && dims[static_cast<std::size_t>(k)].is_static(1)) dims[static_cast<std::size_t>(k)] = v.dim(k);
    if (dims != i.shape().dims()) i = expand(Operand(i, x.loc()), dims);
  }
  return graph().add(ops::Gather{first_axes(v.rank())},
                     joined(v, along_axis(graph(), v, i, a, x.loc(), "take_along_axis")), x.loc());
}
Expr Builder::put_along_axis(Operand x, Operand indices, Operand updates, std::int64_t axis, ScatterKind fn) {
  Expr v = own(graph(), x);
  const std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "put_along_axis");
  const std::vector<Value> at = along_axis(graph(), v, own(graph(), indices), a, x.loc(), "put_along_axis");
  Expr u = stored_as(graph(), updates, v.dtype());
  if (u.rank() == 0) u = expand(Operand(u, x.loc()), graph().shape(at[0]).dims());
  return graph().add(ops::Scatter{fn, first_axes(v.rank())}, joined(v, at, u), x.loc());
}
Expr Builder::gather_nd(Operand x, Operand indices, std::int64_t batch_dims) {
  Expr v = own(graph(), x), i = own(graph(), indices);
  if (batch_dims < 0 || batch_dims >= i.rank() || batch_dims >= v.rank())
    fail(x.loc(), ErrorCode::InvalidArgument,
         concat_text("gather_nd: batch_dims ", batch_dims, " is too many for x ", v.shape(), " and indices ",
                     i.shape()));
  std::vector<Expr> at = components(graph(), v, i, batch_dims, x.loc(), "gather_nd");
  const Dims dims = at[0].shape().dims();
  for (std::int64_t b = batch_dims; b-- > 0;) {
    const auto axis = static_cast<int>(b);
    if (!(v.dim(axis) == i.dim(axis)))
      fail(x.loc(), ErrorCode::ShapeMismatch,
           concat_text("gather_nd: x ", v.shape(), " and indices ", i.shape(), " differ in batch axis ", b));
    const DType t = count_dtype(graph(), {{v.dim(axis)}});
    at.insert(at.begin(), positions(graph(), v.dim(axis), b, static_cast<int>(dims.size()), t, x.loc()));
  }
  const auto axes = first_axes(static_cast<std::int64_t>(at.size()));
  return graph().add(ops::Gather{axes}, joined(v, broadcast(graph(), at, x.loc(), "gather_nd")), x.loc());
}
Expr Builder::scatter_nd(Operand x, Operand indices, Operand updates, ScatterKind fn) {
  Expr v = own(graph(), x);
  const std::vector<Expr> at = components(graph(), v, own(graph(), indices), 0, x.loc(), "scatter_nd");
  const auto axes = first_axes(static_cast<std::int64_t>(at.size()));
  return graph().add(ops::Scatter{fn, axes},
                     joined(v, broadcast(graph(), at, x.loc(), "scatter_nd"), stored_as(graph(), updates, v.dtype())),
                     x.loc());
}

Expr Builder::sort(Operand x, std::int64_t axis, bool descending) {
  Expr v = own(graph(), x);
  return graph().add(ops::Sort{normalize_axis_at(x.loc(), axis, v.rank(), "sort"), descending}, {v}, x.loc());
}
ExprList Builder::sort(Operand keys, const ExprList& values, std::int64_t axis, bool descending) {
  Expr v = own(graph(), keys);
  std::vector<Value> operands{v};
  for (const Expr& e : values) operands.push_back(own(graph(), Operand(e, keys.loc())));
  const std::size_t count = operands.size();
  const Expr e = graph().add(ops::Sort{normalize_axis_at(keys.loc(), axis, v.rank(), "sort"), descending},
                             std::move(operands), keys.loc());
  ExprList out;
  for (std::size_t r = 0; r < count; ++r) out.push_back(e.result(static_cast<std::uint32_t>(r)));
  return out;
}
Expr Builder::argsort(Operand x, std::int64_t axis, bool descending) {
  Expr v = own(graph(), x);
  const std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "argsort");
  if (const Dim& n = v.dim(static_cast<int>(a)); n.is_static() && n.value() > std::numeric_limits<std::int32_t>::max())
    fail(x.loc(), ErrorCode::Unsupported,
         concat_text("argsort: axis ", a, " of ", v.shape(), " has more elements than i32 indices can address"));
  const Expr places = iota(v.shape().with_dtype(DType::I32), a, x.loc());
  return graph().add(ops::Sort{a, descending}, {v, places}, x.loc()).result(1);
}

Expr Builder::grouped_dot(Operand x, Operand w, Operand ids) {
  Expr a = own(graph(), x), b = own(graph(), w);
  const DType t = promoted(a.dtype(), b.dtype(), "grouped_dot", x.loc());
  return graph().add(ops::GroupedDot{GroupedKind::Rows, 0},
                     {cast_at(graph(), a, t, x.loc()), cast_at(graph(), b, t, w.loc()), own(graph(), ids)}, x.loc());
}
Expr Builder::grouped_dot_contract(Operand x, Operand y, Operand ids, std::int64_t groups) {
  Expr a = own(graph(), x), b = own(graph(), y);
  const DType t = promoted(a.dtype(), b.dtype(), "grouped_dot_contract", x.loc());
  return graph().add(ops::GroupedDot{GroupedKind::Contract, groups},
                     {cast_at(graph(), a, t, x.loc()), cast_at(graph(), b, t, y.loc()), own(graph(), ids)}, x.loc());
}

}  // namespace rlx
