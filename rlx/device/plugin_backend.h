// Backends of other repositories, through the table of rlx/device/plugin.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/device/plugin.h"

namespace rlx {

/// What a plug-in is.
struct Plugin {
  std::string name, where;  // "acme", "/opt/libacme.so"
  std::vector<Device> devices;
};

/// Makes the plug-in serve its devices from now on, as `register_backend` does; the table lives as long as the process.
/// Unsupported names the plug-in and what is wrong with its table: another version, cut short, a null member.
Plugin register_plugin(const rlx_plugin* table);
/// The same for the table of a shared library, which stays loaded; NotFound when it cannot be loaded or exports none.
/// A library that is loaded already is not loaded again.
Plugin load_plugin(const std::string& path);

}  // namespace rlx
