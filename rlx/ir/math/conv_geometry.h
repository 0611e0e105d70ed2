// The complete geometry of a convolution: the role of each axis, and the movement of the window along each spatial
// axis.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/attr.h"
#include "rlx/ir/ops/conv.h"

namespace rlx {

/// A spatial axis of a convolution: its index in x, w and the result, and the movement of the window.
struct ConvAxis {
  std::int64_t x = 0, w = 0, y = 0;
  std::int64_t stride = 1, low = 0, high = 0, lhs_dilation = 1, rhs_dilation = 1;
  /// Elements that a window of `extent` filter taps spans.
  std::int64_t span(std::int64_t extent) const { return (extent - 1) * rhs_dilation + 1; }
  /// Elements of x from the first to the last, including the zeros between them; 0 for an empty axis.
  std::int64_t spread(std::int64_t extent) const { return extent == 0 ? 0 : (extent - 1) * lhs_dilation + 1; }
  /// The element of x that filter tap `tap` reads for position `p` of the result; -1 for padding or a zero between
  /// elements.
  std::int64_t source(std::int64_t p, std::int64_t tap, std::int64_t extent) const {
    const std::int64_t at = p * stride + tap * rhs_dilation - low;
    return at < 0 || at % lhs_dilation != 0 || at / lhs_dilation >= extent ? -1 : at / lhs_dilation;
  }
};

struct ConvGeometry {
  std::vector<ConvAxis> space;
  std::int64_t x_batch = 0, x_feature = 1, w_out = 0, w_in = 1, y_batch = 0, y_feature = 1;
  std::int64_t groups = 1, batch_groups = 1;
};

/// The geometry of an op whose operands have `rank` axes. Inference must have accepted the op.
ConvGeometry conv_geometry(const ops::Conv& op, int rank);

/// The convolution of a Conv or a FusedConv; null for other ops.
const ops::Conv* conv_of(const OpBox& op);

}  // namespace rlx
