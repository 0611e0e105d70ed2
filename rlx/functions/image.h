// Images and other grids: resized, padded by what is in them, shifted, repeated, cut to a triangle.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::nn {

/// How resize makes elements; see ops::Interpolate. The default is that of jax.image.resize without antialias.
struct ResizeOptions {
  ResizeKind kind = ResizeKind::Linear;
  ResizePlaces places = ResizePlaces::HalfPixel;
  ResizeRounding rounding = ResizeRounding::HalfUp;
  bool antialias = false, renormalize = true;
  double cubic_a = -0.5;
  std::vector<double> scales{};  // of the axes; 0 or none: size / extent
};
/// x with `sizes` elements along `axes` (negative ones from the end), whose extents must be known. Integers are
/// resized by Nearest alone.
Expr resize(Operand x, std::vector<std::int64_t> axes, std::vector<std::int64_t> sizes,
            const ResizeOptions& options = {});
/// torch.nn.functional.interpolate: x [N, C, ..] with `sizes` elements along the axes of space. Nearest is Asymmetric
/// and rounds down; the cubic has -0.75, with antialias -0.5. `scales`: those that places are computed with, or none.
Expr interpolate(Operand x, const std::vector<std::int64_t>& sizes, ResizeKind kind = ResizeKind::Nearest,
                 bool align_corners = false, bool antialias = false, const std::vector<double>& scales = {});
/// x [N, C, H, W] -> [N, C, 2 H, 2 W], each element twice along both axes.
Expr resize_nearest2x(Operand x);

/// What stands around x: its border; x mirrored about its border elements, or about its border; x again.
enum class PadMode : std::uint8_t { Edge, Reflect, Symmetric, Wrap };
/// x with low[i] and high[i] elements before and behind axis i, as numpy.pad makes them: mirrored and repeated as often
/// as it takes. InvalidArgument for negative amounts and for lists that are not as long as x has axes.
Expr pad(Operand x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high, PadMode mode);
/// x[i - shift] along each of the axes, round the end; numpy.roll.
Expr roll(Operand x, const std::vector<std::int64_t>& shifts, const std::vector<std::int64_t>& axes);
/// x repeats[i] times beside itself along the last axes, as many as there are repeats; numpy.tile.
Expr tile(Operand x, const std::vector<std::int64_t>& repeats);
/// x [.., M, N] with zeros above (below) diagonal k, which is k columns right of the main one.
Expr tril(Operand x, std::int64_t k = 0);
Expr triu(Operand x, std::int64_t k = 0);

}  // namespace rlx::nn
