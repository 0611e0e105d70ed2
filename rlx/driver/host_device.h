// The host as a device: memory that kernels and callers share, and work that is done when it is submitted.
#pragma once

#include <memory>

#include "rlx/driver/open_device.h"

namespace rlx {

/// The host's memory under this id, for backends whose kernels run on the thread that submits.
std::shared_ptr<OpenDevice> open_host_device(DeviceId id);

}  // namespace rlx
