// Op structs that read or write at indices known at run time.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// Elements of `table` picked along `axes` (ascending) by I32/I64 index tensors of equal dims, one for each of them:
/// out = table's other axes, with the dims of the indices where axes[0] was. mode: Clamp, or Fill with `fill`, a value
/// of the table's dtype, for what has an index out of range. Inputs: table, indices...
struct Gather {
  RLX_OP(Gather);
  std::vector<std::int64_t> axes{0};
  IndexMode mode = IndexMode::Clamp;
  double fill = 0;
};
/// operand with updates put by `fn` where indices name its elements along `axes`, as Gather reads them: updates have
/// the dims that a Gather of the operand would. Updates to one element act in their order; sums and products of floats
/// round once where they have less than F32. mode: Drop, or Clamp. Inputs: operand, indices..., updates.
struct Scatter {
  RLX_OP(Scatter);
  ScatterKind fn = ScatterKind::Add;
  std::vector<std::int64_t> axes{0};
  IndexMode mode = IndexMode::Drop;
};
/// The window of `sizes` at `starts` (I32/I64 [rank]); starts are clamped so that the window fits. Inputs: x, starts.
struct DynamicSlice { RLX_OP(DynamicSlice); Dims sizes{}; };
/// x with the window at `starts` replaced by `update`; starts are clamped so that it fits. Inputs: x, update, starts.
struct DynamicUpdateSlice { RLX_OP(DynamicUpdateSlice); };
/// The k largest of the last axis, descending, ties to the smaller index, NaN first. Results: values, indices (I32).
struct TopK { RLX_OP(TopK); std::int64_t k = 1; };
/// Keys in ascending (or descending) order along `axis`, and every other operand in the same order. Stable: equal keys
/// stay in theirs, -0 and 0 are equal. NaN is above every number. Inputs and results: keys, values... of equal dims.
struct Sort { RLX_OP(Sort); std::int64_t axis = 0; bool descending = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
