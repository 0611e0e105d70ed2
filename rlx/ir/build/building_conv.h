// Conversion of users' convolution arguments to the attributes of ops::Conv.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::building {

/// `list` with one entry for each of `space` axes; a single entry applies to all of them. Errors at `loc`:
/// InvalidArgument naming `what` and `name` for another number of entries, and for an entry below `least` or above
/// 2^31.
std::vector<std::int64_t> for_each_axis(SourceLoc loc, std::string_view what, std::string_view name,
                                        const std::vector<std::int64_t>& list, int space, std::int64_t least);

/// Requires x [N, C, X..] and filters w [O, C / groups, K..]; ShapeMismatch at `loc` unless both have `space` + 2 axes.
void require_conv_ranks(SourceLoc loc, std::string_view what, const Expr& x, const Expr& w, int space);

/// Arguments of convolutions and transposed convolutions, one entry for each spatial axis.
struct ConvArguments {
  std::vector<std::int64_t> strides{}, low{}, high{}, dilation{}, output_padding{};
  std::int64_t groups = 1;
};
/// PyTorch's conv_transpose of x [N, C, X..] with w [C, O / groups, K..]: [N, O, (X - 1) * stride - low - high +
/// dilation * (K - 1) + output_padding + 1]. Its errors are those of conv.
Expr transposed_conv(Graph& g, std::string_view what, Expr x, Expr w, const ConvArguments& a, SourceLoc loc);

}  // namespace rlx::building
