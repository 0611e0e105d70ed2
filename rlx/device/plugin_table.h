// A checked plug-in table. Every failure of a call is an Error that names the plug-in and the call.
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

/// The hint when a plug-in has no device and suggests no other.
inline constexpr std::string_view kPickAnother = "pick one of rlx::available_devices()";

/// The error text for the current exception, which escaped from a plug-in.
std::string forbidden_exception();

/// The plug-in buffer handles that rlx owns. A handle that is returned while rlx owns it would be released twice. Each
/// PluginBuffer reserves room for its handle before the call that makes it, because nothing may fail after that call.
class HeldBuffers {
 public:
  void make_room();
  void release_room();
  /// False when the handle is already owned.
  bool add(rlx_buffer* handle) noexcept;
  void remove(rlx_buffer* handle) noexcept;

 private:
  std::mutex mutex_;
  std::size_t rooms_ = 0;
  std::vector<rlx_buffer*> handles_;  // sorted; never more than the reserved room
};

class PluginTable {
 public:
  /// `where` is the library's path, or says that the table is the program's own. Throws for a table of another version,
  /// a truncated table, and a table with a null member.
  PluginTable(const rlx_plugin* table, std::string where);

  const rlx_plugin& api() const { return api_; }
  const std::string& name() const { return name_; }
  const std::vector<Device>& devices() const { return devices_; }
  /// "plug-in 'acme' (/opt/libacme.so)"
  const std::string& text() const { return text_; }
  HeldBuffers& held() const { return held_; }

  /// Records that a device of the plug-in was opened. From then on the plug-in may run threads, which a forked child
  /// does not have, so it serves this process only.
  void note_open() const noexcept {
    int none = -1;
    forks_.compare_exchange_strong(none, fork_count());
  }
  /// True in a process that was forked from the one that opened devices. The plug-in is not called there.
  bool forked() const noexcept {
    const int at_open = forks_.load(std::memory_order_relaxed);
    return at_open >= 0 && at_open != fork_count();
  }

  /// Calls `f(rlx_error*)`. A result other than RLX_PLUGIN_OK becomes an Error that names `call` and, unless it is
  /// empty, `device`. DeviceLost in a process that was forked after a device was opened.
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
  /// Returns the result of `f()`, for functions of the table without an error argument. An exception from it becomes an
  /// Error that names `call`.
  template <class F>
  auto ask(std::string_view device, std::string_view call, F&& f) const {
    decltype(f()) answer{};
    this->call(device, call, [&](rlx_error*) {
      answer = f();
      return RLX_PLUGIN_OK;
    });
    return answer;
  }
  /// Releases a handle by `f()`. Destructors call it and cannot throw, so an exception from `f` is reported on standard
  /// error, once.
  template <class F>
  void give_back(const char* call, F&& f) const noexcept {
    if (forked()) return;  // the parent process owns it
    try {
      f();
    } catch (const std::exception& e) {
      note(call, e.what());
    } catch (...) {
      note(call, "not a std::exception");
    }
  }
  /// Throws an Error: `call` broke the contract of the table.
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
  mutable std::atomic<int> forks_{-1};  // fork_count() when the first device was opened; -1: none was
};

/// Options as the plug-in's table takes them. The pointers are valid as long as `options` and this object.
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
