// Pools: windows over axes of space, as PyTorch and ONNX have them.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// Padding of pools: what is given, or as much as gives ceil(extent / stride) windows, the odd element behind or in
/// front.
enum class PoolPadding : std::uint8_t { Given, Same, SameLower };

/// Windows of a pool. Lists have an entry for each axis of space, which are the last ones (those before the channels
/// with channels_last); one entry alone is that of all of them, and then all axes but the first and the channels are
/// space.
struct PoolOptions {
  std::vector<std::int64_t> window{};
  std::vector<std::int64_t> strides{};       // none: the window
  std::vector<std::int64_t> low{0}, high{};  // padding; no high: low
  std::vector<std::int64_t> dilation{1};
  PoolPadding padding = PoolPadding::Given;
  bool ceil_mode = false;         // a last window that begins in x or its padding, and ends outside
  bool count_include_pad = true;  // of means: padding (not what ceil_mode adds) counts
  bool channels_last = false;
};

/// fn over windows of x [N, C, ..]; ReduceKind::Mean is avg_pool. What is added around x is the identity of fn.
/// InvalidArgument for windows, strides or dilations below 1, padding below 0 or lists of another length.
Expr pool(ReduceKind fn, Operand x, const PoolOptions& options);
/// The largest element of each window; NaN wins, and of equal ones the derivative goes to the first.
Expr max_pool(Operand x, const PoolOptions& options);
/// The smallest element of each window.
Expr min_pool(Operand x, const PoolOptions& options);
/// The mean of each window.
Expr avg_pool(Operand x, const PoolOptions& options);
/// The sum of each window.
Expr sum_pool(Operand x, const PoolOptions& options);
/// The product of each window.
Expr prod_pool(Operand x, const PoolOptions& options);
/// (sum of |x|^p)^(1/p) of each window; p > 0 and finite.
Expr lp_pool(Operand x, double p, const PoolOptions& options);

struct IndexedPool {
  Expr values, indices;
};
/// max_pool, and where each maximum lies in its plane of space, row-major; integers, -1 for a window of padding.
IndexedPool max_pool_with_indices(Operand x, const PoolOptions& options);
/// Zeros [.., space..] with x [.., h, w] at those indices of each plane; `space` has as many axes as the windows had.
/// Of two values for one place the last stays. channels_last is not taken.
Expr max_unpool(Operand x, Operand indices, const Dims& space);

/// Window i of an axis of n elements cut into m is [floor(i n / m), ceil((i + 1) n / m)), as PyTorch cuts it; `sizes`
/// as the lists of PoolOptions.
Expr adaptive_avg_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last = false);
/// The largest element of each such window.
Expr adaptive_max_pool(Operand x, const std::vector<std::int64_t>& sizes, bool channels_last = false);
/// fn over all of space: x [N, C, ..] -> [N, C, 1..].
Expr global_pool(ReduceKind fn, Operand x, bool channels_last = false);

}  // namespace rlx::nn
