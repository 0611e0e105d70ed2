// The build report.
#include "rlx/runtime/build_info.h"

#include "rlx/base/environment.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/error.h"

namespace rlx {
namespace {

void add(std::string& list, std::string_view name, std::string_view separator) {
  if (!list.empty()) list += separator;
  list += name;
}

// The name of the cpu backend's target, which includes the instruction set and the number of threads.
std::string cpu_in_use() {
  const auto backend = backend_for(Device::Cpu);
  if (!backend) return "none: this build has no cpu backend";
  try {
    BackendOptions options;
    if (const auto isa = env_get("RLX_CPU_ISA")) options.isa = *isa;
    if (const auto threads = env_int("RLX_THREADS")) options.threads = *threads;
    return std::string(backend->target(options)->name());
  } catch (const Error& e) {
    const Diagnostic& d = e.diagnostic();
    return d.hint.empty() ? d.message : concat_text(d.message, ": ", d.hint);
  }
}

}  // namespace

std::string build_report() {
  const BuildInfo& info = build_info();
  std::string sets, backends, devices;
  for (const std::string_view set : info.instruction_sets) add(sets, set, " ");
  for (const BackendEntry* entry : builtin_backends()) add(backends, entry->name, " ");
  for (const Device device : registered_devices()) add(devices, device_info(device).name, " ");
  return concat_text("rlx ", info.version, "\n  compiler     ", info.compiler, ", ", info.build_type,
                     "\n  cpu kernels  ", sets, " (RLX_ISA=", info.isa, ")\n  in use       ", cpu_in_use(),
                     "\n  backends     ", backends, "\n  devices      ", devices, "\n  models       ",
                     info.models ? "yes" : "no");
}

}  // namespace rlx
