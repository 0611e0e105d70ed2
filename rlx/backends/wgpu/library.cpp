// Searches wgpu-native and checks its version before anything else is called.
#include "rlx/backends/wgpu/library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <vector>

#include "rlx/base/environment.h"
#include "rlx/base/forks.h"

namespace rlx::wgpu {
namespace {

constexpr const char* kWayToGetIt =
    "get it with `pip download --no-deps wgpu==0.32.0`, unpack wgpu/resources of the wheel, and set RLX_WGPU_LIB to "
    "its "
    "libwgpu_native-release.so";

Diagnostic unavailable(std::string message) {
  return {ErrorCode::DeviceUnavailable, std::move(message), {}, kWayToGetIt};
}

Result<const abi::Api*> opened(const std::string& wanted) {
  std::vector<std::string> paths;
  if (!wanted.empty()) {
    paths.push_back(wanted);
  } else {
#ifdef RLX_WGPU_DIR
    paths.emplace_back(RLX_WGPU_DIR "/libwgpu_native-release.so");
#endif
    paths.emplace_back("libwgpu_native-release.so");
    paths.emplace_back("libwgpu_native.so");
  }
  Result<abi::Api> api = open_library(paths);
  if (!api) return api.error();
  return new abi::Api(*api);  // never closed: threads of drivers may run its code until the process ends
}

}  // namespace

Result<abi::Api> open_library(std::span<const std::string> paths) {
  void* handle = nullptr;
  std::string path, tried;
  for (const std::string& p : paths) {
    handle = ::dlopen(p.c_str(), RTLD_NOW | RTLD_LOCAL);
    path = p;
    if (handle) break;
    const char* why = ::dlerror();
    tried += concat_text(tried.empty() ? "" : "; ", why ? std::string_view(why) : std::string_view(p));
  }
  if (!handle) return unavailable(concat_text("the library wgpu-native cannot be opened (", tried, ")"));
  abi::Api api;
  std::string missing;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(handle, name));
    if (!function && missing.empty()) missing = name;
  };
  // The version is checked first, as another version may lack functions.
  find(api.GetVersion, "wgpuGetVersion");
  if (!api.GetVersion) return unavailable(concat_text(path, " is not wgpu-native: it has no function wgpuGetVersion"));
  if (const std::uint32_t v = api.GetVersion(); v >> 24 != abi::kMajorVersion)
    return unavailable(concat_text(path, " is wgpu-native ", v >> 24, ".", v >> 16 & 255, ".", v >> 8 & 255, ".",
                                   v & 255, ", but rlx needs version ", abi::kMajorVersion));
#define RLX_WGPU_FIND(name, ...) find(api.name, "wgpu" #name);
  RLX_WGPU_FUNCTIONS(RLX_WGPU_FIND)
#undef RLX_WGPU_FIND
  if (!missing.empty()) return unavailable(concat_text(path, " has no function ", missing));
  return api;
}

Result<const abi::Api*> library() {
  static std::mutex mutex;
  struct Known {
    Result<const abi::Api*> api;
    int forks;
  };
  static auto& known = *new std::map<std::string, Known>;  // by the value of RLX_WGPU_LIB
  std::lock_guard lock(mutex);
  const std::string wanted = env_get("RLX_WGPU_LIB").value_or("");
  auto it = known.find(wanted);
  if (it == known.end()) it = known.emplace(wanted, Known{opened(wanted), fork_count()}).first;
  if (it->second.api && it->second.forks != fork_count())
    return Diagnostic{
        ErrorCode::DeviceUnavailable, concat_text("the library wgpu-native ", kForkedAway), {}, std::string(kForkHint)};
  return it->second.api;
}

}  // namespace rlx::wgpu
