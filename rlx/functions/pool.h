// Pools. Windows slide over the spatial axes, as in PyTorch and ONNX.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// The padding of a pool. Given: `low` and `high` of the options. Same, SameLower: the result has ceil(extent / stride)
/// windows; an odd element goes after x (Same) or before it (SameLower).
enum class PoolPadding : std::uint8_t { Given, Same, SameLower };

/// Options of pools. A list has one entry per spatial axis. Spatial axes are the last axes, or the last before the
/// channels with channels_last. If every list has one entry, it is for all spatial axes: all axes but the batch and the
/// channels.
struct PoolOptions {
  std::vector<std::int64_t> window{};
  std::vector<std::int64_t> strides{};       // empty: the window
  std::vector<std::int64_t> low{0}, high{};  // padding; an empty high: low
  std::vector<std::int64_t> dilation{1};
  PoolPadding padding = PoolPadding::Given;
  bool ceil_mode = false;         // keeps a last window that starts inside x or its padding and ends outside
  bool count_include_pad = true;  // avg_pool: padding counts as elements, but not what ceil_mode adds
  bool channels_last = false;
};

/// The windows of x [N, C, ..] reduced by fn; ReduceKind::Mean is avg_pool. Padding is the identity of fn.
/// InvalidArgument for windows, strides or dilations below 1, padding below 0, or lists of another length.
Expr pool(ReduceKind fn, Operand x, const PoolOptions& options);
/// The largest element of each window. NaN wins. The derivative goes to the first of equal elements.
Expr max_pool(Operand x, const PoolOptions& options);
/// The smallest element of each window. NaN wins. The derivative goes to the first of equal elements.
Expr min_pool(Operand x, const PoolOptions& options);
/// The mean of each window.
Expr avg_pool(Operand x, const PoolOptions& options);
/// The sum of each window.
Expr sum_pool(Operand x, const PoolOptions& options);
/// The product of each window.
Expr prod_pool(Operand x, const PoolOptions& options);
/// The p-norm (sum of |x|^p)^(1/p) of each window; p is finite and above 0.
Expr lp_pool(Operand x, double p, const PoolOptions& options);

/// Results of max_pool_with_indices.
struct IndexedPool {
  Expr values, indices;
};
/// max_pool, and the row-major position of each maximum in its spatial plane. Indices are integers; a window of padding
/// alone has -1.
IndexedPool max_pool_with_indices(Operand x, const PoolOptions& options);
/// The inverse of max_pool_with_indices, torch.nn.functional.max_unpool: zeros [.., space..] with x [.., h, w] at
/// `indices` of each plane. `space` has one extent per spatial axis. The last of several values at one position is
/// kept. Channels come first.
Expr max_unpool(Operand x, Operand indices, const Dims& space);

/// The means of sizes[i] windows per spatial axis, as torch.nn.functional.adaptive_avg_pool. Window i of m windows over
/// n elements is [floor(i n / m), ceil((i + 1) n / m)). `sizes` is a list as in PoolOptions.
Expr adaptive_avg_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last = false);
/// The largest elements of the windows of adaptive_avg_pool.
Expr adaptive_max_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last = false);
/// All spatial axes reduced by fn: x [N, C, ..] -> [N, C, 1..].
Expr global_pool(ReduceKind fn, Operand x, bool channels_last = false);

}  // namespace rlx::nn
