// Memory of values on any device: what holds bytes, and views of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace rlx {

/// The kinds of devices.
enum class Device : std::uint8_t { Cpu, Metal, Mlx, Ane, Cuda, Rocm, Tpu, Gpu, Vulkan, OpenGl, DirectX, WebGpu };
inline constexpr int kNumDevices = 12;

/// One device of a machine: "cuda:1" is {Device::Cuda, 1}. A kind alone means its first device.
struct DeviceId {
  Device kind = Device::Cpu;
  int ordinal = 0;
  DeviceId() = default;
  DeviceId(Device k, int o = 0) : kind(k), ordinal(o) {}  // NOLINT(implicit)
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

class OpenDevice;

/// A point of a stream's work. A value: it may be copied, and may outlive the stream. The empty one is done.
class Event {
 public:
  /// What a device keeps of a point. Its functions may be called from any thread.
  class Point {
   public:
    virtual ~Point() = default;
    /// True when the work up to here is done or has failed; makes progress where nobody else does. Never blocks.
    virtual bool ready() = 0;
    /// Blocks until then. Throws what failed up to here, at each call.
    virtual void wait() = 0;
    /// True when ready and what led here failed.
    virtual bool failed() = 0;
  };
  Event() = default;
  explicit Event(std::shared_ptr<Point> point) : point_(std::move(point)) {}
  bool ready() const { return !point_ || point_->ready(); }
  void wait() const {
    if (point_) point_->wait();
  }
  bool failed() const { return point_ && point_->failed(); }
  Point* point() const { return point_.get(); }

 private:
  std::shared_ptr<Point> point_;
};

/// Bytes of a device, given back when the last holder lets go. That never blocks: what was submitted before still finds
/// them, and they serve nobody else until it is done.
class Buffer : public std::enable_shared_from_this<Buffer> {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;
  DeviceId device() const { return device_; }
  /// The open device that this is memory of, which lives as long as this; null where any that is opened as `device()`
  /// reaches it, as memory of the host. One that was lost and opened anew, or opened by another backend or with other
  /// options, is another one.
  virtual const OpenDevice* opened() const { return nullptr; }
  std::size_t bytes() const { return bytes_; }
  /// Where the host finds the bytes, fixed for the buffer's life; null when it cannot reach them. Touched only while no
  /// submitted work uses them.
  std::byte* host() const { return host_; }
  /// The driver's own name of it (a CUdeviceptr, an MTLBuffer); 0 when it has none.
  virtual std::uintptr_t native() const { return 0; }
  /// Copies its first bytes to the host and returns when they are there: after the work that wrote them, whose failure
  /// it throws.
  virtual void read(std::span<std::byte> to) const = 0;
  /// The work that wrote it last, for a buffer that holds a device tensor.
  const Event& written() const { return written_; }
  void set_written(Event e) { written_ = std::move(e); }

 protected:
  Buffer(DeviceId device, std::size_t bytes, std::byte* host) : device_(device), bytes_(bytes), host_(host) {}

 private:
  DeviceId device_;
  std::size_t bytes_;
  std::byte* host_;
  Event written_;
};

/// Bytes [offset, offset + bytes) of a buffer, which it does not own; memory of a caller has no buffer.
struct BufferView {
  Buffer* buffer = nullptr;
  std::byte* host = nullptr;  // of the first byte; null where the host cannot reach it
  std::size_t offset = 0, bytes = 0;

  BufferView() = default;
  /// Memory of the host that no buffer holds.
  BufferView(const void* data, std::size_t n)
      : host(static_cast<std::byte*>(const_cast<void*>(data))), bytes(n) {}  // NOLINT(const-cast): readers only read
  BufferView(Buffer& b, std::size_t from, std::size_t n)
      : buffer(&b), host(b.host() ? b.host() + from : nullptr), offset(from), bytes(n) {}
  friend bool operator==(const BufferView&, const BufferView&) = default;
};

}  // namespace rlx
