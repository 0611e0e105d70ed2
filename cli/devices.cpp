// `rlx devices`: every device rlx knows, whether this build and machine can use it, and why not; the environment
// variables that change what runs.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "rlx/driver/registry.h"
#include "rlx/driver/thread_pool.h"
#include "rlx/formats/json.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"

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

void list_devices(bool json_format) {
  std::vector<DeviceInfo> devices(all_devices().begin(), all_devices().end());
  std::sort(devices.begin(), devices.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.priority < b.priority; });
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
        json.member("backend", backend_for(d.device)->name());
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
      if (reason.empty() && d.device == Device::Cpu) state += concat_text(", ", available_cpus(), " threads");
      out.write(concat_text(line, state, "\n"));
    }
  }
  out.close();
}

}  // namespace

void register_devices(CLI::App& app) {
  auto format = std::make_shared<std::string>("text");
  CLI::App* cmd = app.add_subcommand("devices", "List devices and whether they can be used here");
  cmd->add_option("--format", *format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  auto environment = std::make_shared<bool>(false);
  cmd->add_flag("--env", *environment, "the environment variables rlx reads, instead of the devices");
  cmd->callback([format, environment] { (*environment ? list_environment : list_devices)(*format == "json"); });
}

}  // namespace rlx::cli
