// The host as a device: memory that kernels and callers share, and work that is done when it is submitted.
#pragma once

#include <memory>

#include "rlx/device/open_device.h"

namespace rlx {

/// The host's memory under this id, for backends whose kernels run on the thread that submits.
std::shared_ptr<OpenDevice> open_host_device(DeviceId id);

/// Whether the bytes of `buffer` were zeros when it was allocated: those for states of the host are, without a page of
/// them being touched.
bool allocated_as_zeros(const Buffer& buffer);

}  // namespace rlx
