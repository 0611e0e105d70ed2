// A plug-in's table as the rest of rlx calls it: checked once, every failure an Error that names plug-in and call.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/device/device.h"
#include "rlx/device/open_device.h"
#include "rlx/device/plugin.h"
#include "rlx/error.h"

namespace rlx {

/// The way out where a plug-in has no device and names no other.
inline constexpr std::string_view kPickAnother = "pick one of rlx::available_devices()";

/// What errors say of the exception that is being handled, which left a plug-in.
std::string forbidden_exception();

/// The handles of a plug-in's buffers that rlx has: one that comes back while it is here would be given back twice.
/// Each PluginBuffer makes room for its own before the call that makes one, behind which nothing may fail.
class HeldBuffers {
 public:
  void make_room();
  void leave_room();
  /// False when it is here already.
  bool add(rlx_buffer* handle) noexcept;
  void remove(rlx_buffer* handle) noexcept;

 private:
  std::mutex mutex_;
  std::size_t rooms_ = 0;
  std::vector<rlx_buffer*> handles_;  // sorted; never more than rooms
};

class PluginTable {
 public:
  /// `where` is the library's path, or says that the table is the program's own. Throws for a table of another version,
  /// one that is cut short, and one with a null member.
  PluginTable(const rlx_plugin* table, std::string where);

  const rlx_plugin& api() const { return api_; }
  const std::string& name() const { return name_; }
  const std::vector<Device>& devices() const { return devices_; }
  /// "plug-in 'acme' (/opt/libacme.so)"
  const std::string& text() const { return text_; }
  HeldBuffers& held() const { return held_; }

  /// A device of it is opened: from here on it may have threads, and serves this process alone.
  void note_open() const noexcept {
    int none = -1;
    forks_.compare_exchange_strong(none, fork_count());
  }
  /// Whether the process that opened devices of it is another, of which this one was forked: it is not called here.
  bool forked() const noexcept {
    const int at_open = forks_.load(std::memory_order_relaxed);
    return at_open >= 0 && at_open != fork_count();
  }

  /// Calls `f(rlx_error*)`; what is not RLX_PLUGIN_OK becomes an Error that names `call` and, unless it is empty,
  /// `device`. DeviceLost in a process that was forked since a device was opened.
  template <class F>
  void call(std::string_view device, std::string_view call, F&& f) const {
    if (forked()) throw_forked(device);
    rlx_error error{};
    error.struct_size = sizeof error;
    rlx_code code = RLX_PLUGIN_INTERNAL;
    std::string thrown;
    try {
      code = f(&error);
    } catch (...) {
      thrown = forbidden_exception();
    }
    if (code != RLX_PLUGIN_OK) fail(device, call, code, error, thrown);
  }
  /// The answer of one that has no error to fill, `f()`; an exception that leaves it becomes an Error as of `call`.
  template <class F>
  auto ask(std::string_view device, std::string_view call, F&& f) const {
    decltype(f()) answer{};
    this->call(device, call, [&](rlx_error*) {
      answer = f();
      return RLX_PLUGIN_OK;
    });
    return answer;
  }
  /// Gives a handle back by `f()`. Destructors do so, which nobody can be thrown what leaves it: that is a note on
  /// standard error, once.
  template <class F>
  void give_back(const char* call, F&& f) const noexcept {
    if (forked()) return;  // the parent's
    try {
      f();
    } catch (const std::exception& e) {
      note(call, e.what());
    } catch (...) {
      note(call, "no std::exception");
    }
  }
  /// A promise of the table that `call` did not keep.
  [[noreturn]] void broke(std::string_view device, std::string_view call, std::string_view how) const;

 private:
  void note(const char* call, const char* thrown) const noexcept;
  [[noreturn]] void throw_forked(std::string_view device) const;
  [[noreturn]] void fail(std::string_view device, std::string_view call, rlx_code code, const rlx_error& error,
                         const std::string& thrown) const;
  rlx_plugin api_{};
  std::string name_, text_;
  std::vector<Device> devices_;
  mutable HeldBuffers held_;
  mutable std::atomic<bool> noted_{false};
  mutable std::atomic<int> forks_{-1};  // when the first device was opened
};

/// Options as the table takes them; valid as long as `options` and this.
class PluginOptions {
 public:
  explicit PluginOptions(const DeviceOptions& options) {
    for (const auto& [key, value] : options) list_.push_back({key.c_str(), value.c_str()});
    all_ = {sizeof all_, list_.size(), list_.data()};
  }
  PluginOptions(const PluginOptions&) = delete;
  PluginOptions& operator=(const PluginOptions&) = delete;
  const rlx_options* get() const { return &all_; }

 private:
  std::vector<rlx_option> list_;
  rlx_options all_{};
};

}  // namespace rlx
