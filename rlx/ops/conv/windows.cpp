// Shared rules of windows.
#include "rlx/ops/conv/windows.h"

#include <cstdlib>
#include <limits>

#include "rlx/ir/build/counting.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostOfWindows = std::int64_t{1} << 30;  // keeps window indices within 64 bits

}  // namespace

std::optional<Diagnostic> check_windows(const InferContext& c, const ops::ReduceWindow& op, const Shape& x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  struct List {
    const char* name;
    const std::vector<std::int64_t>& values;
    std::int64_t least;
  };
  for (const List& l : {List{"window", op.window, 1}, List{"strides", op.strides, 1},
                        List{"low", op.low, -kMostOfWindows}, List{"high", op.high, -kMostOfWindows},
                        List{"base_dilation", op.base_dilation, 1}, List{"window_dilation", op.window_dilation, 1}}) {
    if (l.values.size() != rank && !(l.values.empty() && &l.values != &op.window))
      return c.attr_error(l.name, " has ", l.values.size(), " numbers, x ", x, " has ", rank, " axes");
    for (std::int64_t v : l.values)
      if (v < l.least || v > kMostOfWindows)
        return c.attr_error(l.name, " ", dims_text(l.values), " has ", v, ", which is not in [", l.least, ", ",
                            kMostOfWindows, "]");
  }
  const std::vector<WindowAxis> axes = window_axes(op);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim& n = x.dims()[i];
    if (n.is_static() && n.value() > (std::int64_t{1} << 60) / axes[i].base)
      return c.error("axis ", i, " of x ", x, " is too long with base_dilation ", axes[i].base);
  }
  return std::nullopt;
}

Dims window_dims(const ops::ReduceWindow& op, const Shape& x) {
  const std::vector<WindowAxis> axes = window_axes(op);
  Dims dims;
  for (std::size_t i = 0; i < axes.size(); ++i) dims.push_back(axes[i].outputs(x.dims()[i]));
  return dims;
}

Result<DType> place_dtype(const InferContext& c, const Shape& x) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const Dim n = x.num_elements_dim();
  if (n.is_static()) return n.value() > most ? DType::I64 : DType::I32;
  if (c.negative(Dim(most) - n)) return c.error("x ", x, " has too many elements");
  return DType::I32;
}

ops::ReduceWindow reduce_window_of(const ops::SelectAndScatter& op) {
  return {op.select, op.window, op.strides, op.low, op.high, op.base_dilation, op.window_dilation};
}

Expr window_places(Graph& g, const ops::ReduceWindow& op, const Shape& x, const Dims& out) {
  const std::vector<WindowAxis> axes = window_axes(op);
  const int rank = x.rank();
  // Positions are those in dilated and padded axes.
  Dims padded;
  for (int a = 0; a < rank; ++a) {
    const WindowAxis& w = axes[static_cast<std::size_t>(a)];
    padded.push_back(x.dim(a) * Dim(w.base) + Dim(std::abs(w.low) + std::abs(w.high) + w.span()));
  }
  DType t = count_dtype(g, {x.dims()});
  for (const Dim& d : padded)
    if (count_dtype(g, {{d}}) == DType::I64) t = DType::I64;
  Dims dims = out;
  for (const WindowAxis& w : axes) dims.push_back(Dim(w.window));
  Expr flat, inside;
  for (int a = 0; a < rank; ++a) {
    const WindowAxis& w = axes[static_cast<std::size_t>(a)];
    const Expr o = positions(g, out[static_cast<std::size_t>(a)], a, 2 * rank, t),
               k = positions(g, Dim(w.window), rank + a, 2 * rank, t), n = dim_value(g, x.dim(a), t);
    Expr at = o * w.stride + k * w.dilation - w.low;
    Expr there = g.ge(at, 0);
    if (w.base > 1) {
      there = g.where(there, g.eq(g.mod(at, w.base), 0), there);
      at = g.div(g.max(at, 0), w.base);
    }
    there = g.where(there, g.lt(at, n), there);
    flat = flat.valid() ? flat * n + at : at;
    inside = inside.valid() ? g.bit_and(inside, there) : there;
  }
  Dims joined = out;
  joined.push_back(Dim(1));
  for (const WindowAxis& w : axes) joined.back() = joined.back() * Dim(w.window);
  if (rank == 0) return g.expand(g.constant(Tensor::zeros(Shape({}, t))), joined);
  return g.reshape(g.expand(g.where(inside, flat, -1), dims), joined);
}

Expr at_places(Graph& g, Expr x, Expr places, double otherwise) {
  return g.add(ops::Gather{{0}, IndexMode::Fill, otherwise}, {x, places});
}

}  // namespace rlx
