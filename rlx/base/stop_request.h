// Early termination of long work: the caller of a run or of a model load sets a stop flag for its thread.
#pragma once

#include <atomic>
#include <utility>

#include "rlx/error.h"

namespace rlx {

/// During its lifetime, work of this thread checks `flag`: runs before each chunk of a step and each iteration of a
/// loop, compiles after each pass, and the packing of weights before each slice. Once the flag is set they throw
/// ErrorCode::Interrupted. A signal handler or another thread may set it. States that the run was to write are then as
/// after any failed run. With `confirm`, code that sees the flag calls it on this thread, and continues if it returns
/// false. `confirm` clears the flag.
class StopRequest {
 public:
  explicit StopRequest(const std::atomic<bool>& flag, bool (*confirm)() = nullptr)
      : before_(std::exchange(of_thread(), {&flag, confirm})) {}
  ~StopRequest() { of_thread() = before_; }
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The request of a thread. Where checks are frequent, the thread looks it up once.
  struct Asked {
    const std::atomic<bool>* flag = nullptr;
    bool (*confirm)() = nullptr;
    void check() const {
      if (flag && flag->load(std::memory_order_relaxed) && (!confirm || confirm())) throw_stopped();
    }
  };
  static const Asked& current() { return of_thread(); }
  /// For loops, and between the parts of long work. Throws when this thread was asked to stop.
  static void check() { of_thread().check(); }

 private:
  static Asked& of_thread() {
    static thread_local Asked asked;
    return asked;
  }
  [[noreturn]] static void throw_stopped() {
    throw Error(ErrorCode::Interrupted,
                "a stop was requested, and the work ended between two iterations of a loop or two steps");
  }
  Asked before_;
};

}  // namespace rlx
