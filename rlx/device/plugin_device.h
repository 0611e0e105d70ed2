// An opaque device behind a plug-in's table, with its streams, events and values. Internal.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rlx/device/plugin_table.h"

namespace rlx {

class PluginDevice final : public OpenDevice {
 public:
  PluginDevice(std::shared_ptr<const PluginTable> table, DeviceId id, const DeviceOptions& options);
  ~PluginDevice() override;
  DeviceId id() const override { return id_; }
  MemoryModel memory_model() const override { return MemoryModel::Opaque; }
  DeviceMemory memory() const override;
  bool lost() const override;
  std::shared_ptr<Stream> stream(std::uintptr_t native) override;
  std::shared_ptr<Buffer> put(const TensorView& value, const std::shared_ptr<const void>& owner, BufferUse use,
                              Stream& stream) override;
  void get(Buffer& buffer, const MutableTensorView& to, Stream& stream) override;
  void drain() override;

  /// Calls `f(rlx_error*)` for this device. A device that reports itself lost is marked lost. A reported loss of
  /// another device, which it waited for, does not mark this one.
  template <class F>
  void call(std::string_view what, F&& f) const {
    try {
      table_->call(text_, what, f);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::DeviceLost) note_loss();
      throw;
    }
  }
  /// The result of `f()`, a function of the table that cannot fail.
  template <class F>
  auto ask(std::string_view what, F&& f) const {
    return table_->ask(text_, what, f);
  }
  const PluginTable& table() const { return *table_; }
  const rlx_plugin& api() const { return table_->api(); }
  const std::string& text() const { return text_; }
  rlx_device* handle() const { return handle_; }
  std::shared_ptr<PluginDevice> self() { return std::static_pointer_cast<PluginDevice>(shared_from_this()); }

 private:
  void note_loss() const noexcept;
  std::shared_ptr<const PluginTable> table_;
  DeviceId id_;
  std::string text_;  // "tpu:1"
  rlx_device* handle_ = nullptr;
  mutable std::atomic<bool> lost_{false};
};

// Owners are created before the call that makes the handle they own, so a handle is never leaked when memory runs out.
class PluginPoint final : public Event::Point {
 public:
  explicit PluginPoint(std::shared_ptr<PluginDevice> device) : device_(std::move(device)) {}
  ~PluginPoint() override;
  PluginPoint(const PluginPoint&) = delete;
  PluginPoint& operator=(const PluginPoint&) = delete;
  bool ready() override;
  bool failed() override;
  void wait() override;
  void own(rlx_event* made) { handle_ = made; }
  rlx_event* handle() const { return handle_; }
  const PluginDevice& on() const { return *device_; }

 private:
  void throw_broken() const;
  std::shared_ptr<PluginDevice> device_;
  rlx_event* handle_ = nullptr;
  mutable std::mutex mutex_;
  std::exception_ptr broken_;  // the exception that event_ready threw
};

class PluginBuffer final : public Buffer {
 public:
  PluginBuffer(std::shared_ptr<PluginDevice> device, std::size_t bytes);
  ~PluginBuffer() override;
  const OpenDevice* opened() const override { return device_.get(); }
  std::uintptr_t native() const override;
  void read(std::span<std::byte> to) const override;
  /// False when another buffer already owns the handle. That buffer keeps it.
  [[nodiscard]] bool own(rlx_buffer* made);
  rlx_buffer* handle() const { return handle_; }
  const PluginDevice& on() const { return *device_; }
  /// A call may consume the handle, and the plug-in may reuse it before the call returns. `take_back` or `release`
  /// follows.
  void give() { held().remove(handle_); }
  void take_back() {
    if (!held().add(handle_)) handle_ = nullptr;  // the plug-in gave it to another value as well
  }
  void release() { handle_ = nullptr; }
  /// Tracks runs that read the buffer, on any stream. A run that it is donated to waits for them. `expect_reader`
  /// allocates the entry that `add_reader` fills. An empty event stands for a run that did not start.
  void expect_reader();
  void add_reader(const Event& end) noexcept;
  void follow_readers(Stream& stream);

 private:
  HeldBuffers& held() const { return device_->table().held(); }
  std::shared_ptr<PluginDevice> device_;
  rlx_buffer* handle_ = nullptr;
  std::mutex mutex_;  // guards the members below
  std::size_t expected_ = 0;
  std::vector<Event> readers_;
};

class PluginStream final : public Stream {
 public:
  explicit PluginStream(std::shared_ptr<PluginDevice> device) : device_(std::move(device)) {}
  ~PluginStream() override;
  void upload(std::span<const std::byte> from, const BufferView& to) override;
  void download(const BufferView& from, std::span<std::byte> to) override;
  void copy(const BufferView& from, const BufferView& to) override;
  Event record() override;
  void wait(const Event& event) override;
  void wait_order(const Event& event) override;
  void own(rlx_stream* made) { handle_ = made; }
  rlx_stream* handle() const { return handle_; }
  const PluginDevice& on() const { return *device_; }

 private:
  void wait(const Event& event, bool order_only);
  std::shared_ptr<PluginDevice> device_;
  rlx_stream* handle_ = nullptr;
};

/// `buffer` as a PluginBuffer. InvalidArgument for a buffer of another device or plug-in, or of the same device opened
/// separately: the plug-in would mistake its handle for one of its own. `what` names the call or operand in the error.
PluginBuffer& plugin_buffer(const PluginDevice& device, Buffer* buffer, std::string_view what);
PluginStream& plugin_stream(const PluginDevice& device, Stream& stream, std::string_view what);

}  // namespace rlx
