// Helpers of decompositions that compute half-precision operands in F32, so that they round once, like the reference
// rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// x in its accumulator dtype: BF16 and F16 as F32, other floats unchanged.
inline Expr widen(Expr x) { return is_float(x.dtype()) ? x.graph().cast(x, accumulator_dtype(x.dtype())) : x; }
/// x rounded to the dtype of a result.
inline Expr round_to(Expr x, DType dtype) { return x.graph().cast(x, dtype); }

/// A vector [N] as [1.., N, 1..] of rank `rank`, with N at `axis`.
inline Expr along_axis(Expr vector, int rank, std::int64_t axis) {
  Dims dims(static_cast<std::size_t>(rank), Dim(1));
  dims[static_cast<std::size_t>(axis)] = vector.dim(0);
  return dims == vector.shape().dims() ? vector : vector.graph().reshape(vector, dims);
}

/// The same for a value whose dims are those of `axes`, in order.
inline Expr along_axes(Expr v, int rank, const std::vector<std::int64_t>& axes) {
  Dims dims(static_cast<std::size_t>(rank), Dim(1));
  for (std::size_t i = 0; i < axes.size(); ++i) dims[static_cast<std::size_t>(axes[i])] = v.dim(static_cast<int>(i));
  return dims == v.shape().dims() ? v : v.graph().reshape(v, dims);
}

/// The sum of x over all axes except the sorted `axes`.
inline Expr sum_to_axes(Expr x, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), i)) others.push_back(i);
  return others.empty() ? x : x.graph().sum(x, others);
}

}  // namespace rlx
