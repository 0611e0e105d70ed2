// Batching of ops whose operands have their own batch axis: the new axis is folded into it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "rlx/ir/op_def.h"

namespace rlx {

/// Batches the op by folding the new axis into axis `second` of each named operand that is present and of each result,
/// in order. When another operand is batched, it batches the decomposition instead.
void fold_batch(BatchContext& c, std::initializer_list<std::pair<std::string_view, int>> operands,
                std::initializer_list<int> results);

}  // namespace rlx
