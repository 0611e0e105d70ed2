// The adversarial test device in opaque mode: a plug-in table like that of a backend in another repository. It keeps
// whole values, allocates fresh buffers, overwrites donated ones, runs late and in random order, and fails late.
#pragma once

#include <memory>

#include "rlx/device/plugin.h"
#include "tests/adversarial/adversarial_device.h"

namespace rlx::test {

/// The table. It serves devices by the options of the most recently made plug-in.
const rlx_plugin* adversarial_plugin_table();
/// Sets the options of its devices during the lifetime of the result.
std::unique_ptr<AdversarialControl> adversarial_plugin(const AdversarialOptions& options);

}  // namespace rlx::test
