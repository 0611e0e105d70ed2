// A device that was opened: its memory, its streams of work, and points of them.
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

/// Work of one device in order. One thread at a time calls it. A failure fails all behind it on the stream, and all
/// that waits for that, executed or not; once a wait has thrown it, or when nobody waited the next call has, the stream
/// works again. What it was told to wait for it waits for all the same: no point behind that is ready before it is.
///
/// Offsets of views are multiples of the target's copy granule; the bytes behind a view up to the next multiple may be
/// written too (values are aligned to more).
class Stream {
 public:
  virtual ~Stream() = default;
  /// Copies to the device. `from` has been read when it returns.
  virtual void upload(std::span<const std::byte> from, const BufferView& to) = 0;
  /// Copies to the host: `to` is written when a wait for an event recorded later returns, and is not touched any more
  /// when such a wait throws.
  virtual void download(const BufferView& from, std::span<std::byte> to) = 0;
  /// Copies `to.bytes` bytes between places of this device that do not overlap; `from` may be on another one that this
  /// one `copies_from`, where what wrote it was waited for.
  virtual void copy(const BufferView& from, const BufferView& to) = 0;
  /// A point of the work so far. When there is no memory for one, all of that work is done before this throws: it may
  /// write to memory that whoever wanted to wait for it lets go of.
  virtual Event record() = 0;
  /// What is submitted from now on runs after `event`, which may be of another stream or device.
  virtual void wait(const Event& event) = 0;
  /// The same whether what led to `event` failed or not.
  virtual void wait_order(const Event& event);
  /// The driver's own stream, or 0.
  virtual std::uintptr_t native() const { return 0; }
};

/// For streams: InvalidArgument for a place that is too small or points nowhere; `what` is "an upload", `way` "to".
void require_place(std::string_view what, std::size_t bytes, std::string_view way, const BufferView& place);

/// What memory of a device is taken for.
enum class BufferUse : std::uint8_t {
  Arena,    // values of runs
  Weights,  // params and what is prepared of them
  States,
  Slots,     // inputs and outputs on their way
  Readback,  // results for the host, which reaches the bytes (`Buffer::host`)
  Values,    // device tensors of callers
};
inline constexpr int kNumBufferUses = 6;
std::string_view buffer_use_name(BufferUse use);

struct DeviceMemory {
  std::size_t total = 0;  // bytes of the device; 0: not known
  std::array<std::size_t, kNumBufferUses> in_use{};
  std::size_t used() const;
};

/// How a device keeps values and takes them from the host.
enum class MemoryModel : std::uint8_t {
  Host,    // kernels reach memory of the host at its addresses: inputs and outputs need no copy
  Arena,   // buffers of bytes: plans lay values out in them, and views name parts of them
  Opaque,  // whole typed values, each a buffer without parts; runs make new ones
};

/// Options of a device: key = value, which its backend names and checks.
using DeviceOptions = std::map<std::string, std::string, std::less<>>;

/// Everything of a device that has state; one for each DeviceId and options, shared by sessions. Its functions may be
/// called from any thread.
class OpenDevice : public std::enable_shared_from_this<OpenDevice> {
 public:
  virtual ~OpenDevice() = default;
  virtual DeviceId id() const = 0;
  virtual MemoryModel memory_model() const = 0;
  virtual DeviceMemory memory() const = 0;
  /// True once the device failed for good: every call then throws DeviceLost, and `open_device` opens it anew.
  virtual bool lost() const { return false; }
  /// A stream of its own, or, given the driver's, that one.
  virtual std::shared_ptr<Stream> stream(std::uintptr_t native = 0) = 0;
  /// Memory aligned as the target's values are. OutOfMemory names the device, the bytes wanted and those in use. An
  /// opaque device has none to give but of values, by `put`.
  virtual std::shared_ptr<Buffer> allocate(std::size_t bytes, BufferUse use);
  /// True when its streams copy from memory of `other`, an open device of the same backend, without the host.
  virtual bool copies_from(const OpenDevice& /*other*/) const { return false; }
  /// Blocks until all that was submitted to its streams is done or has failed; throws nothing of that.
  virtual void drain() = 0;
  /// The value on the device; its dims are given. With an owner its bytes may be used in place; without, they were read
  /// on return.
  virtual std::shared_ptr<Buffer> put(const TensorView& value, const std::shared_ptr<const void>& owner, BufferUse use,
                                      Stream& stream);
  /// The bytes of a value: written when a wait behind it returns.
  virtual void get(Buffer& buffer, const MutableTensorView& to, Stream& stream);
  /// A buffer over the driver's own memory of a dense value (a CUdeviceptr, an MTLBuffer), which lives as long as
  /// `owner` and is whole after `written`; null where the device takes none.
  virtual std::shared_ptr<Buffer> adopt(std::uintptr_t /*native*/, const Shape&, std::shared_ptr<const void> /*owner*/,
                                        const Event& /*written*/) {
    return nullptr;
  }

 protected:
  /// The error of `allocate`.
  [[noreturn]] void throw_no_memory(std::size_t bytes, BufferUse use, std::size_t limit) const;
};

}  // namespace rlx
