// Shared rules of Conv and FusedConv.
#pragma once

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/conv.h"

namespace rlx {

/// Checks the attributes against operands 0 and 1 and returns the shape of the result.
Result<Shape> infer_conv(const InferContext& c, const ops::Conv& op);

/// The number of multiply-adds for an element of the result, with filters w of known extents.
double conv_depth(const Shape& w, const ops::Conv& op);

}  // namespace rlx
