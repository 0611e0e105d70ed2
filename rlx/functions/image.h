// Images and other grids. These functions resize, pad, roll and tile, or keep a triangle.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::nn {

/// Options of resize; see ops::Interpolate. The defaults are those of jax.image.resize with antialias = false.
struct ResizeOptions {
  ResizeKind kind = ResizeKind::Linear;
  ResizePlaces places = ResizePlaces::HalfPixel;
  ResizeRounding rounding = ResizeRounding::HalfUp;
  bool antialias = false, renormalize = true;
  double cubic_a = -0.5;
  std::vector<double> scales{};  // one per axis; 0 or an empty list: size / extent
};
/// x resampled to `sizes` elements along `axes`, which may be negative and must have static extents. Integers need
/// ResizeKind::Nearest. InvalidArgument if the lists differ in length.
Expr resize(Operand x, std::vector<std::int64_t> axes, std::vector<std::int64_t> sizes,
            const ResizeOptions& options = {});
/// torch.nn.functional.interpolate: x [N, C, ..] resampled to `sizes` elements along its spatial axes. Nearest uses
/// Asymmetric positions and rounds down. The cubic coefficient is -0.75, with antialias -0.5. `scales` are the scales
/// for computing positions; an empty list means size / extent.
Expr interpolate(Operand x, const std::vector<std::int64_t>& sizes, ResizeKind kind = ResizeKind::Nearest,
                 bool align_corners = false, bool antialias = false, const std::vector<double>& scales = {});
/// x [N, C, H, W] -> [N, C, 2 H, 2 W], with each element repeated twice along both axes.
Expr resize_nearest2x(Operand x);

/// The elements that pad inserts, as numpy.pad's `mode`. Edge repeats the border element. Reflect mirrors without the
/// border element, Symmetric with it. Wrap continues with the other end of x.
enum class PadMode : std::uint8_t { Edge, Reflect, Symmetric, Wrap };
/// x padded with low[i] elements before and high[i] after axis i, as numpy.pad; Reflect, Symmetric and Wrap repeat as
/// often as needed. InvalidArgument for negative amounts, for lists whose length is not the rank of x, and for an empty
/// axis.
Expr pad(Operand x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high, PadMode mode);
/// x rotated by shifts[i] elements along axes[i]; numpy.roll.
Expr roll(Operand x, const std::vector<std::int64_t>& shifts, const std::vector<std::int64_t>& axes);
/// x repeated repeats[i] times along the i-th of its last repeats.size() axes; numpy.tile.
Expr tile(Operand x, const std::vector<std::int64_t>& repeats);
/// The lower (tril) or upper (triu) triangle of matrices x [.., M, N], with zeros elsewhere. Diagonal k is included; k
/// > 0 lies right of the main diagonal. ShapeMismatch for a rank below 2.
Expr tril(Operand x, std::int64_t k = 0);
Expr triu(Operand x, std::int64_t k = 0);

}  // namespace rlx::nn
