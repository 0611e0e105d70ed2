// Which device runs each node.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/device/backend.h"

namespace rlx {

/// The device that runs each node of a graph whose inputs are on device `home`. The target answers for most nodes. A
/// view has the device of its operand. A state has the device of the node that makes its new value, otherwise the first
/// of its readers' devices.
std::vector<std::uint32_t> devices_of_nodes(const Graph& g, const Target& target, std::uint32_t home);

}  // namespace rlx
