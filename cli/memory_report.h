// What the memory of a device is used for, for --memory.
#pragma once

#include <cstddef>

#include "rlx/device/open_device.h"

namespace rlx::cli {

inline constexpr const char* kMemoryFlag =
    "say on the standard error what the memory of the device is used for, after the work";

/// Says on the standard error what is in use, by use. Where kernels read weights in memory of the host, the device does
/// not count them: `host_weights` are their bytes.
void report_memory(const OpenDevice& device, std::size_t host_weights);
/// The same for every device of a kind that is open.
void report_memory(Device kind, std::size_t host_weights);

}  // namespace rlx::cli
