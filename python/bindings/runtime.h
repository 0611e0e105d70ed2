// Compiled programs in Python.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "python/bindings/common.h"
#include "rlx/base/trace.h"
#include "rlx/runtime/session.h"

namespace rlx::python {

/// A compiled program, for any number of threads: a call waits for the one before it.
struct PyCompiled {
  explicit PyCompiled(CompiledGraph g);
  CompiledGraph program;
  std::mutex busy;
  std::atomic<bool> running{false};  // busy is held
  bool on_host = false;              // runs read and write the host's bytes
  bool static_shapes = false;        // of inputs and outputs
  bool loops = false;                // a run may be long: ctrl-C ends it
};

/// The turn of a call on a program, behind those before it. A callback of a run that asks for its own program's turn
/// would wait for ever, on whatever thread it is called: it gets an error.
class Turn {
 public:
  explicit Turn(PyCompiled& c);
  ~Turn() { c_.running = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  PyCompiled& c_;
  std::unique_lock<std::mutex> lock_;
};
/// The op whose Python kernel this thread is in; null outside of any.
const OpBox*& running_kernel();

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

/// {"plugin": PATH}, as text; TypeError for what is no dict. None: no options.
DeviceOptions device_options_from(nb::handle h);
/// The session of a device ("cpu", "cuda:1") or a backend ("reference"); what is 0, empty or null stays as it is.
Session session_for(const std::string& device, int threads, const std::string& isa, const std::string& precision,
                    const std::string& products, const std::shared_ptr<Trace>& trace, const DeviceOptions& options);
/// Options of a compile from Python's keywords; TypeError naming an unknown one.
CompileOptions options_from(nb::dict keywords);
/// The Python exception of an error.
nb::object exception_of(const Error& e);
/// Sets the Python error of the exception that is being handled; for functions that Python calls without nanobind.
void set_error_of_exception() noexcept;

}  // namespace rlx::python
