// Environment variables and their overrides.
#include "rlx/runtime/env.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>

#include "rlx/error.h"

namespace rlx {
namespace {
constexpr EnvVariable kVariables[] = {
    {"RLX_THREADS", "threads of the CPU backend (default: processors this process may use)"},
    {"RLX_CPU_ISA", "force a lower instruction set that this machine has: avx512, avx2, sse4"},
    {"RLX_WGPU_LIB", "the library wgpu-native 29 to open for the devices gpu, vulkan, opengl and webgpu"},
    {"RLX_GPU_ADAPTER", "of these devices the adapters whose name or driver has this as a part"},
    {"RLX_GPU_ALLOW_SOFTWARE", "software adapters may be the best device too, which else are used by name alone"},
    {"RLX_TPU_PLUGIN", "the PJRT plug-in of device tpu (default: LIBTPU_PATH, else libtpu.so where it is found)"},
    {"RLX_TPU_CACHE", "a folder in which programs of device tpu are kept compiled, for later starts (default: none)"},
    {"RLX_TPU_HLO_DUMP",
     "write the StableHLO text of each program of device tpu to this file, or into this folder when it ends with /"},
    {"RLX_PLUGINS",
     "backends of other projects: shared libraries with ':' between, loaded when a device is first asked for"},
    {"RLX_IR_DUMP",
     "write every stage of each compile of the process to this file, or into this folder when it ends with /"},
    {"RLX_TRACE", "write a timeline of compiles, weights, runs and steps to this file, which Perfetto opens"},
    {"RLX_FUSION_REPORT", "print what was fused and what was missed"},
    {"RLX_DISPATCH_REPORT", "print how each kind of op reaches the device"},
    {"RLX_KERNEL_DISPATCH",
     "native: kernels only, common: decompositions wherever there are some (default: prefer_native)"},
    {"RLX_VERBOSE", "both reports"},
};

struct Overrides {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> values;
};
Overrides& overrides() {
  static Overrides o;
  return o;
}
std::string key_of(std::string_view name) {
  return name.starts_with("RLX_") ? std::string(name) : concat_text("RLX_", name);
}
}  // namespace

std::span<const EnvVariable> env_variables() { return kVariables; }

std::optional<std::string> env_get(std::string_view name) {
  std::string key = key_of(name);
  {
    std::lock_guard lock(overrides().mutex);
    auto it = overrides().values.find(key);
    if (it != overrides().values.end()) return it->second;
  }
  const char* value = std::getenv(key.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

bool env_flag(std::string_view name) {
  std::string v = env_get(name).value_or("");
  std::transform(v.begin(), v.end(), v.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !(v.empty() || v == "0" || v == "false" || v == "off" || v == "no");
}

std::optional<int> env_int(std::string_view name) {
  auto v = env_get(name);
  if (!v || v->empty()) return std::nullopt;
  bool digits =
      v->size() <= 6 && std::all_of(v->begin(), v->end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  int n = digits ? std::atoi(v->c_str()) : 0;
  if (n < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(key_of(name), " = '", *v, "' is no positive number"),
                "unset it or give a number from 1 on");
  return n;
}

void env_set(std::string_view name, std::string value) {
  std::lock_guard lock(overrides().mutex);
  overrides().values.insert_or_assign(key_of(name), std::move(value));
}
void env_unset(std::string_view name) {
  std::lock_guard lock(overrides().mutex);
  overrides().values.erase(key_of(name));
}

RuntimeOverrides::RuntimeOverrides(std::string name, std::string value) : name_(key_of(name)) {
  {
    std::lock_guard lock(overrides().mutex);
    auto it = overrides().values.find(name_);
    if (it != overrides().values.end()) old_ = it->second;
  }
  env_set(name_, std::move(value));
}
RuntimeOverrides::~RuntimeOverrides() {
  if (old_)
    env_set(name_, *old_);
  else
    env_unset(name_);
}

}  // namespace rlx
