// Clients stay open until the process ends: a plug-in takes a second to make one, and an accelerator belongs to one
// process.
#include "rlx/backends/tpu/client.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

namespace rlx::tpu {

namespace {

// Parses "cpu_device_count=2,..". Integers and true or false become typed values, all else is text.
std::vector<abi::NamedValue> named_values(std::string_view settings) {
  std::vector<abi::NamedValue> out;
  while (!settings.empty()) {
    const std::string_view one = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(one.size() + 1, settings.size()));
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("option 'client' of device tpu: '", one, "' is not NAME=VALUE"),
                  "write client=NAME=VALUE,NAME=VALUE, with names that the plug-in knows");
    const std::string_view value = one.substr(equals + 1);
    abi::NamedValue v{};
    v.struct_size = sizeof v;
    v.name = one.data();
    v.name_size = equals;
    v.value_size = 1;
    const char* const end = value.data() + value.size();
    const auto is_all = [&](const std::from_chars_result& r) { return r.ec == std::errc() && r.ptr == end; };
    if (value == "true" || value == "false") {
      v.type = abi::ValueKind::Bool;
      v.bool_value = value == "true";
    } else if (is_all(std::from_chars(value.data(), end, v.int64_value))) {
      v.type = abi::ValueKind::Int64;
    } else if (is_all(std::from_chars(value.data(), end, v.float_value))) {
      v.type = abi::ValueKind::Float;
    } else {
      v.type = abi::ValueKind::Text;
      v.string_value = value.data();
      v.value_size = value.size();
    }
    out.push_back(v);
  }
  return out;
}

}  // namespace

Client::Client(std::shared_ptr<const Library> library, std::string_view settings) : library_(std::move(library)) {
  const std::vector<abi::NamedValue> values = named_values(settings);
  auto create = abi::arguments<abi::ClientCreate>();
  create.create_options = values.data();
  create.num_options = values.size();
  library_->call({}, create);
  handle_ = create.client;
  if (!handle_) library_->broke({}, "PJRT_Client_Create", "returned no client");
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
    if (!devices_.empty() && library_->has<abi::DeviceGetDescription>() &&
        library_->has<abi::DeviceDescriptionKind>()) {
      auto description = abi::arguments<abi::DeviceGetDescription>();
      description.device = devices_.front();
      library_->drop(library_->attempt({}, description));
      auto kind = abi::arguments<abi::DeviceDescriptionKind>();
      kind.device_description = description.device_description;
      if (kind.device_description) library_->drop(library_->attempt({}, kind));
      if (kind.device_kind) kind_.assign(kind.device_kind, kind.device_kind_size);
    }
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
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Client>> known;  // by requested path and settings
};
std::string asked_settings(const DeviceOptions& options) {
  const auto it = options.find("client");
  return it == options.end() ? std::string() : it->second;
}
// Never destroyed: static objects of the plug-ins may be destroyed before.
Clients& clients() {
  static auto& c = *new Clients;
  return c;
}

}  // namespace

std::shared_ptr<const Client> client_for(const DeviceOptions& options) {
  const std::string asked = asked_plugin(options);
  std::lock_guard lock(clients().mutex);
  const std::string settings = asked_settings(options);
  std::shared_ptr<const Client>& known = clients().known[{asked, settings}];
  if (known && known->library().forked()) known->library().throw_forked({});
  if (!known || known->lost()) {
    known = nullptr;  // some plug-ins must close the device before they can open it again
    known = std::make_shared<const Client>(find_library(asked), settings);
  }
  return known;
}

std::shared_ptr<const Client> known_client(const DeviceOptions& options) {
  const std::string asked = asked_plugin(options);
  std::lock_guard lock(clients().mutex);
  const auto it = clients().known.find({asked, asked_settings(options)});
  return it == clients().known.end() ? nullptr : it->second;
}

}  // namespace rlx::tpu
