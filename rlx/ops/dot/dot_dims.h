// Dimension numbers of dot_general, for DotGeneral and FusedDot: checks, the dims of the result, and the free axes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The four axis lists of a dot_general, as references into an op.
struct DotAxes {
  const std::vector<std::int64_t>& lhs_contract;
  const std::vector<std::int64_t>& rhs_contract;
  const std::vector<std::int64_t>& lhs_batch;
  const std::vector<std::int64_t>& rhs_batch;
  const std::optional<DType>& out;
};

template <class Op>
DotAxes dot_axes(const Op& op) {
  return {op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch, op.out};
}

/// The axes of [0, rank) in neither list, ascending.
std::vector<std::int64_t> free_axes(int rank, const std::vector<std::int64_t>& contract,
                                    const std::vector<std::int64_t>& batch);

/// The error for dtypes that no matmul has. None when the result can be `out` or, without it, the dtype of both
/// operands.
std::optional<Diagnostic> check_product_dtypes(const InferContext& c, const std::optional<DType>& out);

/// Checks the axis lists against operands 0 and 1 and returns the shape of the result: batch ++ lhs free ++ rhs free,
/// in the operands' dtype or in `out`.
Result<Shape> infer_dot(const InferContext& c, const DotAxes& axes);

/// Two floating-point operations per multiply-add.
double dot_flops(const Shape& lhs, const Shape& result, const DotAxes& axes);

}  // namespace rlx
