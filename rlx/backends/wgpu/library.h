// Opening wgpu-native at run time.
#pragma once

#include <span>
#include <string>

#include "rlx/backends/wgpu/abi.h"
#include "rlx/error.h"

namespace rlx::wgpu {

/// The functions of wgpu-native, loaded once and kept until the process ends. The library is searched at the current
/// RLX_WGPU_LIB, or else at the path configured by the build, or by name. DeviceUnavailable lists the attempts and says
/// how to get the library.
Result<const abi::Api*> library();

/// The functions of the first of `paths` that can be opened. DeviceUnavailable if that library has another version or
/// lacks a function, or if none can be opened.
Result<abi::Api> open_library(std::span<const std::string> paths);

}  // namespace rlx::wgpu
