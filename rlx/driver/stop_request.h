// Ends long runs early: whoever starts a run on a thread may say how it is told to stop.
#pragma once

#include <atomic>
#include <utility>

#include "rlx/error.h"

namespace rlx {

/// While it lives, loops of programs that this thread runs look at `flag` before each trip, and throw
/// ErrorCode::Interrupted once it is set: a signal handler or another thread may set it. States that the run was to
/// write are then as after any run that failed. Steps without loops run to their end.
class StopRequest {
 public:
  explicit StopRequest(const std::atomic<bool>& flag) : before_(std::exchange(flag_of_thread(), &flag)) {}
  ~StopRequest() { flag_of_thread() = before_; }
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// For loops: throws when this thread was asked to stop.
  static void check() {
    const std::atomic<bool>* flag = flag_of_thread();
    if (flag && flag->load(std::memory_order_relaxed)) throw_stopped();
  }

 private:
  static const std::atomic<bool>*& flag_of_thread() {
    static thread_local const std::atomic<bool>* flag = nullptr;
    return flag;
  }
  [[noreturn]] static void throw_stopped() {
    throw Error(ErrorCode::Interrupted, "the run was asked to stop, and ended between two trips of a loop");
  }
  const std::atomic<bool>* before_;
};

}  // namespace rlx
