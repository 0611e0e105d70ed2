// Opening wgpu-native at run time.
#pragma once

#include <span>
#include <string>

#include "rlx/backends/wgpu/abi.h"
#include "rlx/error.h"

namespace rlx::wgpu {

/// The functions of wgpu-native, opened once and kept for the life of the process: from RLX_WGPU_LIB as it is now, or
/// else from where the build was told, or by name. DeviceUnavailable says what was tried and how to get it.
Result<const abi::Api*> library();

/// The functions of the first of `paths` that opens; DeviceUnavailable for a library of another version, or without
/// some function, or when none opens.
Result<abi::Api> open_library(std::span<const std::string> paths);

}  // namespace rlx::wgpu
