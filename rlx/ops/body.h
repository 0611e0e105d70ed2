// Shared rules of the ops that hold a body (regions, and matmuls and convolutions with an epilogue).
#pragma once

#include <span>
#include <string_view>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The shapes of the outputs of `body`, called `what` in errors ("the epilogue"). The stored shapes of the body must
/// equal those inferred from `operands`, because kernels and passes read the stored ones. An operand that would have to
/// be broadcast to its input's shape is an error: the input has the shape of the operand, and the ops of the body
/// broadcast.
Result<Shapes> infer_body(const InferContext& c, const Graph& body, std::span<const Shape> operands,
                          std::string_view what);

// -- an op with an elementwise epilogue over its first result, of operands 0 and 1, and the remaining operands --

/// The result shapes of such an op. Its first result has shape `acc` and is called `what` in errors ("the product").
Result<Shapes> infer_epilogue(const InferContext& c, const Subgraph& epilogue, const Shape& acc, std::string_view what);
/// Sets the result to the inlined epilogue of `acc`.
void decompose_epilogue(DecomposeContext& c, const Graph& epilogue, Expr acc);

}  // namespace rlx
