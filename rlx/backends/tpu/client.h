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
  /// `settings` are for the plug-in: "NAME=VALUE,..". Throws the plug-in's error, or InvalidArgument for malformed
  /// text.
  Client(std::shared_ptr<const Library> library, std::string_view settings);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Library& library() const { return *library_; }
  abi::Client* handle() const { return handle_; }
  /// "cpu" or "tpu"; and the version text of the plug-in.
  const std::string& platform() const { return platform_; }
  const std::string& version() const { return version_; }
  /// The kind of the first device, "TPU v5 lite"; empty if the plug-in does not report it.
  const std::string& device_kind() const { return kind_; }
  /// True for a plug-in that runs on the CPU: it is meant for tests.
  bool is_cpu() const { return platform_ == "cpu"; }
  std::span<abi::Device* const> devices() const { return devices_; }
  /// A readable text: platform, version and plug-in, and whether it is a CPU.
  std::string text() const;
  /// True once one of its devices failed permanently. Clients opened later are new ones.
  bool lost() const { return lost_ || library_->forked(); }
  void lose() const { lost_ = true; }

 private:
  std::shared_ptr<const Library> library_;
  abi::Client* handle_ = nullptr;
  std::string platform_, version_, kind_;
  std::vector<abi::Device*> devices_;
  mutable std::atomic<bool> lost_{false};
};

/// The client for the plug-in and settings of the options. A process has one; it is made at the first call and again
/// after it was lost. Throws as `find_library` and Client do.
std::shared_ptr<const Client> client_for(const DeviceOptions& options);
/// The same client if it exists, else null.
std::shared_ptr<const Client> known_client(const DeviceOptions& options);

}  // namespace rlx::tpu
