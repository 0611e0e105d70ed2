// The host as a device: kernels and callers share its memory, and work is done when submit returns.
#pragma once

#include <memory>

#include "rlx/device/open_device.h"

namespace rlx {

/// The host's memory under this id, for backends whose kernels run on the submitting thread.
std::shared_ptr<OpenDevice> open_host_device(DeviceId id);

/// True when the bytes of `buffer` were zero at allocation. State buffers of the host are, and allocating them touches
/// no page.
bool allocated_as_zeros(const Buffer& buffer);

}  // namespace rlx
