// What ops that hold a body of other ops (regions, products with an epilogue) share: its check.
#pragma once

#include <span>
#include <string_view>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The shapes of the outputs of `body`, called `what` in errors ("the epilogue"), when its stored shapes are those of
/// `operands` and what follows from them. Kernels and passes read the stored ones, so an operand that would have to be
/// broadcast to its input's shape is an error: the input takes the shape of the operand, and the ops of the body
/// broadcast.
Result<Shapes> infer_body(const InferContext& c, const Graph& body, std::span<const Shape> operands,
                          std::string_view what);

}  // namespace rlx
