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
};

/// Options of a compile from Python's keywords; TypeError naming an unknown one.
CompileOptions options_from(nb::dict keywords);
/// Sets the Python error of the exception that is being handled; for functions that Python calls without nanobind.
void set_error_of_exception() noexcept;

}  // namespace rlx::python
