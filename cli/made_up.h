// Values for programs that are run for their times alone, and the limits of the machine beside them.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/device/backend.h"
#include "rlx/tensor/tensor.h"

namespace rlx::cli {

/// Values for a leaf that no file gives, the same in every run: floats in [-1, 1), for params of two axes and more
/// divided by the root of the first extent, so that products keep their size; integers 0 and 1, which may be indices.
Tensor made_up_values(const Shape& shape, bool param, std::uint64_t seed);

/// What a device can do on one thread, measured now; all 0 where its backend cannot tell.
MachineLimits one_thread_limits(Device device, const std::string& isa = {});

}  // namespace rlx::cli
