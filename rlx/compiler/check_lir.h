// Checks of a planned program that comes from outside.
#pragma once

#include <cstdint>
#include <span>

#include "rlx/device/target.h"
#include "rlx/ir/module.h"

namespace rlx {

/// Throws the error of a planned program that is not valid, not planned for `target` and the devices `others`, or whose
/// plan is not correct. No field of the plan is trusted.
void check_lir(const LirModule& lir, const Target& target, std::span<const DeviceId> others);

/// The highest device number in a plan, those of its bodies and partitions among them.
std::uint32_t last_device(const LirBufferPlan& plan);

}  // namespace rlx
