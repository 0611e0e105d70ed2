// What compiles for a kind of device ask: the rows of generated kernels answer.
#pragma once

#include <memory>

#include "rlx/codegen/kernel.h"
#include "rlx/device/target.h"

namespace rlx::wgpu {

/// The target of a kind; no device need be there.
std::shared_ptr<const Target> target_of(Device kind);

/// What texts for a kind are written for: its first adapter's.
codegen::Dialect dialect_of(Device kind);

}  // namespace rlx::wgpu
