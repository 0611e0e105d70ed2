// A PJRT plug-in in this process: how it is found, opened, called, and how its errors become ours.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/backends/tpu/abi.h"
#include "rlx/base/forks.h"
#include "rlx/device/open_device.h"
#include "rlx/error.h"

namespace rlx::tpu {

/// What rlx's environment says: the variable's value, empty when it is not set.
std::string setting(const char* name);

/// A library that was opened and gave its table. It stays loaded as long as the process.
class Library {
 public:
  /// Opens and initialises the plug-in at `path`, once in a process. DeviceUnavailable says what is wrong with it: no
  /// file, no library, no table, an interface of another major version, a table cut short.
  static std::shared_ptr<const Library> open(const std::string& path);
  Library(std::string path, const abi::Api* api);

  const std::string& path() const { return path_; }
  /// "0.115": of the interface.
  std::string api_version() const;
  /// True when the table has the function that takes `A`.
  template <class A>
  bool has() const {
    return function(abi::Call<A>::index) != nullptr;
  }
  /// Calls the function that takes `A`. An error of the plug-in is thrown in the name of `who` ("device tpu"), that the
  /// plug-in lacks the function likewise.
  template <class A>
  void call(std::string_view who, A& a) const {
    if (abi::Failure* failure = attempt(who, a)) throw Error(diagnostic(who, abi::Call<A>::name, failure));
  }
  /// The same with the error as a value, to be given to `diagnostic`.
  template <class A>
  abi::Failure* attempt(std::string_view who, A& a) const {
    const abi::Function f = function(abi::Call<A>::index);
    if (!f) throw_missing(who, abi::Call<A>::name);
    if (forked()) throw_forked(who);
    return reinterpret_cast<abi::Failure* (*)(A*)>(f)(&a);
  }
  /// Calls a function whose failure nobody could do anything about: of what gives objects back.
  template <class A>
  void give_back(A& a) const noexcept {
    const abi::Function f = function(abi::Call<A>::index);
    if (f && !forked()) drop(reinterpret_cast<abi::Failure* (*)(A*)>(f)(&a));
  }
  /// Whether the process that opened it is another, of which this one was forked: nothing of it works here.
  bool forked() const { return forks_ != fork_count(); }
  /// DeviceLost.
  [[noreturn]] void throw_forked(std::string_view who) const;
  /// What a plug-in's error says, which is destroyed; `what` is the function that gave it.
  Diagnostic diagnostic(std::string_view who, std::string_view what, abi::Failure* failure) const;
  /// Throws for a plug-in that says it succeeded and did not.
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

/// The plug-in that is asked for by path: the option `plugin`, else RLX_TPU_PLUGIN, else LIBTPU_PATH; else empty.
std::string asked_plugin(const DeviceOptions& options);
/// The plug-in at that path; for an empty one libtpu.so where the loader or a Python package has it. DeviceUnavailable
/// says where it was looked for and how to get one.
std::shared_ptr<const Library> find_library(const std::string& asked);

}  // namespace rlx::tpu
