#include "cli/device_options.h"

#include "cli/usage.h"
#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cli {

Argument add_device_option(Command cmd, std::string& device) {
  return cmd
      .add_option("-d,--device", device,
                  "Device to run on (`rlx devices` lists them), maybe with options: vulkan, tpu:1, "
                  "\"tpu,plugin=PATH,cache=FOLDER\"")
      .show_default();
}
Argument add_threads_option(Command cmd, int& threads) {
  return cmd.add_option("--threads", threads, "Threads; 0: all available CPUs").in_range(0, kMaxThreads).show_default();
}
Argument add_memory_flag(Command cmd, bool& memory) {
  return cmd.add_flag("--memory", memory, "Print device memory by use to the standard error at the end");
}

NamedDevice device_called(const std::string& text) {
  NamedDevice out;
  std::size_t end = text.find(',');
  const auto id = parse_device_id(text.substr(0, end));
  if (!id && end != std::string::npos && backend_by_name(text.substr(0, end)))
    throw UsageError(ErrorCode::InvalidArgument, concat_text("backend '", text.substr(0, end), "' takes no options"),
                     "give a device of `rlx devices`");
  if (!id) {
    const Diagnostic d =
        no_such_device(text.substr(0, end), backend_by_name("reference") ? std::vector<std::string>{"reference"}
                                                                         : std::vector<std::string>());
    throw UsageError(ErrorCode::InvalidArgument, d.message, d.hint);
  }
  out.id = *id;
  while (end != std::string::npos) {
    const std::size_t begin = end + 1;
    end = text.find(',', begin);
    const std::string option = text.substr(begin, end == std::string::npos ? end : end - begin);
    const std::size_t at = option.find('=');
    if (at == std::string::npos || at == 0)
      throw UsageError(ErrorCode::InvalidArgument, concat_text("'", option, "' in '", text, "' is not a device option"),
                       "write it like tpu,plugin=PATH; `rlx devices --options` lists them");
    if (!out.options.emplace(option.substr(0, at), option.substr(at + 1)).second)
      throw UsageError(ErrorCode::InvalidArgument,
                       concat_text("'", text, "' gives option '", option.substr(0, at), "' twice"), "give it once");
  }
  return out;
}

Session session_on(const std::string& text) {
  if (backend_by_name(text) && !parse_device_id(text)) return Session::on_backend(text);
  const NamedDevice device = device_called(text);
  return Session(device.id, device.options);
}

namespace {
// Why the device cannot be used here; "" if it can, and for the name of a backend.
std::string absence(const std::string& text) {
  if (backend_by_name(text) && !parse_device_id(text)) return {};
  const NamedDevice device = device_called(text);
  const auto backend = backend_for(device.id.kind);
  // Options may make the device available, such as the path of a plug-in; opening the session reports the rest.
  return backend && !device.options.empty() && backend->probe_with(device.id.kind, device.options).count != 0
             ? std::string()
             : unavailable_reason(device.id.kind);
}
}  // namespace

Session plan_session_on(const std::string& text) {
  if (absence(text).empty()) return session_on(text);
  const NamedDevice device = device_called(text);
  return Session::for_target(device.id, device.options);
}

NamedTarget target_on(const std::string& text) { return {plan_session_on(text).target(), absence(text)}; }

}  // namespace rlx::cli
