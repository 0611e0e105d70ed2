// Compiled programs in Python.
#pragma once

#include <map>
#include <mutex>

#include "python/bindings/common.h"
#include "rlx/runtime/session.h"

namespace rlx::python {

/// A compiled program, for any number of threads: a call waits for the one before it.
struct PyCompiled {
  explicit PyCompiled(CompiledGraph g);
  CompiledGraph program;
  std::mutex busy;
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
