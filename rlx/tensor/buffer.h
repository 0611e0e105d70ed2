// Memory of values on any device: buffers, and views of them.
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

/// A point in the work of a stream. A value type: it may be copied, and may outlive the stream. The empty event is
/// done.
class Event {
 public:
  /// A device's representation of an event. Its functions may be called from any thread.
  class Point {
   public:
    virtual ~Point() = default;
    /// True when the work up to here is done or has failed. Makes progress if nobody else does. Never blocks.
    virtual bool ready() = 0;
    /// Blocks until `ready`. Throws the failure of the work up to here, at each call.
    virtual void wait() = 0;
    /// True when it is ready and the work up to here failed.
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

/// Bytes of a device, freed when the last owner releases them. Releasing never blocks: work submitted earlier can still
/// use the bytes, and they are reused only after that work is done.
class Buffer : public std::enable_shared_from_this<Buffer> {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;
  DeviceId device() const { return device_; }
  /// The open device that owns this memory, which outlives the buffer. Null for memory that any opened `device()` can
  /// access, such as host memory. A device that was lost and opened anew, or opened by another backend or with other
  /// options, is a different one.
  virtual const OpenDevice* opened() const { return nullptr; }
  std::size_t bytes() const { return bytes_; }
  /// The host address of the bytes, fixed for the buffer's lifetime. Null when the host cannot access them. Accessed
  /// only while no submitted work uses them.
  std::byte* host() const { return host_; }
  /// The driver's own handle (a CUdeviceptr, an MTLBuffer); 0 when it has none.
  virtual std::uintptr_t native() const { return 0; }
  /// Copies its first bytes to the host, after the work that wrote them, and waits for the copy. Throws the failure of
  /// that work.
  virtual void read(std::span<std::byte> to) const = 0;
  /// The work that wrote the buffer last, for a buffer that holds a device tensor.
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

/// Bytes [offset, offset + bytes) of a buffer, without ownership. Memory of a caller has no buffer.
struct BufferView {
  Buffer* buffer = nullptr;
  std::byte* host = nullptr;  // address of the first byte; null when the host cannot access it
  std::size_t offset = 0, bytes = 0;

  BufferView() = default;
  /// Host memory without a buffer.
  BufferView(const void* data, std::size_t n)
      : host(static_cast<std::byte*>(const_cast<void*>(data))), bytes(n) {}  // readers only read
  BufferView(Buffer& b, std::size_t from, std::size_t n)
      : buffer(&b), host(b.host() ? b.host() + from : nullptr), offset(from), bytes(n) {}
  friend bool operator==(const BufferView&, const BufferView&) = default;
};

}  // namespace rlx
