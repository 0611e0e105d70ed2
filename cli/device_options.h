// The options of commands that run on a device, and the device that they name.
#pragma once

#include <memory>
#include <string>

#include "cli/arguments.h"
#include "rlx/runtime/session.h"

namespace rlx::cli {

/// -d, --device: the text that `device_called` and `session_on` read.
Argument add_device_option(Command cmd, std::string& device);
/// --threads; 0: all available CPUs.
Argument add_threads_option(Command cmd, int& threads);
/// --memory: whether to call report_memory (memory_report.h) at the end.
Argument add_memory_flag(Command cmd, bool& memory);

/// A device as the command line names it, with options of its backend.
struct NamedDevice {
  DeviceId id;
  DeviceOptions options;
};
/// The device called `text`: an id or alias, with an optional ordinal ("cuda:1"), then options that `rlx devices
/// --options` lists (",kernels=hardware"), whose values hold no commas. UsageError names the nearest.
NamedDevice device_called(const std::string& text);
/// A session on the device called `text`, which may also be the name of a backend ("reference").
Session session_on(const std::string& text);

/// A session that only compiles: the device may be absent (Session::for_target).
Session plan_session_on(const std::string& text);

/// The target of a device, and why the device cannot be used here ("" if it can).
struct NamedTarget {
  std::shared_ptr<const Target> target;
  std::string absent;
};
/// The target of the device called `text`, which may be absent (Session::for_target).
NamedTarget target_on(const std::string& text);

}  // namespace rlx::cli
