// Compiled programs in Python.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "python/bindings/common.h"
#include "rlx/runtime/session.h"

namespace rlx::python {

/// A mutex whose owner is told when it asks again, as a callback of a run would that runs its own program.
class Busy {
 public:
  void lock() {
    check_not_mine();
    mutex_.lock();
    owner_ = std::this_thread::get_id();
  }
  bool try_lock() {
    check_not_mine();
    if (!mutex_.try_lock()) return false;
    owner_ = std::this_thread::get_id();
    return true;
  }
  void unlock() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  void check_not_mine() const {
    if (owner_ == std::this_thread::get_id())
      throw Error(ErrorCode::InvalidArgument, "a callback of a run uses the program that is running",
                  "give it a runner of its own: program.clone()");
  }
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

/// A compiled program, for any number of threads: a call waits for the one before it.
struct PyCompiled {
  explicit PyCompiled(CompiledGraph g);
  CompiledGraph program;
  Busy busy;
  bool on_host = false;        // runs read and write the host's bytes
  bool static_shapes = false;  // of inputs and outputs
  bool loops = false;          // a run may be long: ctrl-C ends it
};

/// While it lives on the main thread, ctrl-C ends the loops of runs; Python's own handler sees it too. Elsewhere, and
/// where Python does not handle the signal, it does nothing.
class CtrlC {
 public:
  explicit CtrlC(bool wanted);
  ~CtrlC();
  CtrlC(const CtrlC&) = delete;
  CtrlC& operator=(const CtrlC&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Options of a compile from Python's keywords; TypeError naming an unknown one.
CompileOptions options_from(nb::dict keywords);
/// Sets the Python error of the exception that is being handled; for functions that Python calls without nanobind.
void set_error_of_exception() noexcept;

}  // namespace rlx::python
