// Random gathers, scatters, sorts and windows.
#include <algorithm>

#include "rlx/ir/ops/indexing.h"
#include "tests/support/random_generator.h"

namespace rlx::test {

Expr Generator::indices(const Dims& dims, const Dim& extent) {
  const std::int64_t n = extent.evaluate({{"n", 12}, {"m", 6}});
  return whole_leaf(Shape(dims, dice_.chance(70) ? DType::I32 : DType::I64), dice_.chance(80) ? 0 : -2,
                    std::max<std::int64_t>(n, 1) + (dice_.chance(80) ? 0 : 2));
}

void Generator::index() {
  const Expr x = pick_any(1);
  const std::int64_t axis = axis_of(x);
  const Dim extent = x.dim(static_cast<int>(axis));
  Dims dims;
  for (std::int64_t i = dice_.below(3); i-- > 0;) dims.emplace_back(1 + dice_.below(5));
  switch (dice_.below(7)) {
    case 0: keep(g_.gather(x, indices(dims, extent), axis)); return;
    case 4: {  // elements along two axes
      const std::int64_t other = axis_of(x);
      if (other == axis) return;
      ops::Gather op{{axis, other}};
      if (dice_.chance(50)) op.mode = IndexMode::Fill, op.fill = static_cast<double>(dice_.below(3));
      keep(g_.gather(x, {indices(dims, extent), indices(dims, x.dim(static_cast<int>(other)))}, op));
      return;
    }
    case 5: {  // set, min and max: the result does not depend on the order
      const std::int64_t other = axis_of(x);
      if (other == axis) return;
      const Dim second = x.dim(static_cast<int>(other));
      const ScatterKind fns[] = {ScatterKind::Set, ScatterKind::Min, ScatterKind::Max, ScatterKind::Add};
      const ops::Scatter op{fns[dice_.below(4)],
                            {std::min(axis, other), std::max(axis, other)},
                            dice_.chance(50) ? IndexMode::Drop : IndexMode::Clamp};
      const bool first = axis < other;
      const Expr a = indices(dims, extent), b = indices(dims, second);
      Dims shape(x.shape().dims().begin(), x.shape().dims().begin() + op.axes[0]);
      shape.insert(shape.end(), dims.begin(), dims.end());
      for (std::int64_t k = op.axes[0]; k < x.rank(); ++k)
        if (k != axis && k != other) shape.push_back(x.dim(static_cast<int>(k)));
      if (elements(shape) > options_.max_elements) return;
      keep(g_.scatter(x, {first ? a : b, first ? b : a}, leaf(Shape(shape, x.dtype())), op));
      return;
    }
    case 6: {
      const Expr places = g_.iota(x.shape().with_dtype(DType::I32), axis);
      const ExprList sorted = g_.sort(x, {places}, axis, dice_.chance(50));
      keep(sorted[0]);
      keep(sorted[1]);
      return;
    }
    case 1: {
      Dims updates(x.shape().dims().begin(), x.shape().dims().begin() + axis);
      updates.insert(updates.end(), dims.begin(), dims.end());
      updates.insert(updates.end(), x.shape().dims().begin() + axis + 1, x.shape().dims().end());
      if (elements(updates) > options_.max_elements) return;
      keep(g_.scatter_add(x, indices(dims, extent), leaf(Shape(updates, x.dtype())), axis));
      return;
    }
    case 2: {
      if (!x.dim(-1).is_static() || x.dim(-1).value() < 1) return;
      const auto top = g_.top_k(x, 1 + dice_.below(std::min<std::int64_t>(x.dim(-1).value(), 6)));
      keep(top.values);
      keep(top.indices);
      return;
    }
    default: keep(dice_.chance(50) ? g_.arg_max(x, axis, dice_.chance(50)) : g_.arg_min(x, axis, dice_.chance(50)));
  }
}

void Generator::window() {
  const Expr x = pick_any(1);
  Dims sizes;
  for (const Dim& d : x.shape().dims())
    sizes.push_back(d.is_static() ? Dim(d.value() > 0 ? 1 + dice_.below(d.value()) : 0) : d);
  const Expr starts = whole_leaf(Shape({Dim(x.rank())}, dice_.chance(70) ? DType::I32 : DType::I64), -1, 6);
  if (dice_.chance(50)) {
    keep(g_.dynamic_slice(x, starts, sizes));
  } else {
    keep(g_.dynamic_update_slice(x, leaf(Shape(sizes, x.dtype())), starts));
  }
}

}  // namespace rlx::test
