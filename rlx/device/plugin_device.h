// An opaque device behind a plug-in's table, with its streams, points and values. Internal.
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

  /// Calls `f(rlx_error*)` in this device's name. A device that is lost by its own account then is lost from then on;
  /// the loss of another, for which it waited, is not its own.
  template <class F>
  void call(std::string_view what, F&& f) const {
    try {
      table_->call(text_, what, f);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::DeviceLost) note_loss();
      throw;
    }
  }
  /// The answer of `f()`, a function of the table that cannot fail.
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

// Owners are there before the call that makes what they own: nothing is lost when there is no memory for them.
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
  std::exception_ptr broken_;  // what left event_ready
};

class PluginBuffer final : public Buffer {
 public:
  PluginBuffer(std::shared_ptr<PluginDevice> device, std::size_t bytes);
  ~PluginBuffer() override;
  const OpenDevice* opened() const override { return device_.get(); }
  std::uintptr_t native() const override;
  void read(std::span<std::byte> to) const override;
  /// False when the handle is another buffer's, which it stays.
  [[nodiscard]] bool own(rlx_buffer* made);
  rlx_buffer* handle() const { return handle_; }
  const PluginDevice& on() const { return *device_; }
  /// A call may take the handle, which may be another value's before it returns: `take_back` or `release` behind it.
  void give() { held().remove(handle_); }
  void take_back() {
    if (!held().add(handle_)) handle_ = nullptr;  // the plug-in gave it to somebody else as well
  }
  void release() { handle_ = nullptr; }
  /// Runs that read it, on whichever streams: one that it is given to goes behind them. `add_reader` finds the room
  /// that `expect_reader` made; an empty event is of a run that was none.
  void expect_reader();
  void add_reader(const Event& end) noexcept;
  void follow_readers(Stream& stream);

 private:
  HeldBuffers& held() const { return device_->table().held(); }
  std::shared_ptr<PluginDevice> device_;
  rlx_buffer* handle_ = nullptr;
  std::mutex mutex_;  // of what follows
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

/// The plug-in's own object behind one of ours; InvalidArgument for one of another device, plug-in or opening: a
/// plug-in would take its handle for one of its own. `what` is the call or the operand that it was given to.
PluginBuffer& plugin_buffer(const PluginDevice& device, Buffer* buffer, std::string_view what);
PluginStream& plugin_stream(const PluginDevice& device, Stream& stream, std::string_view what);

}  // namespace rlx
