// Backends of other repositories, through the C table in rlx/device/plugin.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/device/plugin.h"

namespace rlx {

/// Identifies a plug-in.
struct Plugin {
  std::string name, where;  // "acme", "/opt/libacme.so"
  std::vector<Device> devices;
};

/// Makes the plug-in serve its devices from now on, as `register_backend` does. The table must live as long as the
/// process. Unsupported names the plug-in and the defect of its table: another version, truncated, a null member.
Plugin register_plugin(const rlx_plugin* table);
/// The same for the table of a shared library, which stays loaded. NotFound when it cannot be loaded or exports no
/// table. A library that is already loaded is not loaded again.
Plugin load_plugin(const std::string& path);

}  // namespace rlx
