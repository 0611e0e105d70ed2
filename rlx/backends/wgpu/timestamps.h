// Times of launches, by the device's clock.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rlx/backends/wgpu/download.h"

namespace rlx::wgpu {

/// Times of the passes of one encoder, for devices with timestamps (`Gpu::timestamps`).
class Timestamps {
 public:
  /// The most passes of one encoder.
  static constexpr std::uint32_t kMost = 2048;
  Timestamps(std::shared_ptr<Gpu> gpu, std::shared_ptr<Downloads> downloads);
  ~Timestamps();
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  /// Begins pass `i` with a timestamp at its begin and end.
  abi::ComputePassEncoder begin_pass(abi::CommandEncoder encoder, std::uint32_t i) const;
  /// Submits the encoder with its `passes` passes, waits, and returns the ns of each.
  std::vector<double> submit(abi::CommandEncoder encoder, std::uint32_t passes);

 private:
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Downloads> downloads_;
  Gpu::OwnBuffer resolved_;
  abi::QuerySet set_ = nullptr;
};

}  // namespace rlx::wgpu
