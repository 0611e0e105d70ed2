// Lookup of backends. Registered backends take precedence over built-in ones.
#include "rlx/device/registry.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "rlx/base/forks.h"

namespace rlx {
namespace {

using OpenKey = std::tuple<const Backend*, Device, int, DeviceOptions>;

/// A device that a thread of this process is opening. No lock is held meanwhile, because the backend may use rlx for
/// it, including other devices.
struct Opening {
  const OpenKey& key;
  std::thread::id by;
  int forks = fork_count();
};

struct Registry {
  ProcessMutex mutex;
  std::array<std::shared_ptr<const Backend>, kNumDevices> registered;
  ProcessMutex open_mutex;  // guards the members below
  std::map<OpenKey, std::weak_ptr<OpenDevice>> open;
  std::list<Opening> opening;                         // each device once
  std::map<std::thread::id, const OpenKey*> waiting;  // for a device that another thread opens

  const Opening* opening_of(const OpenKey& key) const {
    const auto it = std::find_if(opening.begin(), opening.end(), [&](const Opening& o) {
      return o.key == key && o.forks == fork_count();  // no thread of a parent process will end it
    });
    return it == opening.end() ? nullptr : &*it;
  }
  /// True when the end of `o` waits for this thread.
  bool waits_for_us(const Opening* o) const {
    while (o && o->by != std::this_thread::get_id()) {
      const auto next = waiting.find(o->by);
      o = next == waiting.end() ? nullptr : opening_of(*next->second);
    }
    return o != nullptr;
  }
};
Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed: threads may outlive exit()
  return r;
}

// Built-in backends live as long as the process, so the pointer owns nothing.
std::shared_ptr<const Backend> unowned(const Backend& b) { return {std::shared_ptr<const Backend>(), &b}; }

std::shared_ptr<const Backend> builtin_for(Device device) {
  for (const BackendEntry* entry : builtin_backends())
    for (Device d : entry->devices)
      if (d == device) return unowned(entry->get(d));
  return nullptr;
}

}  // namespace

void register_backend(Device device, std::shared_ptr<const Backend> backend) {
  (void)device_info(device);
  Registry& r = registry();
  std::scoped_lock lock(r.mutex, r.open_mutex);
  std::shared_ptr<const Backend>& now = r.registered[static_cast<std::size_t>(device)];
  // A later backend may have the same address, so the devices of this one are removed.
  std::erase_if(r.open, [&](const auto& entry) { return std::get<0>(entry.first) == now.get(); });
  now = std::move(backend);
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

namespace {
std::string why_no_backend(Device device) {
  const DeviceInfo& info = device_info(device);
  if (info.build_option.empty()) return concat_text("this version has no ", info.name, " backend");
  return concat_text("this build leaves its backend out (configure with -D", info.build_option, "=ON)");
}
[[noreturn]] void throw_unavailable(Device device, const std::string& why) {
  throw Error(ErrorCode::DeviceUnavailable,
              concat_text("device ", device_info(device).name, " is not available: ", why),
              "pick one of rlx::available_devices()");
}
}  // namespace

std::shared_ptr<const Backend> require_backend(Device device) {
  std::shared_ptr<const Backend> backend = backend_for(device);
  if (!backend) throw_unavailable(device, why_no_backend(device));
  return backend;
}

Presence probe_device(Device kind) {
  const std::shared_ptr<const Backend> backend = backend_for(kind);
  return backend ? backend->probe(kind) : Presence{0, why_no_backend(kind)};
}

std::vector<std::shared_ptr<OpenDevice>> opened_devices(Device kind) {
  Registry& r = registry();
  std::lock_guard lock(r.open_mutex);
  std::vector<std::shared_ptr<OpenDevice>> out;
  for (const auto& [key, device] : r.open)
    if (auto there = device.lock(); there && std::get<1>(key) == kind) out.push_back(std::move(there));
  return out;
}

namespace {
// Returns the options that act at open. Checks that the backend takes all options.
DeviceOptions options_at_open(const Backend& backend, DeviceId id, const DeviceOptions& options) {
  DeviceOptions out;
  const std::span<const DeviceOptionInfo> infos = backend.option_infos();
  for (const auto& [key, value] : options) {
    const auto info = std::find_if(infos.begin(), infos.end(), [&k = key](const auto& i) { return i.name == k; });
    if (info == infos.end()) {
      std::vector<std::string> names;
      for (const DeviceOptionInfo& i : infos) names.emplace_back(i.name);
      throw Error(
          ErrorCode::NotFound,
          concat_text("device ", device_text(id), ", backend '", backend.name(), "', takes no option '", key, "'"),
          did_you_mean(
              key, names,
              names.empty() ? std::string("it has no options") : concat_text("there is ", quoted_names(names))));
    }
    if (info->at_open) out.emplace(key, value);
  }
  return out;
}
}  // namespace

std::shared_ptr<OpenDevice> open_device(const std::shared_ptr<const Backend>& backend, DeviceId id,
                                        const DeviceOptions& options) {
  if (!backend)
    throw Error(ErrorCode::InvalidArgument, "open_device: no backend was given (a null pointer)",
                "get one from backend_for or require_backend");
  const DeviceOptions at_open = options_at_open(*backend, id, options);
  const Presence there = backend->probe_with(id.kind, at_open);
  if (there.count == 0) throw_unavailable(id.kind, there.reason);
  if (id.ordinal < 0 || id.ordinal >= there.count)
    throw Error(ErrorCode::DeviceUnavailable,
                concat_text("there is no device ", device_text(id), ": the machine has ", there.count, " of this kind"),
                concat_text("ordinals count from 0 to ", there.count - 1));
  const OpenKey key{backend.get(), id.kind, id.ordinal, at_open};
  Registry& r = registry();
  std::unique_lock lock(r.open_mutex);
  while (const Opening* other = r.opening_of(key)) {
    if (r.waits_for_us(other))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("device ", device_text(id), ", backend '", backend->name(),
                              "', is requested again by the code that is opening it"),
                  "a backend may use other devices to open one, but not the same one");
    r.waiting[std::this_thread::get_id()] = &key;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
    r.waiting.erase(std::this_thread::get_id());
  }
  // Everything that allocates runs before the device is opened.
  if (auto already = r.open[key].lock(); already && !already->lost()) return already;
  const auto ours = r.opening.insert(r.opening.end(), Opening{key, std::this_thread::get_id()});
  lock.unlock();
  std::shared_ptr<OpenDevice> fresh;
  const auto end = [&] {
    lock.lock();
    r.opening.erase(ours);
  };
  try {
    fresh = backend->open(id, at_open);
  } catch (...) {
    end();
    throw;
  }
  end();
  // The device is not shared when its backend was replaced meanwhile.
  if (const auto known = r.open.find(key); known != r.open.end()) known->second = fresh;
  return fresh;
}

std::shared_ptr<const Backend> backend_by_name(std::string_view name) {
  for (const BackendEntry* entry : builtin_backends())
    if (entry->name == name) return unowned(entry->get(entry->devices.empty() ? Device::Cpu : entry->devices.front()));
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
