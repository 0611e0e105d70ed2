// The adversarial test device in opaque mode: a plug-in's table, as a backend of another repository has one. Whole
// values, fresh buffers, donated ones emptied, late and random order, late failures.
#pragma once

#include <memory>

#include "rlx/device/plugin.h"
#include "tests/adversarial/adversarial_device.h"

namespace rlx::test {

/// The table. It serves devices as the options of the plug-in that was made last say.
const rlx_plugin* adversarial_plugin_table();
/// Its devices from now on, while this lives.
std::unique_ptr<AdversarialControl> adversarial_plugin(const AdversarialOptions& options);

}  // namespace rlx::test
