// Lookup of backends; registered ones win over built-in ones.
#include "rlx/driver/registry.h"

#include <array>
#include <mutex>

namespace rlx {
namespace {

struct Registry {
  std::mutex mutex;
  std::array<std::shared_ptr<const Backend>, kNumDevices> registered;
};
Registry& registry() {
  static Registry r;
  return r;
}

// Built-in backends live as long as the process: no ownership.
std::shared_ptr<const Backend> unowned(const Backend& b) { return {std::shared_ptr<const Backend>(), &b}; }

std::shared_ptr<const Backend> builtin_for(Device device) {
  for (const BackendEntry* entry : builtin_backends())
    for (Device d : entry->devices)
      if (d == device) return unowned(entry->get());
  return nullptr;
}

}  // namespace

void register_backend(Device device, std::shared_ptr<const Backend> backend) {
  (void)device_info(device);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.registered[static_cast<std::size_t>(device)] = std::move(backend);
}

std::shared_ptr<const Backend> backend_for(Device device) {
  (void)device_info(device);
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    if (auto b = r.registered[static_cast<std::size_t>(device)]) return b;
  }
  return builtin_for(device);
}

std::shared_ptr<const Backend> backend_by_name(std::string_view name) {
  for (const BackendEntry* entry : builtin_backends())
    if (entry->name == name) return unowned(entry->get());
  for (const DeviceInfo& d : all_devices())
    if (auto b = backend_for(d.device); b && b->name() == name) return b;
  return nullptr;
}

std::vector<Device> registered_devices() {
  std::vector<Device> out;
  for (const DeviceInfo& d : all_devices())
    if (backend_for(d.device)) out.push_back(d.device);
  return out;
}

}  // namespace rlx
