// Op structs of convolution and windows.
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

/// How an element between others is made: the nearest one; the line or the cubic through two or four neighbours; the
/// mean over what it covers (Area, of adaptive windows); windowed sines over three or five.
enum class ResizeKind : std::uint8_t { Nearest, Linear, Cubic, Area, Lanczos3, Lanczos5 };
/// Where element i of n lies among m, with s the scale (n / m where none is given): (i + 0.5) / s - 0.5; the same with
/// 0 where n is 1; i (m - 1) / (n - 1); i / s.
enum class ResizePlaces : std::uint8_t { HalfPixel, PytorchHalfPixel, AlignCorners, Asymmetric };
/// Which neighbour is the nearest of a place between two.
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

/// Cross-correlation of x with filters w, XLA's conv_general_dilated (JAX: lax.conv_general_dilated; PyTorch and
/// ONNX: Conv, ConvTranspose by lhs_dilation). Inputs: x, w. With x [N, C, X..], w [O, C / groups, K..] and the
/// result [N, O, Y..]: y[n, o, p] = sum over c, t of x[n, c, p * stride + t * rhs_dilation - low] * w[o, c, t], where
/// x has lhs_dilation - 1 zeros between its elements and `low` and `high` zeros around them (negative: that many are
/// cut off), and Y = max(0, (low + (X - 1) * lhs_dilation + 1 + high - ((K - 1) * rhs_dilation + 1)) / stride + 1),
/// rounded down: a window larger than what it slides over gives an empty result, as in JAX. `groups` (which divide C
/// and O): group g of O / groups results reads group g of the C / groups features. `batch_groups` (which divide N and
/// O; N / batch_groups remain): group g of the results reads group g of the batch. Any number of axes of space; empty
/// lists stand for 1 and 0. The specs say where the axes lie: lhs_spec {batch, feature, space..} of x, rhs_spec {O,
/// C, space..} of w, out_spec {batch, feature, space..} of the result; empty ones for axes in that order. Floats
/// accumulate in at least F32, integers wrap; the result has the dtype of the operands, or `out` as in DotGeneral.
/// Whether a zero of the padding times a filter that is infinite or NaN is NaN, or is left out, is not defined.
struct Conv {
  RLX_OP(Conv);
  std::vector<std::int64_t> strides{}, low{}, high{}, lhs_dilation{}, rhs_dilation{};
  std::int64_t groups = 1, batch_groups = 1;
  std::vector<std::int64_t> lhs_spec{}, rhs_spec{}, out_spec{};
  std::optional<DType> out{};
};
/// epilogue(conv(x, w), operands...), with the attributes of Conv. Inputs: x, w, operands...; the epilogue's inputs are
/// the result of the convolution, then the operands in order; its one output is the result.
struct FusedConv : Conv {
  RLX_OP(FusedConv);
  Subgraph epilogue{};
};

/// fn of the elements of every window of x, with XLA's geometry. Along each axis x is spread first (base_dilation - 1
/// places between neighbours), `low` and `high` places are added (taken away where negative), and windows of `window`
/// elements, `window_dilation` places apart, begin `strides` places apart: there are (padded - (window - 1) *
/// window_dilation - 1) / strides + 1 of them, none where x is smaller than a window. A list that is left out is that
/// of ones, or of no padding. Added places hold no element: fn of none is its identity; Mean divides by the places of a
/// whole window. NaN wins of Max and Min, which have a second result: the place in x, row-major, of the first element
/// that is the extremum, -1 where the window holds none; I32, and I64 where x has more elements than that counts.
struct ReduceWindow {
  RLX_OP(ReduceWindow);
  ReduceKind fn = ReduceKind::Sum;
  std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{};
};
/// Zeros of the dims of x, to which each element of `source` is added where the first largest (smallest) element of its
/// window of x lies; windows as those of ReduceWindow, whose results `source` has the dims of. The derivative of a
/// maximum of windows. Inputs: x, source.
struct SelectAndScatter {
  RLX_OP(SelectAndScatter);
  ReduceKind select = ReduceKind::Max;
  std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{};
};

/// x resampled to `sizes` elements along each of the sorted `axes`, whose extents are known. `scales`: of those axes,
/// or none; 0 is size / extent. `antialias` widens the kernel where x shrinks. `renormalize`: neighbours outside of x
/// have no weight, and the others share it; else they are the border's. cubic_a: of the cubic, -0.5 or -0.75.
/// `transposed`: the transposed map instead, which takes cotangents of such a result to those of an operand with the
/// extents `sizes`. Nearest takes every dtype, the others floats and complex numbers.
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
