// Shared rules of the ops over windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/math/windows.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/conv.h"

namespace rlx {

/// The error for lists that describe no windows over x; none for valid ones.
std::optional<Diagnostic> check_windows(const InferContext& c, const ops::ReduceWindow& op, const Shape& x);
/// The dims of the window results.
Dims window_dims(const ops::ReduceWindow& op, const Shape& x);
/// The dtype for indices of elements of x: I32 when x is small enough, which is assumed for a symbolic x, else I64.
Result<DType> place_dtype(const InferContext& c, const Shape& x);
/// The windows of a SelectAndScatter as a ReduceWindow.
ops::ReduceWindow reduce_window_of(const ops::SelectAndScatter& op);

/// Calls visit(o, taps) for each window in row-major order. `taps` are its elements of x along each axis.
template <class F>
void for_each_window(const std::vector<WindowAxis>& axes, const std::vector<std::int64_t>& x_dims,
                     const std::vector<std::int64_t>& out_dims, F visit) {
  std::int64_t outputs = 1;
  for (std::int64_t d : out_dims) outputs *= d;
  std::vector<std::int64_t> at(axes.size(), 0);
  std::vector<WindowTaps> taps(axes.size());
  if (outputs == 0) return;
  for (std::size_t a = 0; a < axes.size(); ++a) taps[a] = axes[a].taps(0, x_dims[a]);
  for (std::int64_t o = 0; o < outputs; ++o) {
    visit(o, taps);
    for (std::size_t a = axes.size(); a-- > 0;) {
      if (++at[a] == out_dims[a]) at[a] = 0;
      taps[a] = axes[a].taps(at[a], x_dims[a]);
      if (at[a] != 0) break;
    }
  }
}
/// Calls visit(i) for each element of a window. i is its row-major index in x.
template <class F>
void for_each_tap(const std::vector<WindowTaps>& taps, const std::vector<std::int64_t>& strides, F visit) {
  std::int64_t element = 0;
  for (std::size_t a = 0; a < taps.size(); ++a) {
    if (taps[a].count == 0) return;
    element += taps[a].first * strides[a];
  }
  std::vector<std::int64_t> at(taps.size(), 0);
  for (;;) {
    visit(element);
    std::size_t a = taps.size();
    for (;; --a) {
      if (a == 0) return;
      const std::int64_t step = taps[a - 1].step * strides[a - 1];
      element += step;
      if (++at[a - 1] < taps[a - 1].count) break;
      element -= step * taps[a - 1].count;
      at[a - 1] = 0;
    }
  }
}

/// The row-major indices in x of the elements of its windows: [outputs.., elements of a window], -1 outside of x.
Expr window_places(Graph& g, const ops::ReduceWindow& op, const Shape& x, const Dims& out);
/// x flattened to rank 1.
inline Expr in_a_row(Graph& g, Expr x) { return g.reshape(x, {x.shape().num_elements_dim()}); }
/// The elements of flattened x at indices `places`; `otherwise` where an index is negative.
Expr at_places(Graph& g, Expr x, Expr places, double otherwise = 0);

}  // namespace rlx
