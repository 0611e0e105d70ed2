// The backends of this process, by device and by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/device/backend.h"

namespace rlx {

/// What a backend folder exports: its name, the devices it serves, and its object for each of them (one object where
/// all are the same to it; for a backend without devices any is asked for).
struct BackendEntry {
  std::string_view name;
  std::span<const Device> devices;  // empty: reached by name only ("reference")
  const Backend& (*get)(Device);
};

/// The backends of this build (generated from the enabled folders).
std::span<const BackendEntry* const> builtin_backends();

/// Makes `backend` serve `device` from now on, replacing a built-in one; null brings that back.
void register_backend(Device device, std::shared_ptr<const Backend> backend);
/// The backend of `device`, or none when this build has none.
std::shared_ptr<const Backend> backend_for(Device device);
/// The same; DeviceUnavailable says why this build has none.
std::shared_ptr<const Backend> require_backend(Device device);
/// How many devices of the kind can be used now, and why none can.
Presence probe_device(Device kind);
/// The device `id` of `backend`, opened on the first call with these options (as far as they act then) and shared until
/// all let go of it. DeviceUnavailable names the device, and the reason or how many there are; NotFound the nearest
/// option to one that the backend does not take.
std::shared_ptr<OpenDevice> open_device(const std::shared_ptr<const Backend>& backend, DeviceId id,
                                        const DeviceOptions& options = {});
/// The devices of a kind that are open now.
std::vector<std::shared_ptr<OpenDevice>> opened_devices(Device kind);
/// The backend called `name` ("cpu", "reference"), or none.
std::shared_ptr<const Backend> backend_by_name(std::string_view name);
/// Devices that have a backend, in declaration order.
std::vector<Device> registered_devices();

}  // namespace rlx
