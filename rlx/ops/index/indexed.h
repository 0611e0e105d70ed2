// Shared rules of Gather and Scatter: the indexed axes, and the position of each selected block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/ir/math/indexed_blocks.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

/// The dims of the selected elements of x: its axes before the first indexed axis, the dims of the indices, its other
/// axes.
Dims picked_dims(const Shape& x, const Dims& indices, const std::vector<std::int64_t>& axes);

/// Checks the axes against x and the index operands, which are all but the first and the last `behind`.
std::optional<Diagnostic> check_indexed(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        int behind);
/// Error when a clamped index has no element to read.
std::optional<Diagnostic> check_clamped(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        const Shape& indices);

/// The element offset of the block that index i names, within one step of the axes before the indexed ones. None when
/// the index is out of range and not clamped.
std::optional<std::int64_t> block_at(const IndexedBlocks& blocks, std::span<const Tensor> indices, std::int64_t i,
                                     bool clamp);

/// The permutation that moves `axis` to `to` and keeps the order of the others.
std::vector<std::int64_t> move_axis(int rank, std::int64_t axis, std::int64_t to);
/// The index operands [first, last) with a batch axis, after the positions along it: the batch becomes one more indexed
/// axis.
std::vector<Value> batched_indices(BatchContext& c, int first, int last);

}  // namespace rlx
