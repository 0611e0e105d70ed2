// Computing half-precision operands in F32 inside decompositions, so that they round once, like the reference rules.
#pragma once

#include "rlx/ir/op_def.h"

namespace rlx {

/// x in the dtype its arithmetic accumulates in: BF16 and F16 as F32, other floats as they are.
inline Expr widen(Expr x) { return is_float(x.dtype()) ? x.graph().cast(x, accumulator_dtype(x.dtype())) : x; }
/// x rounded back to the dtype of a result.
inline Expr round_to(Expr x, DType dtype) { return x.graph().cast(x, dtype); }

/// A vector [N] as [1.., N, 1..] of rank `rank`, N at `axis`.
inline Expr along_axis(Expr vector, int rank, std::int64_t axis) {
  Dims dims(static_cast<std::size_t>(rank), Dim(1));
  dims[static_cast<std::size_t>(axis)] = vector.dim(0);
  return dims == vector.shape().dims() ? vector : vector.graph().reshape(vector, dims);
}

/// The sum of x over every axis but `axis`: [.., N, ..] -> [N].
inline Expr sum_to_axis(Expr x, std::int64_t axis) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) axes.push_back(i);
  return axes.empty() ? x : x.graph().sum(x, axes);
}

}  // namespace rlx
