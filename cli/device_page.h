// docs/devices.md: which op runs in which dtype on which device.
#pragma once

#include <string>

namespace rlx::cli {

/// The page: every op sample is tried in every dtype, and the compiler's own legalisation says what a device makes of
/// it.
std::string devices_page();

}  // namespace rlx::cli
