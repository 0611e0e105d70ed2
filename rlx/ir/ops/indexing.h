// Op structs that read or write at indices known at run time.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// Elements of `table` at I32 or I64 indices along the ascending `axes`, as advanced indexing in NumPy. There is one
/// index tensor per axis, and all have equal dims. The result has the other axes of the table, with the dims of the
/// indices in place of axes[0]. mode is Clamp, or Fill: an element with an index out of range is then `fill`, a value
/// of the table's dtype. Inputs: table, indices...
struct Gather {
  RLX_OP(Gather);
  std::vector<std::int64_t> axes{0};
  IndexMode mode = IndexMode::Clamp;
  double fill = 0;
};
/// A copy of operand in which `fn` combines updates with the elements at `indices` along `axes`. The dims of updates
/// are those of the result of a Gather with the same indices. Several updates of one element are applied in their
/// order. Sums and products of floats narrower than F32 are rounded once. mode is Drop (updates with an index out of
/// range are ignored) or Clamp. Inputs: operand, indices..., updates.
struct Scatter {
  RLX_OP(Scatter);
  ScatterKind fn = ScatterKind::Add;
  std::vector<std::int64_t> axes{0};
  IndexMode mode = IndexMode::Drop;
};
/// The window of dims `sizes` that begins at `starts` (I32 or I64 [rank]). starts are clamped so that the window fits.
/// Inputs: x, starts.
struct DynamicSlice { RLX_OP(DynamicSlice); Dims sizes{}; };
/// A copy of x in which `update` replaces the window that begins at `starts` (I32 or I64 [rank]). starts are clamped so
/// that the window fits. Inputs: x, update, starts.
struct DynamicUpdateSlice { RLX_OP(DynamicUpdateSlice); };
/// The k largest of the last axis, descending, ties to the smaller index, NaN first. Results: values, indices (I32).
struct TopK { RLX_OP(TopK); std::int64_t k = 1; };
/// The keys sorted along `axis`, ascending unless `descending`, and the other operands in the order of the keys. The
/// sort is stable, -0 equals 0, and NaN is above every number. Inputs and results: keys, values... of equal dims.
struct Sort { RLX_OP(Sort); std::int64_t axis = 0; bool descending = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
