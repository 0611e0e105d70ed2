// A PJRT plug-in in this process: searching, opening and calling it, and converting its errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/backends/tpu/abi.h"
#include "rlx/base/forks.h"
#include "rlx/device/open_device.h"
#include "rlx/error.h"

namespace rlx::tpu {

/// The value of a variable in rlx's environment; empty when it is not set.
std::string setting(const char* name);

/// An opened plug-in library with its function table. It stays loaded until the process ends.
class Library {
 public:
  /// Opens and initialises the plug-in at `path`, once per process. DeviceUnavailable gives the reason: no
  /// file, no library, no table, another major version of the interface, or a truncated table.
  static std::shared_ptr<const Library> open(const std::string& path);
  Library(std::string path, const abi::Api* api);

  const std::string& path() const { return path_; }
  /// The version of the interface: "0.115".
  std::string api_version() const;
  /// True when the table has the function that takes `A`.
  template <class A>
  bool has() const {
    return function(abi::Call<A>::index) != nullptr;
  }
  /// Calls the function that takes `A`. Throws an error of the plug-in in the name of `who` ("device tpu"), also if the
  /// plug-in lacks the function.
  template <class A>
  void call(std::string_view who, A& a) const {
    if (abi::Failure* failure = attempt(who, a)) throw Error(diagnostic(who, abi::Call<A>::name, failure));
  }
  /// The same, but returns the error as a value, for `diagnostic`.
  template <class A>
  abi::Failure* attempt(std::string_view who, A& a) const {
    const abi::Function f = function(abi::Call<A>::index);
    if (!f) throw_missing(who, abi::Call<A>::name);
    if (forked()) throw_forked(who);
    return reinterpret_cast<abi::Failure* (*)(A*)>(f)(&a);
  }
  /// Calls a function and ignores its failure: for functions that release objects.
  template <class A>
  void give_back(A& a) const noexcept {
    const abi::Function f = function(abi::Call<A>::index);
    if (f && !forked()) drop(reinterpret_cast<abi::Failure* (*)(A*)>(f)(&a));
  }
  /// True in a forked child of the process that opened it: the plug-in does not work here.
  bool forked() const { return forks_ != fork_count(); }
  /// Throws DeviceLost.
  [[noreturn]] void throw_forked(std::string_view who) const;
  /// The diagnostic of a plug-in's error, which is destroyed. `what` is the function that returned it.
  Diagnostic diagnostic(std::string_view who, std::string_view what, abi::Failure* failure) const;
  /// Throws for a plug-in that reports success with an invalid result.
  [[noreturn]] void broke(std::string_view who, std::string_view what, std::string_view how) const;

  void destroy(abi::Point* event) const noexcept;
  void destroy(abi::Buffer* buffer) const noexcept;
  void drop(abi::Failure* failure) const noexcept;

 private:
  abi::Function function(std::size_t index) const;
  [[noreturn]] void throw_missing(std::string_view who, std::string_view what) const;
  std::string path_;
  const int forks_ = fork_count();
  const abi::Api* api_;
  std::size_t functions_;
};

/// The path of the requested plug-in: the option `plugin`, else RLX_TPU_PLUGIN, else LIBTPU_PATH, else empty.
std::string asked_plugin(const DeviceOptions& options);
/// The plug-in at that path. For an empty path it is the libtpu.so that the loader or a Python package has.
/// DeviceUnavailable lists the places that were searched and says how to get a plug-in.
std::shared_ptr<const Library> find_library(const std::string& asked);

}  // namespace rlx::tpu
