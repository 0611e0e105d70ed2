// What ops that hold a body of other ops (regions, products and convolutions with an epilogue) share.
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

// -- an op whose first result, of operands 0 and 1, runs through an elementwise epilogue with the rest of them --

/// The result of such an op, whose first result is `acc`, called `what` in errors ("the product").
Result<Shapes> infer_epilogue(const InferContext& c, const Subgraph& epilogue, const Shape& acc, std::string_view what);
/// Sets the result to the epilogue of `acc`, written out.
void decompose_epilogue(DecomposeContext& c, const Graph& epilogue, Expr acc);

}  // namespace rlx
