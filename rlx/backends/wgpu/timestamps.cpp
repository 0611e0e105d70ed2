// Timestamp queries: two per pass, read when all passes are done.
#include "rlx/backends/wgpu/timestamps.h"

#include <array>

namespace rlx::wgpu {

Timestamps::Timestamps(std::shared_ptr<Gpu> gpu, std::shared_ptr<Downloads> downloads)
    : gpu_(std::move(gpu)), downloads_(std::move(downloads)) {
  abi::QuerySetDescriptor d;
  d.count = 2 * kMost;
  resolved_ = gpu_->buffer(2 * kMost * sizeof(std::uint64_t), abi::usage::kQueryResolve | abi::usage::kCopySource,
                           "the timestamps of steps");
  set_ = gpu_->make("the timestamps of steps", gpu_->api.QuerySetRelease,
                    [&] { return gpu_->api.DeviceCreateQuerySet(gpu_->device(), &d); });
}

Timestamps::~Timestamps() {
  if (gpu_->forked()) return;
  const auto one = gpu_->serial();
  if (set_) gpu_->api.QuerySetRelease(set_);
}

abi::ComputePassEncoder Timestamps::begin_pass(abi::CommandEncoder encoder, std::uint32_t i) const {
  check(i < kMost, "a run has more passes than timestamps");
  const abi::PassTimestampWrites writes{nullptr, set_, 2 * i, 2 * i + 1};
  abi::ComputePassDescriptor d;
  d.timestamps = &writes;
  return gpu_->api.CommandEncoderBeginComputePass(encoder, &d);
}

std::vector<double> Timestamps::submit(abi::CommandEncoder encoder, std::uint32_t passes) {
  std::vector<std::uint64_t> ticks(2 * passes);
  std::unique_ptr<Download> bringing = downloads_->take();
  bringing->add(nullptr, resolved_.get(), 0, std::as_writable_bytes(std::span(ticks)), nullptr);
  try {
    gpu_->call("the timestamps of steps",
               [&] { gpu_->api.CommandEncoderResolveQuerySet(encoder, set_, 0, 2 * passes, resolved_.get(), 0); });
    bringing->encode(encoder);
  } catch (...) {
    gpu_->release(encoder);
    throw;
  }
  const std::uint64_t submission = gpu_->submit(encoder);
  downloads_->finish(submission, downloads_->begin(std::move(bringing), submission));
  const double period = static_cast<double>(gpu_->api.QueueGetTimestampPeriod(gpu_->queue()));
  std::vector<double> out(passes);
  for (std::size_t i = 0; i < passes; ++i)
    out[i] = ticks[2 * i + 1] > ticks[2 * i] ? static_cast<double>(ticks[2 * i + 1] - ticks[2 * i]) * period : 0;
  return out;
}

}  // namespace rlx::wgpu
