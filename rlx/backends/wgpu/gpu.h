// An opened adapter: its device and queue, their errors, and the order of submissions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/backends/wgpu/adapters.h"
#include "rlx/base/forks.h"
#include "rlx/error.h"

namespace rlx::wgpu {

/// `n` rounded up to a multiple.
constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// An error that a library call reported.
struct CallError {
  abi::ErrorType type{};
  std::string message;
};

/// The state that library callbacks write. Pending callbacks keep it alive after the Gpu is destroyed.
class Signals {
 public:
  void add_reference() { ++references_; }
  void drop_reference();
  /// Sends errors of this thread's calls to `to` and returns the previous target, which the caller restores.
  CallError* capture(CallError* to);
  void report(abi::ErrorType type, std::string_view message);
  void lose(std::string_view why);
  std::string lost_reason() const;

  std::atomic<bool> lost{false};
  std::atomic<std::uint64_t> done{0};  // the last submission that is known to be complete

 private:
  std::atomic<int> references_{1};
  mutable std::mutex mutex_;
  std::vector<std::pair<std::thread::id, CallError*>> captures_;
  std::string reason_;
};

class Gpu {
 public:
  /// Opens the adapter. `as_browsers` requests only the limits that every WebGPU device has. `text` names the device in
  /// errors: "vulkan:1".
  Gpu(const abi::Api& api, const AdapterFacts& adapter, bool as_browsers, std::string text);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const abi::Api& api;
  const AdapterFacts& adapter;
  const std::string text;
  /// Uses only the limits and features that browsers have, as the constructor says.
  const bool as_browsers;
  abi::Device device() const { return device_; }
  abi::Queue queue() const { return queue_; }
  const abi::Limits& limits() const { return limits_; }
  bool timestamps() const { return timestamps_; }
  /// The longest submission. Some drivers reset a device whose work takes seconds, so longer runs are split. Software
  /// adapters have no such watchdog.
  double longest_submission = adapter.software() ? 1e300 : 0.5e9;  // ns
  /// The number of submissions so far.
  std::uint64_t submissions() const;

  /// The device is lost, or this process was forked.
  bool lost() const { return signals_->lost || forked(); }
  bool forked() const { return forks_ != fork_count(); }
  /// Marks the device as lost. The first reason is kept.
  void lose(std::string_view why) const { signals_->lose(why); }
  /// Throws DeviceLost if the device is lost.
  void require() const {
    if (lost()) throw_lost();
  }
  [[noreturn]] void throw_lost() const;
  /// Throws the error of a call: DeviceLost, OutOfMemory, or Internal, which is a bug of rlx.
  [[noreturn]] void raise(const CallError& error, std::string_view what) const;

  /// Serializes library calls for drivers that need it (OpenGL, whose waits hold the context).
  std::unique_lock<std::recursive_mutex> serial() const {
    return adapter.gl() ? std::unique_lock(serial_) : std::unique_lock<std::recursive_mutex>();
  }
  /// Calls f() and returns its result and the errors that its calls reported.
  template <class F>
  auto call(F&& f, CallError& error) const {
    const auto serial_lock = serial();
    struct Scope {
      Signals& signals;
      CallError* before;
      ~Scope() { (void)signals.capture(before); }
    } scope{*signals_, signals_->capture(&error)};
    return f();
  }
  /// The same, but throws the reported error.
  template <class F>
  void call(std::string_view what, F&& f) const {
    CallError error;
    require();
    call(std::forward<F>(f), error);
    if (error.type != abi::ErrorType{}) raise(error, what);
  }
  /// Returns the object that f() makes. The library returns an object even for rejected calls; that object is released.
  template <class Object, class F>
  Object make(std::string_view what, void (*free_object)(Object), F&& f) const {
    CallError error;
    require();
    const Object made = call(std::forward<F>(f), error);
    if (error.type == abi::ErrorType{}) return made;
    if (made) {
      const auto serial_lock = serial();
      free_object(made);
    }
    raise(error, what);
  }

  /// Submits the commands of `encoder`, which is released, and all earlier writes, and returns the submission's number.
  /// If `encoder` is null and nothing was written since the last submission, it submits nothing and returns the last
  /// number.
  std::uint64_t submit(abi::CommandEncoder encoder);
  /// Writes to a buffer after all submitted work. Offset and size are multiples of 4.
  void write(abi::Buffer buffer, std::uint64_t offset, const void* data, std::size_t bytes);
  abi::CommandEncoder encoder() const;
  void release(abi::CommandEncoder encoder) const {
    if (forked()) return;
    const auto serial_lock = serial();
    api.CommandEncoderRelease(encoder);
  }
  void release(abi::Buffer buffer) const {
    if (forked()) return;
    const auto serial_lock = serial();
    api.BufferRelease(buffer);
  }
  struct LetGo {
    const Gpu* gpu = nullptr;
    void operator()(abi::Buffer buffer) const { gpu->release(buffer); }
  };
  using OwnBuffer = std::unique_ptr<std::remove_pointer_t<abi::Buffer>, LetGo>;
  OwnBuffer buffer(std::uint64_t bytes, abi::Flags usage, std::string_view what) const;

  /// Blocks until the submission is complete; throws DeviceLost.
  void wait(std::uint64_t submission) const;
  /// True when the submission is complete, or never will be since the device is lost. Makes progress.
  bool passed(std::uint64_t submission) const;
  bool is_done(std::uint64_t submission) const { return signals_->done >= submission; }
  /// Runs callbacks of completed work.
  void poll() const;
  /// Waits for all submitted work. Throws nothing.
  void drain() noexcept;

  /// The layouts for kernels with a given number of storage bindings.
  struct Layout {
    abi::BindGroupLayout group = nullptr;
    abi::PipelineLayout pipeline = nullptr;
  };
  const Layout& layout(int bindings);

  /// For tests: destroys the device.
  void destroy();

 private:
  void note_done(std::uint64_t submission) const;

  const int forks_ = fork_count();
  abi::Device device_ = nullptr;
  abi::Queue queue_ = nullptr;
  abi::Limits limits_{};
  bool timestamps_ = false;
  Signals* signals_ = new Signals;
  mutable std::recursive_mutex serial_;
  mutable std::mutex submit_mutex_;  // guards the members below
  std::uint64_t last_ = 0;
  bool written_ = false;           // something was written since the last submission
  std::uint64_t write_bytes_ = 0;  // staged by the library and not known to be released
  std::mutex layouts_mutex_;
  std::vector<std::unique_ptr<Layout>> layouts_;
};

}  // namespace rlx::wgpu
