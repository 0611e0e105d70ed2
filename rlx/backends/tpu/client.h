// A client of a plug-in: its platform and the devices that this process may use.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/backends/tpu/library.h"

namespace rlx::tpu {

class Client {
 public:
  /// `settings` are for the plug-in: "NAME=VALUE,..". Throws what it says; InvalidArgument for text of another form.
  Client(std::shared_ptr<const Library> library, std::string_view settings);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Library& library() const { return *library_; }
  abi::Client* handle() const { return handle_; }
  /// "cpu", "tpu"; and what it says of its version.
  const std::string& platform() const { return platform_; }
  const std::string& version() const { return version_; }
  /// What the first device is, "TPU v5 lite"; empty where the plug-in does not say.
  const std::string& device_kind() const { return kind_; }
  /// True for a plug-in that runs on the processor: one for tests, no accelerator.
  bool is_cpu() const { return platform_ == "cpu"; }
  std::span<abi::Device* const> devices() const { return devices_; }
  /// For people: platform, version and plug-in, and that it is a CPU where it is.
  std::string text() const;
  /// True once a device of it failed for good; clients opened later are others.
  bool lost() const { return lost_ || library_->forked(); }
  void lose() const { lost_ = true; }

 private:
  std::shared_ptr<const Library> library_;
  abi::Client* handle_ = nullptr;
  std::string platform_, version_, kind_;
  std::vector<abi::Device*> devices_;
  mutable std::atomic<bool> lost_{false};
};

/// The client of the plug-in and the settings that the options ask for: one in a process, made at the first call and
/// again once it was lost. Throws as `find_library` and Client do.
std::shared_ptr<const Client> client_for(const DeviceOptions& options);
/// The same if it was made already, else null.
std::shared_ptr<const Client> known_client(const DeviceOptions& options);

}  // namespace rlx::tpu
