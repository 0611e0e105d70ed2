// Batching of ops whose operands have a batch axis of their own: the new axis is folded into it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "rlx/ir/op_def.h"

namespace rlx {

/// Batches the op by folding the new axis into axis `second` of each operand named (those that are there) and of each
/// result, in order. Where another operand is batched, the decomposition is batched instead.
void fold_batch(BatchContext& c, std::initializer_list<std::pair<std::string_view, int>> operands,
                std::initializer_list<int> results);

}  // namespace rlx
