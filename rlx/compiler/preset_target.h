// Targets of devices by their documented claims, for compiles in a build without a backend of the device.
#pragma once

#include <memory>

#include "rlx/device/target.h"

namespace rlx {

/// The documented properties of a device: op kinds, memory model, alignments. Claims there depend on op kinds alone;
/// the kernel entries of a backend are more exact.
std::shared_ptr<const Target> preset_target(Device device);
/// The target of the device's backend, or the preset when this build has no backend of the device.
std::shared_ptr<const Target> target_or_preset(Device device);

}  // namespace rlx
