// Attention in tiles of keys. Scores stay in workgroup memory.
#pragma once

#include "rlx/codegen/walk.h"

namespace rlx::codegen {

/// The keys are split into parts when a head has at most this many query rows.
inline constexpr std::int64_t kFewRows = 8;
/// Null when `write_attention` can run the node, else the reason.
const char* attention_refuses(const Graph& g, NodeId id);
/// Adds the kernels of an Attention. A workgroup takes some query rows of one key head and loops over the keys with a
/// running maximum and a running sum. With few query rows the keys are split into parts, which are merged in order.
void write_attention(NodeKernels& node);

}  // namespace rlx::codegen
