// The report of --memory: the use of device memory by purpose.
#pragma once

#include <cstddef>

#include "rlx/device/open_device.h"

namespace rlx::cli {

/// Prints the memory in use, by purpose, to the standard error. A device that reads weights from host memory does not
/// count them: `host_weights` are their bytes.
void report_memory(const OpenDevice& device, std::size_t host_weights);
/// The same for every device of a kind that is open.
void report_memory(Device kind, std::size_t host_weights);

}  // namespace rlx::cli
