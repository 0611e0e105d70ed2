// Convolutions. Names and layouts are those of PyTorch, Keras and Mamba; the functions are composed of ops::Conv.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// The zero padding of x around its spatial axes.
struct ConvPadding {
  enum class Kind : std::uint8_t {
    Explicit,   // `low` zeros before and `high` zeros after each axis; a negative amount crops
    Valid,      // none
    Same,       // the result has ceil(X / stride) elements; an odd zero goes after x (XLA's SAME)
    SameLower,  // Same, but an odd zero goes before x
  };
  Kind kind = Kind::Valid;
  std::vector<std::int64_t> low{0}, high{0};  // one entry per spatial axis, or one for all

  static ConvPadding valid() { return {}; }
  static ConvPadding same() { return {Kind::Same}; }
  static ConvPadding same_lower() { return {Kind::SameLower}; }
  /// Explicit padding with the same amounts on both sides.
  static ConvPadding of(std::vector<std::int64_t> amounts) { return {Kind::Explicit, amounts, amounts}; }
  static ConvPadding of(std::vector<std::int64_t> low, std::vector<std::int64_t> high) {
    return {Kind::Explicit, std::move(low), std::move(high)};
  }
};

/// Options of convolutions. A list has one entry per spatial axis, or one entry for all.
struct ConvOptions {
  std::vector<std::int64_t> strides{1}, dilation{1};
  ConvPadding padding{};
  std::int64_t groups = 1;
  bool channels_last = false;  // x [N, X.., C], w [K.., C / groups, O] and the result [N, Y.., O]
};

/// 1-D convolution: x [N, C, X], w [O, C / groups, K] -> [N, O, Y]. Errors of the convolutions: ShapeMismatch for wrong
/// ranks or channel counts, InvalidArgument for options out of range, Unsupported for padding Same or SameLower with a
/// stride above 1 on an axis with a symbolic extent.
Expr conv1d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// 2-D convolution: x [N, C, H, W], w [O, C / groups, kH, kW] -> [N, O, H', W'].
Expr conv2d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// 3-D convolution: x [N, C, D, H, W], w [O, C / groups, kD, kH, kW] -> [N, O, D', H', W'].
Expr conv3d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());

/// Options of transposed convolutions, as PyTorch defines them. A list has one entry per spatial axis, or one entry for
/// all. The result has (X - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1 elements per axis.
struct ConvTransposeOptions {
  std::vector<std::int64_t> strides{1}, padding{0}, dilation{1}, output_padding{0};
  std::int64_t groups = 1;
};

/// 1-D transposed convolution: x [N, C, X], w [C, O / groups, K] -> [N, O, Y].
Expr conv_transpose1d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// 2-D transposed convolution: x [N, C, H, W], w [C, O / groups, kH, kW] -> [N, O, H', W'].
Expr conv_transpose2d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// 3-D transposed convolution: x [N, C, D, H, W], w [C, O / groups, kD, kH, kW] -> [N, O, D', H', W'].
Expr conv_transpose3d(Expr x, Expr w, const ConvTransposeOptions& options = {}, SourceLoc loc = SourceLoc::current());

/// Depthwise 1-D convolution, one filter per channel: x [B, S, C], w [K, C] -> [B, S', C]. `groups` of the options must
/// be 1.
Expr depthwise_conv1d(Expr x, Expr w, const ConvOptions& options = {}, SourceLoc loc = SourceLoc::current());
/// The windows of x [N, C, X..] as features: [N, C * prod(window), Y..]. A feature is a channel and a position in the
/// window, channel-major. JAX: lax.conv_general_dilated_patches; PyTorch: unfold, which flattens Y.. into one axis.
/// `lhs_dilation` - 1 zeros are inserted between the elements of x.
Expr im2col(Expr x, const std::vector<std::int64_t>& window, const ConvOptions& options = {},
            const std::vector<std::int64_t>& lhs_dilation = {1}, SourceLoc loc = SourceLoc::current());

}  // namespace rlx::nn
