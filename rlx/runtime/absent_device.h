// Devices that this build has no backend for: those of plug-ins, and those that programs are compiled for all the same.
// Internal.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/device/backend.h"

namespace rlx {

/// A backend whose target is that of the device's own, or the documented preset, and whose programs cannot run: binding
/// them throws DeviceUnavailable, which says why the device is not there.
std::shared_ptr<const Backend> absent_backend(Device device);
/// Throws DeviceUnavailable naming the graph when `backend` is such a one: its programs are plans, all of them alike.
void require_present(const Backend& backend, std::string_view graph);

/// Loads the plug-ins that RLX_PLUGINS lists, once each; what could not be loaded, or "".
std::string load_listed_plugins();

}  // namespace rlx
