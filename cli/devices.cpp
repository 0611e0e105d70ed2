// `rlx devices`: every device rlx knows, whether this build and machine can use it, and why not; the environment
// variables that change what runs.
#include <algorithm>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_page.h"
#include "cli/terminal.h"
#include "rlx/device/registry.h"
#include "rlx/formats/json.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cli {
namespace {

void list_environment(bool json_format) {
  Output out("-");
  if (json_format) {
    JsonWriter json;
    json.begin_array();
    for (const EnvVariable& v : env_variables()) {
      json.begin_object().member("name", v.name).member("what", v.what);
      if (const auto value = env_get(v.name)) json.member("value", *value);
      json.end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    for (const EnvVariable& v : env_variables()) {
      char line[64];
      std::snprintf(line, sizeof line, "%-20s ", std::string(v.name).c_str());
      const auto value = env_get(v.name);
      out.write(concat_text(line, v.what, value ? concat_text(" (now: ", *value, ")") : "", "\n"));
    }
  }
  out.close();
}

void list_options(bool json_format) {
  Output out("-");
  JsonWriter json;
  json.begin_array();
  for (Device d : registered_devices())
    for (const DeviceOptionInfo& o : backend_for(d)->option_infos()) {
      const std::string_view id = device_info(d).id, when = o.at_open ? "open" : "compile";
      json.begin_object().member("device", id).member("name", o.name).member("what", o.what).member("acts_at", when);
      json.end_object();
      char line[64];
      std::snprintf(line, sizeof line, "%-9s %-10s ", std::string(id).c_str(), std::string(o.name).c_str());
      if (!json_format) out.write(concat_text(line, o.what, " (at ", when, ")\n"));
    }
  json.end_array();
  if (json_format) out.write(json.take() + "\n");
  out.close();
}

std::vector<DeviceInfo> by_priority() {
  std::vector<DeviceInfo> devices(all_devices().begin(), all_devices().end());
  std::sort(devices.begin(), devices.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.priority < b.priority; });
  return devices;
}

void list_devices(bool json_format) {
  const std::vector<DeviceInfo> devices = by_priority();
  Output out("-");
  if (json_format) {
    JsonWriter json;
    json.begin_array();
    for (const DeviceInfo& d : devices) {
      const std::string reason = unavailable_reason(d.device);
      json.begin_object()
          .member("id", d.id)
          .member("name", d.name)
          .member("priority", d.priority)
          .member("available", reason.empty());
      if (reason.empty())
        json.member("backend", backend_for(d.device)->name())
            .member("about", backend_for(d.device)->describe(d.device));
      else
        json.member("reason", reason);
      json.end_object();
    }
    out.write(json.end_array().take() + "\n");
  } else {
    out.write("in order of preference:\n");
    for (const DeviceInfo& d : devices) {
      const std::string reason = unavailable_reason(d.device);
      char line[64];
      std::snprintf(line, sizeof line, "  %-9s %-12s ", std::string(d.id).c_str(), std::string(d.name).c_str());
      std::string state = reason.empty() ? concat_text("available, backend ", backend_for(d.device)->name()) : reason;
      if (const std::string about = reason.empty() ? backend_for(d.device)->describe(d.device) : ""; !about.empty())
        state += concat_text(": ", about);
      if (reason.empty() && d.device == Device::Cpu) state += concat_text(", ", available_cpus(), " threads");
      out.write(concat_text(line, state, "\n"));
    }
  }
  out.close();
}

}  // namespace

void register_devices(CommandLine& line) {
  struct Args {
    std::string format = "text", output;
    bool environment = false, options = false, dtypes = false;
  };
  auto args = std::make_shared<Args>();
  const Command cmd = line.add_command("devices", "List devices and whether they can be used here");
  const Argument format =
      cmd.add_option("--format", args->format, "Format of the output").one_of({"text", "json"}).show_default();
  const Argument environment =
      cmd.add_flag("--env", args->environment, "The environment variables rlx reads, instead of the devices");
  const Argument options =
      cmd.add_flag("--options", args->options,
                   "What sessions on each device take as options (Session(device, {{NAME, VALUE}}); "
                   "device_options in Python), instead of the devices")
          .excludes(environment);
  const Argument dtypes =
      cmd.add_flag("--dtypes", args->dtypes, "Which op runs in which dtype on which device, as a page: docs/devices.md")
          .excludes(format)
          .excludes(environment)
          .excludes(options);
  cmd.add_option("-o,--output", args->output, "File for --dtypes instead of the standard output")
      .type_name("FILE")
      .needs(dtypes);
  cmd.callback([args] {
    if (!args->dtypes)
      return (args->environment ? list_environment
              : args->options   ? list_options
                                : list_devices)(args->format == "json");
    Output out(args->output);
    out.write(devices_page());
    out.close();
  });
}

}  // namespace rlx::cli
