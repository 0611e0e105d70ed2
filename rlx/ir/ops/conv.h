// Op structs of convolution, windowed reductions and resampling.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

/// The interpolation kernel. Nearest: the nearest element. Linear, Cubic: interpolation between 2 or 4 neighbours.
/// Area: the mean of the elements that an output element covers, as adaptive average pooling. Lanczos3, Lanczos5: the
/// Lanczos kernel of radius 3 or 5.
enum class ResizeKind : std::uint8_t { Nearest, Linear, Cubic, Area, Lanczos3, Lanczos5 };
/// The position in the operand (extent m) of element i of the result (extent n), as ONNX's
/// coordinate_transformation_mode; s is the scale, n / m if none is given. HalfPixel: (i + 0.5) / s - 0.5.
/// PytorchHalfPixel: the same, but 0 if n is 1. AlignCorners: i (m - 1) / (n - 1). Asymmetric: i / s.
enum class ResizePlaces : std::uint8_t { HalfPixel, PytorchHalfPixel, AlignCorners, Asymmetric };
/// How Nearest rounds a position between two elements, as ONNX's nearest_mode. HalfDown and HalfUp round to the nearest
/// element, and differ at ties.
enum class ResizeRounding : std::uint8_t { Floor, Ceil, HalfDown, HalfUp };
template <> struct EnumNames<ResizeKind> {
  static constexpr std::string_view values[] = {"nearest", "linear", "cubic", "area", "lanczos3", "lanczos5"};
};
template <> struct EnumNames<ResizePlaces> {
  static constexpr std::string_view values[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"};
};
template <> struct EnumNames<ResizeRounding> {
  static constexpr std::string_view values[] = {"floor", "ceil", "half_down", "half_up"};
};

namespace ops {

/// Cross-correlation of x with filters w: XLA's conv_general_dilated, JAX's lax.conv_general_dilated, Conv of PyTorch
/// and ONNX, and ConvTranspose by lhs_dilation. Inputs: x, w. With x [N, C, X..], w [O, C / groups, K..] and the result
/// [N, O, Y..]: y[n, o, p] = sum over c, t of x[n, c, p * stride + t * rhs_dilation - low] * w[o, c, t]. Here x has
/// lhs_dilation - 1 zeros between its elements, and `low` zeros before and `high` zeros after each spatial axis; a
/// negative amount crops. Y = max(0, floor((low + (X - 1) * lhs_dilation + 1 + high - ((K - 1) * rhs_dilation + 1)) /
/// stride) + 1): a filter larger than the padded x gives an empty result, as in JAX. `groups` divides C and O: group g
/// of O / groups output channels reads group g of C / groups input channels. `batch_groups` divides N and O: group g of
/// output channels reads group g of the batch, and the result has batch N / batch_groups. There may be any number of
/// spatial axes. An empty list means all 1 (strides, dilations) or all 0 (padding). The specs give the axis numbers:
/// lhs_spec {batch, feature, space..} of x, rhs_spec {O, C, space..} of w, out_spec {batch, feature, space..} of the
/// result; an empty spec is that order. Floats accumulate in at least F32, integers wrap. The result has the dtype of
/// the operands, or `out` as in DotGeneral. A padding zero times an infinite or NaN filter element gives NaN or is
/// skipped; which one is unspecified.
struct Conv {
  RLX_OP(Conv);
  std::vector<std::int64_t> strides{}, low{}, high{}, lhs_dilation{}, rhs_dilation{};
  std::int64_t groups = 1, batch_groups = 1;
  std::vector<std::int64_t> lhs_spec{}, rhs_spec{}, out_spec{};
  std::optional<DType> out{};
};
/// epilogue(conv(x, w), operands...), with the attributes of Conv. Inputs: x, w, operands... The inputs of the epilogue
/// are the result of the convolution, then the operands in order. Its one output is the result.
struct FusedConv : Conv {
  RLX_OP(FusedConv);
  Subgraph epilogue{};
};

/// The elements of each window of x reduced by fn, with the geometry of XLA's reduce_window. On each axis base_dilation
/// - 1 places are inserted between elements, then `low` and `high` places are added before and after (a negative amount
/// crops). Windows of `window` elements that are `window_dilation` apart start every `strides` places. The result has
/// floor((padded - (window - 1) * window_dilation - 1) / strides) + 1 windows per axis, none if x is smaller than a
/// window. An empty list means all 1, or no padding. Inserted and added places hold no element: a window without
/// elements gives the identity of fn, and Mean divides by the full window size. For Max and Min a NaN wins, and there
/// is a second result: the row-major position in x of the first extremum, -1 for a window without elements. It is I32,
/// or I64 if x has more than 2^31 - 1 elements.
struct ReduceWindow {
  RLX_OP(ReduceWindow);
  ReduceKind fn = ReduceKind::Sum;
  std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{};
};
/// The derivative of a max or min pool, XLA's select_and_scatter. The result has the dims of x and is zero, except that
/// each element of `source` is added where the first extremum of its window of x lies. Windows are those of
/// ReduceWindow; `source` has the dims of its result. Inputs: x, source.
struct SelectAndScatter {
  RLX_OP(SelectAndScatter);
  ReduceKind select = ReduceKind::Max;
  std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{};
};

/// x resampled to `sizes` elements along the sorted `axes`, whose extents must be static. `scales` has one number per
/// axis, or is empty; 0 means size / extent. `antialias` widens the kernel where x shrinks. `renormalize`: neighbours
/// outside x have weight 0, and the other weights are scaled to sum to 1; without it the border element is repeated.
/// cubic_a is the coefficient of the cubic kernel, -0.5 or -0.75. `transposed` applies the transposed map, which takes
/// a cotangent of the result to a cotangent of an operand with extents `sizes`. Nearest takes every dtype, the other
/// kinds take floats and complex numbers.
struct Interpolate {
  RLX_OP(Interpolate);
  std::vector<std::int64_t> axes{}, sizes{};
  std::vector<double> scales{};
  ResizeKind fn = ResizeKind::Linear;
  ResizePlaces places = ResizePlaces::HalfPixel;
  ResizeRounding rounding = ResizeRounding::HalfDown;
  bool antialias = false, renormalize = false, transposed = false;
  double cubic_a = -0.75;
};

}  // namespace ops
}  // namespace rlx
// clang-format on
