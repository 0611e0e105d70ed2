// Builder functions whose results have data-dependent extents. Each such extent is a symbol with a source.
#include <algorithm>

#include "rlx/ir/build/building.h"
#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/shape.h"

namespace rlx {
using namespace building;
namespace {

// A symbol that no shape of the graph contains yet.
std::string fresh_symbol(const Graph& g) {
  const auto taken = [&](const std::string& name) {
    if (g.symbols().contains(name)) return true;
    for (OpKind kind : {OpKind::Input, OpKind::Param})  // their shapes have symbols without a declaration
      for (NodeId id : g.leaves(kind)) {
        if (g.shape(id).is_static()) continue;
        const std::vector<std::string> names = g.shape(id).symbols();
        if (std::find(names.begin(), names.end(), name) != names.end()) return true;
      }
    return false;
  };
  std::size_t number = g.symbol_sources().size();
  while (taken(concat_text("value", number))) ++number;
  return concat_text("value", number);
}

// The indices at which mask [n] is true, in dtype `t`.
Expr kept(Graph& g, const Expr& mask, DType t, SourceLoc loc) {
  const At at{loc};
  const Dim n = mask.dim(0);
  const Expr ones = g.cast(at(mask), t);
  // A selected index goes after the earlier ones. All others go out of range, where the scatter drops them.
  const Expr to = g.where(at(mask), at(g.cumsum(at(ones), 0, true)), at(g.constant(Tensor::scalar_i64(t, -1), loc)));
  const Expr none = g.expand(at(g.constant(Tensor::scalar_i64(t, 0), loc)), {n});
  const Expr places = positions(g, n, 0, 1, t, loc);
  return g.first(at(g.scatter(ScatterKind::Set, at(none), at(to), at(places))), at(g.sum(at(ones))));
}

}  // namespace

Dim Builder::value_dim(Operand value, std::int64_t max, std::int64_t min) {
  Graph& g = graph();
  const auto refuse = [&](const auto& got) {
    fail(value.loc(), ErrorCode::InvalidArgument,
         concat_text("value_dim: ", got, " is not in the valid range [", min, ", ", max, "]"),
         "0 <= min <= value <= max");
  };
  if (min < 0 || max < min) refuse("nothing");
  const auto number = [&](std::int64_t v) {
    if (v < min || v > max) refuse(v);
    return Dim(v);
  };
  if (value.is_scalar()) {
    if (value.is_float_scalar()) refuse(value.scalar());
    if (value.scalar() >= 0x1p63) refuse(value.scalar());
    return number(static_cast<std::int64_t>(value.integer_bits()));
  }
  const Expr v = own(g, value);
  if (v.rank() != 0 || !is_int(v.dtype()))
    fail(value.loc(), ErrorCode::ShapeMismatch, concat_text("value_dim: ", v.value(), ' ', v.shape()),
         "an extent must be an integer scalar: reduce or cast the value");
  const Node& made = g.node(v.value().node);
  if (const auto* constant = made.op.get_if<ops::Constant>()) return number(constant->value.at_i64(0));
  if (const auto* size = made.op.get_if<ops::DimSize>())  // already known as a dimension
    if (const Dim d = g.shape(made.inputs[0]).dim(static_cast<int>(size->axis));
        bounds_of(g, d).min >= min && bounds_of(g, d).max <= max)
      return d;
  return g.symbol(fresh_symbol(g), {min, max}, cast_at(g, v, DType::I64, value.loc()), value.loc());
}

Expr Builder::first(Operand x, Operand count, std::int64_t axis) {
  Graph& g = graph();
  const Expr v = own(g, x);
  const std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "first");
  const Dim n = value_dim(count, bounds_of(g, v.dim(static_cast<int>(a))).max);
  return narrow(Operand(v, x.loc()), a, 0, n);
}

Expr Builder::compress(Operand x, Operand mask, std::int64_t axis) {
  Graph& g = graph();
  const Expr v = own(g, x), m = own(g, mask);
  const std::int64_t a = normalize_axis_at(x.loc(), axis, v.rank(), "compress");
  if (m.rank() != 1 || m.dtype() != DType::Bool || !(m.dim(0) == v.dim(static_cast<int>(a))))
    fail(x.loc(), ErrorCode::ShapeMismatch, concat_text("compress: the mask is ", m.shape(), ", but x is ", v.shape()),
         concat_text("give one Bool for each row along axis ", a));
  const DType t = count_dtype(g, {{m.dim(0)}});
  return gather(Operand(v, x.loc()), Operand(kept(g, m, t, x.loc()), x.loc()), a);
}

Expr Builder::nonzero(Operand x) {
  Graph& g = graph();
  const Expr v = own(g, x);
  if (v.rank() == 0)
    fail(x.loc(), ErrorCode::ShapeMismatch, concat_text("nonzero: ", v.shape(), " is a scalar"),
         "reshape it to at least one axis");
  const At at{x.loc()};
  const Expr is_set = v.dtype() == DType::Bool ? v : ne(at(v), at(0));
  const Expr flat = reshape(at(is_set), {v.shape().num_elements_dim()});
  const DType t = count_dtype(g, {v.shape().dims()});
  Expr rest = kept(g, flat, t, x.loc());
  std::vector<Expr> coordinates;
  for (int axis = v.rank(); axis-- > 0;) {
    const Expr extent = extent_of(g, v, axis, t, x.loc());
    coordinates.push_back(unsqueeze(at(axis == 0 ? rest : mod(at(rest), at(extent))), 0));
    if (axis != 0) rest = div(at(rest), at(extent));
  }
  std::reverse(coordinates.begin(), coordinates.end());
  return cast_at(g, concat(coordinates, 0, {}, x.loc()), DType::I64, x.loc());
}

}  // namespace rlx
