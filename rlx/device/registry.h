// The backends of this process, by device and by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/device/backend.h"

namespace rlx {

/// What a backend folder exports: its name, the devices it serves, and its object for each device. The object may be
/// the same for all devices. A backend without devices returns its object for any device.
struct BackendEntry {
  std::string_view name;
  std::span<const Device> devices;  // empty: reached by name only ("reference")
  const Backend& (*get)(Device);
};

/// The backends of this build (generated from the enabled folders).
std::span<const BackendEntry* const> builtin_backends();

/// Makes `backend` serve `device` from now on, replacing a built-in one. Null restores the built-in one.
void register_backend(Device device, std::shared_ptr<const Backend> backend);
/// The backend of `device`, or none when this build has none.
std::shared_ptr<const Backend> backend_for(Device device);
/// The same, but throws DeviceUnavailable with the reason when this build has none.
std::shared_ptr<const Backend> require_backend(Device device);
/// How many devices of the kind are usable now, and why when there are none.
Presence probe_device(Device kind);
/// The device `id` of `backend`. It is opened on the first call with these options (those that act at open), and shared
/// until the last owner releases it. DeviceUnavailable names the device, and the reason or the number of devices.
/// NotFound for an option that the backend does not have; its hint is the option of the most similar name.
std::shared_ptr<OpenDevice> open_device(const std::shared_ptr<const Backend>& backend, DeviceId id,
                                        const DeviceOptions& options = {});
/// The devices of a kind that are open now.
std::vector<std::shared_ptr<OpenDevice>> opened_devices(Device kind);
/// The backend called `name` ("cpu", "reference"), or none.
std::shared_ptr<const Backend> backend_by_name(std::string_view name);
/// Devices that have a backend, in declaration order.
std::vector<Device> registered_devices();

}  // namespace rlx
