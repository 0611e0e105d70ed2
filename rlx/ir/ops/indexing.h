// Op structs that read or write at indices known at run time.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// out = table[..axis] ++ indices ++ table[axis+1..]: rows of `table` picked along `axis` by I32/I64 indices, each
/// clamped into [0, extent).
struct Gather { RLX_OP(Gather); std::int64_t axis = 0; };
/// operand with updates added at rows `indices` of `axis` (duplicates accumulate, out-of-range indices are dropped).
/// Inputs: operand, indices (I32/I64, any rank r), updates = operand[..axis] ++ indices.dims ++ operand[axis+1..].
struct ScatterAdd { RLX_OP(ScatterAdd); std::int64_t axis = 0; };
/// The window of `sizes` at `starts` (I32/I64 [rank]); starts are clamped so that the window fits. Inputs: x, starts.
struct DynamicSlice { RLX_OP(DynamicSlice); Dims sizes{}; };
/// x with the window at `starts` replaced by `update`; starts are clamped so that it fits. Inputs: x, update, starts.
struct DynamicUpdateSlice { RLX_OP(DynamicUpdateSlice); };
/// The k largest of the last axis, descending, ties to the smaller index, NaN first. Results: values, indices (I32).
struct TopK { RLX_OP(TopK); std::int64_t k = 1; };

}  // namespace ops
}  // namespace rlx
// clang-format on
