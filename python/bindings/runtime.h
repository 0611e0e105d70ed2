// Compiled programs in Python.
#pragma once

#include <map>

#include "python/bindings/common.h"
#include "rlx/base/trace.h"
#include "rlx/runtime/session.h"

namespace rlx::python {

/// A compiled program with what its calls from Python need to know.
struct PyCompiled {
  explicit PyCompiled(CompiledGraph g);
  CompiledGraph program;
  bool on_host = false;        // the device uses host memory
  bool static_shapes = false;  // of inputs and outputs
  bool may_last = true;        // a run may last long enough for a user to interrupt it
};

/// While the object lives on the main thread, ctrl-C interrupts runs, and the handler of Python sees the signal too. It
/// does nothing on other threads, or if Python does not handle the signal.
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

/// Converts device options, such as {"plugin": PATH}. None: no options. Throws TypeError for anything but a dict.
DeviceOptions device_options_from(nb::handle h);
/// The session of a device ("cpu", "cuda:1") or a backend ("reference"). Arguments that are 0, empty or null keep the
/// default.
Session session_for(const std::string& device, int threads, const std::string& isa, const std::string& precision,
                    const std::string& products, const std::shared_ptr<Trace>& trace, const DeviceOptions& options);
/// Converts compile options from Python keywords. Throws TypeError for an unknown name.
CompileOptions options_from(nb::dict keywords);
/// The Python exception of an error.
nb::object exception_of(const Error& e);
/// Sets the Python error of the exception that is being handled. For functions that Python calls without nanobind.
/// `ours`: the program is one of our functions, kept from an earlier call, so a line is that of the caller.
void set_error_of_exception(bool ours = false) noexcept;

}  // namespace rlx::python
