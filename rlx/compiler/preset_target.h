// Targets of devices by their documented claims: what compiles ask where no backend of the device is built in.
#pragma once

#include <memory>

#include "rlx/device/target.h"

namespace rlx {

/// What the documents say of a device: op kinds, memory model, alignments. Kinds alone decide there; the rows of a
/// backend, once there is one, know more.
std::shared_ptr<const Target> preset_target(Device device);
/// The target of the device's backend, or, where this build has none, the preset.
std::shared_ptr<const Target> target_or_preset(Device device);

}  // namespace rlx
