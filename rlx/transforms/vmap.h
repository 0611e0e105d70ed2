// Batching: a graph that runs another graph on many inputs at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Leaf name -> position of its batch axis (negative: from the end of the batched shape).
using InAxes = std::map<std::string, std::int64_t>;
/// The position of the batch axis of each output; empty: axis 0 for all. A nullopt entry requests the unbatched output;
/// it is an error when the output depends on a batched leaf.
using OutAxes = std::vector<std::optional<std::int64_t>>;

/// Batches `forward`. Each Input or Param named in `in_axes` gains an axis of extent `batch`. All members share the
/// others. Outputs are those of `forward` with a batch axis (repeated when they depend on no batched leaf). NotFound
/// for an unknown leaf. Unsupported, naming the node, for an op that cannot be batched or a state update that depends
/// on the batch.
TransformResult vmap(const Graph& forward, const InAxes& in_axes, const Dim& batch, const OutAxes& out_axes = {});

}  // namespace rlx
