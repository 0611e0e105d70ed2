// Clients stay open until the process ends: plug-ins take a second to make one, and an accelerator is one process's.
#include "rlx/backends/tpu/client.h"

#include <map>
#include <mutex>

namespace rlx::tpu {

Client::Client(std::shared_ptr<const Library> library) : library_(std::move(library)) {
  auto create = abi::arguments<abi::ClientCreate>();
  library_->call({}, create);
  handle_ = create.client;
  if (!handle_) library_->broke({}, "PJRT_Client_Create", "gave no client");
  try {
    auto name = abi::arguments<abi::ClientPlatformName>();
    name.client = handle_;
    library_->call({}, name);
    if (name.platform_name) platform_.assign(name.platform_name, name.platform_name_size);
    auto version = abi::arguments<abi::ClientPlatformVersion>();
    version.client = handle_;
    library_->call({}, version);
    if (version.platform_version) version_.assign(version.platform_version, version.platform_version_size);
    auto devices = abi::arguments<abi::ClientAddressableDevices>();
    devices.client = handle_;
    library_->call({}, devices);
    for (std::size_t i = 0; devices.addressable_devices && i < devices.num_addressable_devices; ++i)
      if (abi::Device* d = devices.addressable_devices[i]) devices_.push_back(d);
  } catch (...) {
    auto destroy = abi::arguments<abi::ClientDestroy>();
    destroy.client = handle_;
    library_->give_back(destroy);
    throw;
  }
}

Client::~Client() {
  auto destroy = abi::arguments<abi::ClientDestroy>();
  destroy.client = handle_;
  library_->give_back(destroy);
}

std::string Client::text() const {
  const std::string first = version_.substr(0, version_.find('\n'));
  const std::string version = first.empty() || first == platform_ ? "" : concat_text(" ", first);
  return concat_text(platform_, version, is_cpu() ? " (CPU plug-in), " : ", ", devices_.size(),
                     devices_.size() == 1 ? " device" : " devices", ", PJRT ", library_->api_version(), ", ",
                     library_->path());
}

namespace {

struct Clients {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Client>> known;  // by the path that was asked for
};
// Never destroyed: the plug-ins' own static objects may be gone by then.
Clients& clients() {
  static auto& c = *new Clients;
  return c;
}

}  // namespace

std::shared_ptr<const Client> client_for(const DeviceOptions& options) {
  const std::string asked = asked_plugin(options);
  std::lock_guard lock(clients().mutex);
  std::shared_ptr<const Client>& known = clients().known[asked];
  if (!known || known->lost()) {
    known = nullptr;  // a plug-in may want the device back before it opens it again
    known = std::make_shared<const Client>(find_library(asked));
  }
  return known;
}

std::shared_ptr<const Client> known_client(const DeviceOptions& options) {
  const std::string asked = asked_plugin(options);
  std::lock_guard lock(clients().mutex);
  const auto it = clients().known.find(asked);
  return it == clients().known.end() ? nullptr : it->second;
}

}  // namespace rlx::tpu
