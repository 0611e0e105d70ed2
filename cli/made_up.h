// Generated inputs and weights for programs that are only timed, and the limits of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/device/backend.h"
#include "rlx/tensor/tensor.h"

namespace rlx::cli {

/// Values for a leaf that no file gives, the same in every run: floats in [-1, 1), for params of two axes and more
/// divided by the root of the first extent, so that matmuls keep the scale; integers 0 and 1, which may be indices.
Tensor made_up_values(const Shape& shape, bool param, std::uint64_t seed);

/// The limits of a device on one thread, measured now; all 0 if its backend cannot measure them.
MachineLimits one_thread_limits(Device device, const std::string& isa = {});

}  // namespace rlx::cli
