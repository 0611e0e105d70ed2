// The targets of device kinds, answered by the kernel entries of generated kernels.
#pragma once

#include <memory>

#include "rlx/codegen/kernel.h"
#include "rlx/device/target.h"

namespace rlx::wgpu {

/// The target of a kind. It needs no device.
std::shared_ptr<const Target> target_of(Device kind);

/// The dialect of kernel texts for a kind: that of its first adapter.
codegen::Dialect dialect_of(Device kind);

}  // namespace rlx::wgpu
