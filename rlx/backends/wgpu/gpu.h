// An opened adapter: its device and queue, the errors that they report, submissions and their order.
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

/// `n` up to the next multiple.
constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// What a call of the library reported.
struct CallError {
  abi::ErrorType type{};
  std::string message;
};

/// What callbacks of the library write. It outlives the Gpu by the callbacks that are under way.
class Signals {
 public:
  void add_reference() { ++references_; }
  void drop_reference();
  /// Errors of this thread's calls go to `to` until the one before it is put back.
  CallError* capture(CallError* to);
  void report(abi::ErrorType type, std::string_view message);
  void lose(std::string_view why);
  std::string lost_reason() const;

  std::atomic<bool> lost{false};
  std::atomic<std::uint64_t> done{0};  // the last submission that is known to be done

 private:
  std::atomic<int> references_{1};
  mutable std::mutex mutex_;
  std::vector<std::pair<std::thread::id, CallError*>> captures_;
  std::string reason_;
};

class Gpu {
 public:
  /// Opens the adapter; `as_browsers` asks for no more than every WebGPU device has. `text` names the device in errors:
  /// "vulkan:1".
  Gpu(const abi::Api& api, const AdapterFacts& adapter, bool as_browsers, std::string text);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const abi::Api& api;
  const AdapterFacts& adapter;
  const std::string text;
  /// What runs here has to run in browsers.
  const bool as_browsers;
  abi::Device device() const { return device_; }
  abi::Queue queue() const { return queue_; }
  const abi::Limits& limits() const { return limits_; }
  bool timestamps() const { return timestamps_; }
  /// Some drivers take a device away whose work takes seconds: a run that may is cut. What runs on the cpu nobody
  /// watches.
  double longest_submission = adapter.software() ? 1e300 : 0.5e9;  // ns
  /// How many there were.
  std::uint64_t submissions() const;

  /// Gone, or left behind by a fork.
  bool lost() const { return signals_->lost || forked(); }
  bool forked() const { return forks_ != fork_count(); }
  /// Says that it is; the first reason counts.
  void lose(std::string_view why) const { signals_->lose(why); }
  /// Throws DeviceLost where it is.
  void require() const {
    if (lost()) throw_lost();
  }
  [[noreturn]] void throw_lost() const;
  /// Throws what a call reported: DeviceLost, OutOfMemory, or Internal, as it is our bug.
  [[noreturn]] void raise(const CallError& error, std::string_view what) const;

  /// Makes calls of the library one at a time where its driver has to have that (OpenGL, whose waits hold the context).
  std::unique_lock<std::recursive_mutex> serial() const {
    return adapter.gl() ? std::unique_lock(serial_) : std::unique_lock<std::recursive_mutex>();
  }
  /// `f()`, and what its calls reported.
  template <class F>
  auto call(F&& f, CallError& error) const {
    const auto one = serial();
    struct Scope {
      Signals& signals;
      CallError* before;
      ~Scope() { (void)signals.capture(before); }
    } scope{*signals_, signals_->capture(&error)};
    return f();
  }
  /// The same; throws what they reported.
  template <class F>
  void call(std::string_view what, F&& f) const {
    CallError error;
    require();
    call(std::forward<F>(f), error);
    if (error.type != abi::ErrorType{}) raise(error, what);
  }
  /// The object that f() makes. The library gives one for what it refuses too: that is let go of.
  template <class Object, class F>
  Object make(std::string_view what, void (*let_go)(Object), F&& f) const {
    CallError error;
    require();
    const Object made = call(std::forward<F>(f), error);
    if (error.type == abi::ErrorType{}) return made;
    if (made) {
      const auto one = serial();
      let_go(made);
    }
    raise(error, what);
  }

  /// The number of a submission of what the encoder holds, which is released, and of all writes before it; none, and
  /// the number of the last, when `encoder` is null and nothing was written since.
  std::uint64_t submit(abi::CommandEncoder encoder);
  /// Writes to a buffer, behind what was submitted. Offset and size are multiples of 4.
  void write(abi::Buffer buffer, std::uint64_t offset, const void* data, std::size_t bytes);
  abi::CommandEncoder encoder() const;
  void release(abi::CommandEncoder encoder) const {
    if (forked()) return;
    const auto one = serial();
    api.CommandEncoderRelease(encoder);
  }
  void release(abi::Buffer buffer) const {
    if (forked()) return;
    const auto one = serial();
    api.BufferRelease(buffer);
  }
  struct LetGo {
    const Gpu* gpu = nullptr;
    void operator()(abi::Buffer buffer) const { gpu->release(buffer); }
  };
  using OwnBuffer = std::unique_ptr<std::remove_pointer_t<abi::Buffer>, LetGo>;
  OwnBuffer buffer(std::uint64_t bytes, abi::Flags usage, std::string_view what) const;

  /// Blocks until the submission is done; throws DeviceLost.
  void wait(std::uint64_t submission) const;
  /// True when it is done, or never will be as the device is lost. Makes progress.
  bool passed(std::uint64_t submission) const;
  bool is_done(std::uint64_t submission) const { return signals_->done >= submission; }
  /// Lets callbacks of what is done run.
  void poll() const;
  /// Waits for everything that was submitted; throws nothing.
  void drain() noexcept;

  /// The layouts for kernels of so many storage bindings.
  struct Layout {
    abi::BindGroupLayout group = nullptr;
    abi::PipelineLayout pipeline = nullptr;
  };
  const Layout& layout(int bindings);

  /// For tests: the device is taken away.
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
  mutable std::mutex submit_mutex_;  // of what follows
  std::uint64_t last_ = 0;
  bool written_ = false;           // since the last submission
  std::uint64_t write_bytes_ = 0;  // staged by the library and not known to be done with
  std::mutex layouts_mutex_;
  std::vector<std::unique_ptr<Layout>> layouts_;
};

}  // namespace rlx::wgpu
