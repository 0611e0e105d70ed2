// Default implementations shared by all devices.
#include "rlx/device/open_device.h"

#include <numeric>
#include <string>

#include "rlx/device/device.h"
#include "rlx/error.h"

namespace rlx {

std::string_view buffer_use_name(BufferUse use) {
  constexpr std::string_view names[kNumBufferUses] = {"arena", "weights", "states", "slots", "read-back", "values"};
  if (static_cast<int>(use) >= kNumBufferUses) detail::throw_no_enumerator("BufferUse", static_cast<std::int64_t>(use));
  return names[static_cast<std::size_t>(use)];
}

std::size_t DeviceMemory::used() const { return std::accumulate(in_use.begin(), in_use.end(), std::size_t{0}); }

void Stream::wait_order(const Event& event) {
  try {
    event.wait();
  } catch (const Error&) {  // a wait for the event itself reports the error
  }
}

std::shared_ptr<Buffer> OpenDevice::allocate(std::size_t bytes, BufferUse use) {
  throw Error(ErrorCode::Unsupported,
              concat_text("device ", device_text(id()), " is opaque and cannot allocate ", bytes, " bytes for ",
                          buffer_use_name(use)),
              "create a value with OpenDevice::put");
}

std::shared_ptr<Buffer> OpenDevice::put(const TensorView& value, const std::shared_ptr<const void>&, BufferUse use,
                                        Stream& stream) {
  if (value.data == nullptr && value.size_bytes != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("put: the pointer to a value of ", value.size_bytes, " bytes is null"));
  std::shared_ptr<Buffer> buffer = allocate(value.size_bytes, use);
  if (value.size_bytes != 0)
    stream.upload({static_cast<const std::byte*>(value.data), value.size_bytes},
                  BufferView(*buffer, 0, value.size_bytes));
  return buffer;
}

void OpenDevice::get(Buffer& buffer, const MutableTensorView& to, Stream& stream) {
  if (to.size_bytes > buffer.bytes())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cannot read a value of ", to.size_bytes, " bytes from a buffer of ", buffer.bytes(),
                            " bytes on ", device_text(buffer.device())));
  if (to.size_bytes != 0)
    stream.download(BufferView(buffer, 0, to.size_bytes), {static_cast<std::byte*>(to.data), to.size_bytes});
}

void require_place(std::string_view what, std::size_t bytes, std::string_view way, const BufferView& place) {
  if (bytes > place.bytes)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " of ", bytes, " bytes ", way, " a buffer view of ", place.bytes, " bytes"));
  if (bytes != 0 && !place.buffer && !place.host)
    throw Error(ErrorCode::InvalidArgument, concat_text(what, " of ", bytes, " bytes ", way,
                                                        " a buffer view "
                                                        "without memory"));
}

void OpenDevice::throw_no_memory(std::size_t bytes, BufferUse use, std::size_t limit) const {
  (void)buffer_use_name(use);
  const DeviceMemory now = memory();
  std::string in_use;
  for (int i = 0; i < kNumBufferUses; ++i)
    if (const std::size_t n = now.in_use[static_cast<std::size_t>(i)]; n != 0)
      in_use += concat_text(in_use.empty() ? "" : ", ", n, " bytes for ", buffer_use_name(static_cast<BufferUse>(i)));
  throw Error(ErrorCode::OutOfMemory,
              concat_text("device ", device_text(id()), " has no memory for ", bytes, " bytes of ",
                          buffer_use_name(use), limit ? concat_text(", the limit is ", limit) : std::string()),
              in_use.empty() ? std::string("run it with smaller dimensions, or on a machine with more memory")
                             : concat_text("in use are ", in_use,
                                           ": free what is not needed, run it with "
                                           "smaller dimensions, or on a machine with more memory"));
}

}  // namespace rlx
