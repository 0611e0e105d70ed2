// Finds adapters, once for each kind of device.
#include "rlx/backends/wgpu/adapters.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <tuple>

#include "rlx/backends/wgpu/library.h"
#include "rlx/base/environment.h"
#include "rlx/base/forks.h"

namespace rlx::wgpu {
namespace {

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

std::string_view backend_name(abi::BackendType b) {
  switch (b) {
    case abi::BackendType::D3d12: return "DirectX 12";
    case abi::BackendType::Metal: return "Metal";
    case abi::BackendType::Vulkan: return "Vulkan";
    case abi::BackendType::OpenGl: return "OpenGL";
    case abi::BackendType::OpenGlEs: return "OpenGL ES";
    default: return "unknown interface";
  }
}

// Hardware ranks before software, then better interfaces before others.
int rank(const AdapterFacts& a) {
  constexpr abi::BackendType order[] = {abi::BackendType::Metal, abi::BackendType::D3d12, abi::BackendType::Vulkan};
  const auto* at = std::find(std::begin(order), std::end(order), a.backend);
  const int type = a.type == abi::AdapterType::DiscreteGpu     ? 0
                   : a.type == abi::AdapterType::IntegratedGpu ? 1
                   : a.software()                              ? 3
                                                               : 2;
  return type * 8 + static_cast<int>(at - std::begin(order));
}

// The interfaces through which a kind may be reached.
abi::Flags backends_of(Device kind) {
  switch (kind) {
    case Device::Vulkan: return abi::backends::kVulkan;
    case Device::OpenGl: return abi::backends::kGl;
    case Device::DirectX: return abi::backends::kDx12;
    default: return abi::backends::kAll;
  }
}

std::string drivers_needed(Device kind) {
  switch (kind) {
    case Device::Vulkan:
      return "no Vulkan driver was found (Debian: libvulkan1, and mesa-vulkan-drivers or the vendor's)";
    case Device::DirectX: return "no driver of DirectX 12 was found";
    case Device::OpenGl:
      return "no OpenGL 4.3 or OpenGL ES 3.1 driver was found through EGL (Debian: libegl1 libgl1-mesa-dri)";
    default: return "no driver of Vulkan or OpenGL was found (Debian: libvulkan1 mesa-vulkan-drivers, or the vendor's)";
  }
}

AdapterFacts facts_of(const abi::Api& api, abi::Adapter handle) {
  AdapterFacts a;
  a.handle = handle;
  abi::AdapterInfo info;
  (void)api.AdapterGetInfo(handle, &info);
  a.name = abi::text(info.device), a.driver = abi::text(info.description);
  a.backend = info.backend, a.type = info.type;
  api.AdapterInfoFreeMembers(info);
  (void)api.AdapterGetLimits(handle, &a.limits);
  a.limits.next = nullptr;
  a.timestamps = api.AdapterHasFeature(handle, abi::Feature::TimestampQuery) != 0;
  return a;
}

Adapters find(Device kind, const std::string& wanted) {
#ifndef _WIN32
  if (kind == Device::DirectX) return {nullptr, {}, "DirectX 12 exists on Windows only"};
#endif
  const Result<const abi::Api*> opened = library();
  if (!opened) return {nullptr, {}, concat_text(opened.error().message, " (", opened.error().hint, ")")};
  return find_adapters(**opened, kind, wanted);
}

}  // namespace

std::string AdapterFacts::text() const {
  return concat_text(name, ", ", backend_name(backend), driver.empty() ? "" : ", ", driver,
                     software() ? ", software" : "");
}

Adapters find_adapters(const abi::Api& api, Device kind, std::string_view wanted) {
  Adapters out;
  out.api = &api;
  abi::InstanceExtras extras;
  extras.backends = backends_of(kind);
  abi::InstanceDescriptor descriptor;
  descriptor.next = &extras.chain;
  const abi::Instance instance = api.CreateInstance(&descriptor);  // kept, as its adapters are kept
  if (!instance) {
    out.reason = "wgpu-native creates no instance";
    return out;
  }
  std::vector<abi::Adapter> handles(api.InstanceEnumerateAdapters(instance, nullptr, nullptr));
  if (!handles.empty()) handles.resize(api.InstanceEnumerateAdapters(instance, nullptr, handles.data()));
  const std::string name = lower(std::string(wanted));
  std::string others;
  for (abi::Adapter handle : handles) {
    AdapterFacts a = facts_of(api, handle);
    if (lower(a.text()).find(name) != std::string::npos) {
      out.list.push_back(std::move(a));
      continue;
    }
    others += concat_text(others.empty() ? "" : "; ", a.text());
    api.AdapterRelease(handle);
  }
  std::stable_sort(out.list.begin(), out.list.end(),
                   [](const AdapterFacts& a, const AdapterFacts& b) { return rank(a) < rank(b); });
  if (out.list.empty())
    out.reason = others.empty()
                     ? drivers_needed(kind)
                     : concat_text("RLX_GPU_ADAPTER = '", wanted, "' matches no adapter; the adapters are: ", others);
  return out;
}

const Adapters& adapters_of(Device kind) {
  struct Entry {
    std::once_flag once;
    Adapters adapters;
  };
  using Key = std::tuple<Device, std::string, std::string, int>;
  static std::mutex mutex;
  static auto& entries = *new std::map<Key, Entry>;  // never removed, as devices refer to the entries
  const std::string wanted = env_get("RLX_GPU_ADAPTER").value_or("");
  Entry& e = [&]() -> Entry& {
    std::lock_guard lock(mutex);
    return entries[Key(kind, env_get("RLX_WGPU_LIB").value_or(""), wanted, fork_count())];
  }();
  std::call_once(e.once, [&] { e.adapters = find(kind, wanted); });
  return e.adapters;
}

bool software_allowed() { return env_flag("RLX_GPU_ALLOW_SOFTWARE"); }

abi::Limits default_limits() {
  abi::Limits l;
  l.bind_groups = 4;
  l.storage_buffers_per_stage = 8;
  l.uniform_buffer_binding_size = 64 * 1024;
  l.storage_buffer_binding_size = std::uint64_t{128} << 20;
  l.uniform_buffer_offset_alignment = l.storage_buffer_offset_alignment = 256;
  l.buffer_size = std::uint64_t{256} << 20;
  l.workgroup_storage_size = 16384;
  l.invocations_per_workgroup = l.workgroup_size_x = l.workgroup_size_y = 256;
  l.workgroup_size_z = 64;
  l.workgroups_per_dimension = 65535;
  return l;
}

}  // namespace rlx::wgpu
