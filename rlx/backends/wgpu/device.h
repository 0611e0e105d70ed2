// The open device: its memory, its streams, and points of streams.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rlx/backends/wgpu/download.h"
#include "rlx/backends/wgpu/gpu.h"
#include "rlx/backends/wgpu/pipelines.h"
#include "rlx/backends/wgpu/point.h"
#include "rlx/device/open_device.h"
#include "rlx/exec/block_pool.h"

namespace rlx::wgpu {

/// Device memory that kernels access.
class WgpuBuffer final : public rlx::Buffer {
 public:
  WgpuBuffer(std::shared_ptr<OpenDevice> device, std::shared_ptr<Gpu> gpu, std::size_t bytes, abi::Buffer handle,
             std::shared_ptr<std::atomic<std::size_t>> counter, std::uint64_t serial);
  ~WgpuBuffer() override;
  void read(std::span<std::byte> to) const override;
  const OpenDevice* opened() const override { return device_.get(); }
  abi::Buffer handle() const { return handle_; }
  /// Unique for each buffer, unlike handles, which may be reused.
  std::uint64_t serial() const { return serial_; }

 private:
  std::shared_ptr<OpenDevice> device_;
  std::shared_ptr<Gpu> gpu_;
  abi::Buffer handle_;
  std::shared_ptr<std::atomic<std::size_t>> counter_;
  std::uint64_t serial_;
};

class WgpuDevice final : public OpenDevice {
 public:
  /// `memory_bytes` limits the total size of buffers; with 0 the driver is the only limit.
  WgpuDevice(DeviceId id, std::shared_ptr<Gpu> gpu, std::size_t memory_bytes);
  DeviceId id() const override { return id_; }
  MemoryModel memory_model() const override { return MemoryModel::Arena; }
  DeviceMemory memory() const override;
  bool lost() const override { return gpu_->lost(); }
  std::shared_ptr<Stream> stream(std::uintptr_t native) override;
  std::shared_ptr<rlx::Buffer> allocate(std::size_t bytes, BufferUse use) override;
  void drain() override { gpu_->drain(); }

  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  Pipelines& pipelines() { return pipelines_; }
  const std::shared_ptr<Downloads>& downloads() { return downloads_; }
  /// The event of a point. Its memory is reused from an earlier point, so runs that record events allocate nothing.
  Event point(std::uint64_t submission, std::uint64_t download) {
    return Event(make_pooled<Point>(points_, downloads_, submission, download));
  }
  std::shared_ptr<WgpuDevice> self() { return std::static_pointer_cast<WgpuDevice>(shared_from_this()); }
  /// The buffer of a view. It must belong to this device.
  WgpuBuffer& buffer_of(const BufferView& view) const;
  /// The buffer for bindings of values without bytes. It has 16 parts of 256 bytes; binding i uses part i.
  abi::Buffer nothing();

 private:
  DeviceId id_;
  std::shared_ptr<Gpu> gpu_;
  std::size_t limit_;
  std::array<std::shared_ptr<std::atomic<std::size_t>>, kNumBufferUses> in_use_;
  std::atomic<std::uint64_t> serial_{0};
  Pipelines pipelines_;
  std::shared_ptr<Downloads> downloads_;
  std::shared_ptr<BlockPool> points_ = std::make_shared<BlockPool>();
  std::mutex nothing_mutex_;
  Gpu::OwnBuffer nothing_;
};

/// All streams share the device's one queue, which keeps the order of submissions.
class WgpuStream final : public Stream {
 public:
  explicit WgpuStream(std::shared_ptr<WgpuDevice> device) : device_(std::move(device)), gpu_(*device_->gpu()) {}
  ~WgpuStream() override;
  void upload(std::span<const std::byte> from, const BufferView& to) override;
  void download(const BufferView& from, std::span<std::byte> to) override;
  void copy(const BufferView& from, const BufferView& to) override;
  Event record() override;
  void wait(const Event& event) override;

  WgpuDevice& device() const { return *device_; }
  /// Submits pending copies and downloads.
  void flush();
  /// Submits the commands of `encoder` after all earlier work.
  void submit(abi::CommandEncoder encoder);

 private:
  void fetch(const BufferView& from, std::span<std::byte> to, std::shared_ptr<const void> kept);

  std::shared_ptr<WgpuDevice> device_;
  Gpu& gpu_;
  abi::CommandEncoder copies_ = nullptr;  // not submitted yet
  std::unique_ptr<Download> filling_;     // not submitted yet
  std::uint64_t last_ = 0;                // the number of the last download that it must wait for
  std::shared_ptr<rlx::Buffer> aside_;    // for copies within one buffer
};

}  // namespace rlx::wgpu
