// What the records of Conv and of FusedConv share.
#pragma once

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/conv.h"

namespace rlx {

/// Checks the attributes against operands 0 and 1 and returns the result.
Result<Shape> infer_conv(const InferContext& c, const ops::Conv& op);

/// Products that an element of the result adds up, with filters w of known extents.
double conv_depth(const Shape& w, const ops::Conv& op);

}  // namespace rlx
