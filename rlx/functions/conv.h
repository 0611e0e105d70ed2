// Convolutions under the names and with the layouts that PyTorch, Keras and Mamba users know, made of ops::Conv.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// What lies around x before a window moves over it.
struct ConvPadding {
  enum class Kind : std::uint8_t {
    Explicit,   // `low` zeros before and `high` zeros behind each axis; negative amounts cut off
    Valid,      // none
    Same,       // as many as make the result ceil(X / stride) long, the odd one behind (XLA's SAME)
    SameLower,  // the same, the odd one before
  };
  Kind kind = Kind::Valid;
  std::vector<std::int64_t> low{0}, high{0};  // one entry for each axis of space, or one for all

  static ConvPadding valid() { return {}; }
  static ConvPadding same() { return {Kind::Same}; }
  static ConvPadding same_lower() { return {Kind::SameLower}; }
  /// As many on both sides.
  static ConvPadding of(std::vector<std::int64_t> amounts) { return {Kind::Explicit, amounts, amounts}; }
  static ConvPadding of(std::vector<std::int64_t> low, std::vector<std::int64_t> high) {
    return {Kind::Explicit, std::move(low), std::move(high)};
  }
};

/// One entry for each axis of space, or one for all.
struct ConvOptions {
  std::vector<std::int64_t> strides{1}, dilation{1};
  ConvPadding padding{};
  std::int64_t groups = 1;
  bool channels_last = false;  // x [N, X.., C], w [K.., C / groups, O] and the result [N, Y.., O]
};

/// x [N, C, X] with w [O, C / groups, K] -> [N, O, Y]. Errors of all of these: ShapeMismatch for other ranks and for
/// channels that do not fit, InvalidArgument for options out of range, Unsupported for "same" with a stride along an
/// axis whose extent is a symbol.
Expr conv1d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// x [N, C, H, W] with w [O, C / groups, kH, kW] -> [N, O, H', W'].
Expr conv2d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// x [N, C, D, H, W] with w [O, C / groups, kD, kH, kW] -> [N, O, D', H', W'].
Expr conv3d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());

/// One entry for each axis of space, or one for all, as PyTorch means them: the result has (X - 1) * stride - 2 *
/// padding + dilation * (K - 1) + output_padding + 1 places.
struct ConvTransposeOptions {
  std::vector<std::int64_t> strides{1}, padding{0}, dilation{1}, output_padding{0};
  std::int64_t groups = 1;
};

/// The transpose of conv1d: x [N, C, X] with w [C, O / groups, K] -> [N, O, Y].
Expr conv_transpose1d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// The transpose of conv2d: x [N, C, H, W] with w [C, O / groups, kH, kW].
Expr conv_transpose2d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// The transpose of conv3d: x [N, C, D, H, W] with w [C, O / groups, kD, kH, kW].
Expr conv_transpose3d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());

/// Each channel by filters of its own: x [B, S, C] with w [K, C] -> [B, S', C]; `groups` of the options stays 1.
Expr depthwise_conv1d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// What each window of x [N, C, X..] holds: [N, C * prod(window), Y..], where the features are counted by channel, then
/// by place in the window (JAX: lax.conv_general_dilated_patches; PyTorch: unfold, whose columns are Y.. in one axis).
/// `lhs_dilation` - 1 zeros lie between the elements of x.
Expr im2col(Expr x, const std::vector<std::int64_t>& window, const ConvOptions& options = {},
            const std::vector<std::int64_t>& lhs_dilation = {1}, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::nn
