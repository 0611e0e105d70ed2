// An opened device: its memory, its streams, and events on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rlx/tensor/buffer.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// In-order work of one device. One thread at a time may call it. A failure fails all later work of the stream, and all
/// work that waits for it, whether executed or not. The stream works again after a wait has thrown the failure, or,
/// when nobody waited, after the next call has thrown it. The stream still performs all its waits: no later event
/// is ready before them.
///
/// Offsets of views are multiples of the target's copy granule. The bytes after a view up to the next multiple may be
/// written too, because values are aligned to more.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Copies to the device. `from` has been read when it returns.
  virtual void upload(std::span<const std::byte> from, const BufferView& to) = 0;
  /// Copies to the host. `to` is complete when a wait for a later event returns. `to` is not written any more after
  /// such a wait throws.
  virtual void download(const BufferView& from, std::span<std::byte> to) = 0;
  /// Copies `to.bytes` bytes between locations of this device that do not overlap. `from` may be on another device that
  /// this one `copies_from`, if its writer was waited for.
  virtual void copy(const BufferView& from, const BufferView& to) = 0;
  /// Records an event after the work so far. When there is no memory for the event, it throws only after all that work
  /// is done, because the caller may free memory that the work writes to.
  virtual Event record() = 0;
  /// Later work runs after `event`, which may belong to another stream or device.
  virtual void wait(const Event& event) = 0;
  /// The same, whether the work before `event` failed or not.
  virtual void wait_order(const Event& event);
  /// The driver's own stream, or 0.
  virtual std::uintptr_t native() const { return 0; }
};

/// For streams: throws InvalidArgument for a location that is too small or null. `what` is "an upload", `way` is "to".
void require_place(std::string_view what, std::size_t bytes, std::string_view way, const BufferView& place);

/// The purpose of an allocation of device memory.
enum class BufferUse : std::uint8_t {
  Arena,    // values of runs
  Weights,  // params and prepared weights
  States,
  Slots,     // inputs and outputs in transit
  Readback,  // results for the host, which can access the bytes (`Buffer::host`)
  Values,    // device tensors of callers
};
inline constexpr int kNumBufferUses = 6;
std::string_view buffer_use_name(BufferUse use);

struct DeviceMemory {
  std::size_t total = 0;  // bytes of the device; 0: unknown
  std::array<std::size_t, kNumBufferUses> in_use{};
  std::size_t used() const;
};

/// How a device keeps values and takes them from the host.
enum class MemoryModel : std::uint8_t {
  Host,    // kernels access host memory directly: inputs and outputs need no copy
  Arena,   // buffers of bytes: plans lay out values in them, and views name ranges of them
  Opaque,  // whole typed values, each an indivisible buffer; runs make new ones
};

/// Options of a device: key = value, defined and checked by its backend.
using DeviceOptions = std::map<std::string, std::string, std::less<>>;

/// All state of a device. There is one object per DeviceId and options, shared by sessions. Its functions may be called
/// from any thread.
class OpenDevice : public std::enable_shared_from_this<OpenDevice> {
 public:
  virtual ~OpenDevice() = default;
  virtual DeviceId id() const = 0;
  virtual MemoryModel memory_model() const = 0;
  virtual DeviceMemory memory() const = 0;
  /// True once the device has failed permanently. Every call then throws DeviceLost, and `open_device` opens it anew.
  virtual bool lost() const { return false; }
  /// A new stream, or a wrapper of the given driver stream.
  virtual std::shared_ptr<Stream> stream(std::uintptr_t native = 0) = 0;
  /// Allocates memory with the alignment of the target's values. OutOfMemory names the device, the bytes wanted and
  /// those in use. An opaque device only has memory of values, from `put`.
  virtual std::shared_ptr<Buffer> allocate(std::size_t bytes, BufferUse use);
  /// True when its streams can copy from memory of `other`, an open device of the same backend, without the host.
  virtual bool copies_from(const OpenDevice& /*other*/) const { return false; }
  /// Blocks until all work submitted to its streams is done or has failed. Throws no failure of that work.
  virtual void drain() = 0;
  /// Copies the value to the device. Its dims must be set. With an owner the device may use the bytes in place. Without
  /// one, it has read the bytes when it returns.
  virtual std::shared_ptr<Buffer> put(const TensorView& value, const std::shared_ptr<const void>& owner, BufferUse use,
                                      Stream& stream);
  /// Copies the bytes of a value to the host. They are complete when a wait for later work returns.
  virtual void get(Buffer& buffer, const MutableTensorView& to, Stream& stream);
  /// A buffer over the driver's own memory of a dense value (a CUdeviceptr, an MTLBuffer). The memory lives as long as
  /// `owner` and is complete after `written`. Null when the device does not support it.
  virtual std::shared_ptr<Buffer> adopt(std::uintptr_t /*native*/, const Shape&, std::shared_ptr<const void> /*owner*/,
                                        const Event& /*written*/) {
    return nullptr;
  }

 protected:
  /// Throws the error of `allocate`.
  [[noreturn]] void throw_no_memory(std::size_t bytes, BufferUse use, std::size_t limit) const;
};

}  // namespace rlx
