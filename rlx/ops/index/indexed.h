// What Gather and Scatter share: which axes their indices name, and where each picked block lies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rlx/ir/math/indexed_blocks.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

/// The dims of what is picked from x: its axes before the first indexed one, the dims of the indices, its other axes.
Dims picked_dims(const Shape& x, const Dims& indices, const std::vector<std::int64_t>& axes);

/// Checks axes against x and the index operands, which are all but the first and the last `behind`.
std::optional<Diagnostic> check_indexed(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        int behind);
/// Error where a clamped index has no element to go to.
std::optional<Diagnostic> check_clamped(const InferContext& c, const Shape& x, const std::vector<std::int64_t>& axes,
                                        const Shape& indices);

/// Where the block of index i begins, counted from its outer part; none when it is out of range and not clamped.
std::optional<std::int64_t> block_at(const IndexedBlocks& blocks, std::span<const Tensor> indices, std::int64_t i,
                                     bool clamp);

/// The permutation that brings `axis` to `to`, the others in order.
std::vector<std::int64_t> move_axis(int rank, std::int64_t axis, std::int64_t to);
/// The index operands [first, last) with a batch axis, and in front of them the positions along it: the batch as one
/// more indexed axis.
std::vector<Value> batched_indices(BatchContext& c, int first, int last);

}  // namespace rlx
