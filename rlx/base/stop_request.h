// Ends long work early: whoever starts a run, or loads a model, on a thread may say how it is told to stop.
#pragma once

#include <atomic>
#include <utility>

#include "rlx/error.h"

namespace rlx {

/// While it lives, loops of programs that this thread runs look at `flag` before each trip, compiles after each pass
/// and the packing of weights before each slice; they throw ErrorCode::Interrupted once it is set: a signal handler or
/// another thread may set it. States that the run was to write are then as after any run that failed. Steps without
/// loops run to their end. With `confirm` what sees the flag asks it on this thread, and goes on where it says no; it
/// clears the flag.
class StopRequest {
 public:
  explicit StopRequest(const std::atomic<bool>& flag, bool (*confirm)() = nullptr)
      : before_(std::exchange(of_thread(), {&flag, confirm})) {}
  ~StopRequest() { of_thread() = before_; }
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// For loops, and between the parts of long work: throws when this thread was asked to stop.
  static void check() {
    const Asked& asked = of_thread();
    if (asked.flag && asked.flag->load(std::memory_order_relaxed) && (!asked.confirm || asked.confirm()))
      throw_stopped();
  }

 private:
  struct Asked {
    const std::atomic<bool>* flag = nullptr;
    bool (*confirm)() = nullptr;
  };
  static Asked& of_thread() {
    static thread_local Asked asked;
    return asked;
  }
  [[noreturn]] static void throw_stopped() {
    throw Error(ErrorCode::Interrupted,
                "it was asked to stop, and ended between two trips of a loop or two parts of the work");
  }
  Asked before_;
};

}  // namespace rlx
