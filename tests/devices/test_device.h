// The device that a test of tests/devices runs on: the tests are one suite, which ctest runs once for each device.
#pragma once

#include <string>

#include "rlx/runtime/session.h"

namespace rlx::test {

/// The device under test: RLX_TEST_DEVICE, "vulkan" for example.
Device test_device();
/// Its id, which known_gaps.txt uses.
std::string test_device_name();
/// True when it can be used. Else the test is to return: it is skipped with the reason, or fails where
/// RLX_REQUIRE_DEVICES
/// ("vulkan,tpu") names the device.
bool device_here();
/// The same of a device with generated kernels, whose edges are tested more closely; false on others.
bool generated_kernels_here();
/// What the host runs of a compiled program in place of the device, as "sort: reason" lines; empty: nothing.
std::string host_part(const CompiledGraph& f);

}  // namespace rlx::test
