// Kernels of norms of channels of f32: x [N, C, S], or [N, C] with the channels last.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Means and variances are made of blocks that lie in the first cache, each about its own mean, and joined.
struct ChannelNormF32 {
  std::int64_t n = 1, channels = 1, places = 1;  // of a group norm n * groups rows of `channels` each
  float eps = 0;
  const float* x = nullptr;
  float* y = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // [C], or null
  float *mean = nullptr, *var = nullptr;          // [C]; made by `statistics`, read by `apply`
};

struct ChannelNormKernels {
  /// Rows [begin, end) of n * groups, each of `each` channels that lie together, with gamma and beta by channel.
  void (*groups)(const ChannelNormF32& c, std::int64_t groups, std::int64_t begin, std::int64_t end);
  /// Mean and biased variance of channels [begin, end) over all else.
  void (*statistics)(const ChannelNormF32& c, std::int64_t begin, std::int64_t end);
  /// y of rows [begin, end): of n * channels, or of n where there is one place.
  void (*apply)(const ChannelNormF32& c, std::int64_t begin, std::int64_t end);
};
const ChannelNormKernels& channel_norm_kernels(Isa isa);

}  // namespace rlx::cpu
