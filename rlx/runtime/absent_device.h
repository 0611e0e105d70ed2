// Devices without a backend in this build: those of plug-ins, and devices that programs are compiled for without
// running. Internal.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/device/backend.h"

namespace rlx {

/// A backend for compiles only. Its target is that of the device's own backend, or the documented preset. Binding its
/// programs throws DeviceUnavailable with the reason why the device is absent.
std::shared_ptr<const Backend> absent_backend(Device device);
/// Throws DeviceUnavailable naming the graph when `backend` is an absent one. Its programs are plans only.
void require_present(const Backend& backend, std::string_view graph);

/// Loads the plug-ins that RLX_PLUGINS lists, once each. Returns what could not be loaded, or "".
std::string load_listed_plugins();

}  // namespace rlx
