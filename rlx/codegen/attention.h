// Attention by tiles of keys: scores never leave a group's memory.
#pragma once

#include "rlx/codegen/walk.h"

namespace rlx::codegen {

/// Rows of queries up to which the keys are cut into parts.
inline constexpr std::int64_t kFewRows = 8;
/// Null when `write_attention` can run the node, else why not.
const char* attention_refuses(const Graph& g, NodeId id);
/// Adds the kernels of an Attention: a group for some rows of queries of one key head, which walks the keys, its
/// running maximum and sum beside it. Where rows are few the keys are cut into parts, merged in order.
void write_attention(NodeKernels& node);

}  // namespace rlx::codegen
