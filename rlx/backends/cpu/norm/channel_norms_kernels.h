// Channel norms of f32: x [N, C, S], or [N, C] with channels last.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Means and variances are computed by blocks that fit the L1 cache, each about its own mean, and then combined.
struct ChannelNormF32 {
  std::int64_t n = 1, channels = 1, places = 1;  // for group norms: n * groups rows of `channels` channels
  float eps = 0;
  const float* x = nullptr;
  float* y = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // [C], or null
  float *mean = nullptr, *var = nullptr;          // [C]; written by `statistics`, read by `apply`
};

struct ChannelNormKernels {
  /// Rows [begin, end) of n * groups; each row has channels / groups adjacent channels. gamma and beta are per channel.
  void (*groups)(const ChannelNormF32& c, std::int64_t groups, std::int64_t begin, std::int64_t end);
  /// Mean and biased variance of channels [begin, end) over all other axes.
  void (*statistics)(const ChannelNormF32& c, std::int64_t begin, std::int64_t end);
  /// Computes y for rows [begin, end): of n * channels, or of n where `places` is 1.
  void (*apply)(const ChannelNormF32& c, std::int64_t begin, std::int64_t end);
};
const ChannelNormKernels& channel_norm_kernels(Isa isa);

}  // namespace rlx::cpu
