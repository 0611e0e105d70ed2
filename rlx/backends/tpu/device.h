// One device of a client: an opaque device, which keeps whole values.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rlx/backends/tpu/work.h"

namespace rlx::tpu {

class TpuBuffer;

/// A dtype as plug-ins see it. 4-bit values are kept as their bytes, in one-dimensional U8 (stablehlo.h).
struct ElementOf {
  abi::Element type;
  bool packed = false;
};
ElementOf element_of(DType t);

class TpuDevice final : public OpenDevice {
 public:
  TpuDevice(std::shared_ptr<const Client> client, DeviceId id);
  DeviceId id() const override { return id_; }
  MemoryModel memory_model() const override { return MemoryModel::Opaque; }
  DeviceMemory memory() const override;
  bool lost() const override { return client()->lost(); }
  std::shared_ptr<Stream> stream(std::uintptr_t native) override;
  std::shared_ptr<Buffer> put(const TensorView& value, const std::shared_ptr<const void>& owner, BufferUse use,
                              Stream& stream) override;
  void get(Buffer& buffer, const MutableTensorView& to, Stream& stream) override;
  std::shared_ptr<Buffer> adopt(std::uintptr_t native, const Shape& shape, std::shared_ptr<const void> owner,
                                const Event& written) override;
  void drain() override;

  const Library& library() const { return client()->library(); }
  const std::shared_ptr<const Client>& client() const { return place_->client; }
  abi::Device* handle() const { return handle_; }
  const std::shared_ptr<const OnDevice>& place() const { return place_; }
  const std::string& text() const { return place_->text; }
  std::shared_ptr<TpuDevice> self() { return std::static_pointer_cast<TpuDevice>(shared_from_this()); }
  /// Throws DeviceLost once the device was lost.
  void require_alive() const;
  void lose() const { client()->lose(); }
  /// Throws the plug-in's error of a call that needed `bytes` bytes (0: unknown) for `use`.
  [[noreturn]] void throw_failed(std::string_view what, abi::Failure* failure, std::size_t bytes, BufferUse use) const;
  void account(BufferUse use, std::size_t bytes, bool taken) {
    place_->in_use[static_cast<std::size_t>(use)] += taken ? bytes : std::size_t{0} - bytes;
  }
  /// A buffer whose value is set later.
  std::shared_ptr<TpuBuffer> new_buffer(std::size_t bytes, BufferUse use);
  /// Keeps work of a destroyed stream, so that `drain` waits for it too.
  void keep(std::shared_ptr<Work> work);

 private:
  /// Holds `owner` until `event`. Takes ownership of the event.
  void hold_until(abi::Point* event, const std::shared_ptr<const void>& owner) const;
  std::shared_ptr<const OnDevice> place_;
  DeviceId id_;
  abi::Device* handle_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::weak_ptr<TpuStream>> streams_;
  std::vector<std::shared_ptr<Work>> left_;
};

/// A buffer that holds a whole value.
class TpuBuffer final : public Buffer {
 public:
  TpuBuffer(std::shared_ptr<TpuDevice> device, std::size_t bytes, BufferUse use);
  ~TpuBuffer() override;
  const OpenDevice* opened() const override { return device_.get(); }
  std::uintptr_t native() const override;
  void read(std::span<std::byte> to) const override;

  void own(abi::Buffer* made, std::size_t rank) { handle_ = made, rank_ = rank; }
  abi::Buffer* handle() const { return handle_; }
  const TpuDevice& on() const { return *device_; }
  /// True when the bytes belong to the caller, so no run may overwrite them.
  bool lent() const { return lent_; }
  void lend() { lent_ = true; }
  /// True when a run has consumed it as a donated buffer.
  bool taken() const;
  /// Starts a copy of its bytes, row-major, to `to`. The caller destroys the returned event.
  abi::Point* fetch(void* to, std::size_t bytes) const;

 private:
  std::shared_ptr<TpuDevice> device_;
  BufferUse use_;
  abi::Buffer* handle_ = nullptr;
  std::size_t rank_ = 0;
  bool lent_ = false;
};

/// `buffer`, passed by the runtime, as a TpuBuffer. InvalidArgument for a buffer of another device, or of the same
/// device opened separately. `what` names the call or operand in the error.
TpuBuffer& tpu_buffer(const TpuDevice& device, Buffer* buffer, std::string_view what);
TpuStream& tpu_stream(const TpuDevice& device, Stream& stream, std::string_view what);

}  // namespace rlx::tpu
