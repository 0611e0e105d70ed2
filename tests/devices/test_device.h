// The device that a test of tests/devices runs on: the tests are one suite, which ctest runs once for each device.
#pragma once

#include <cstddef>
#include <string>

#include "rlx/runtime/session.h"

namespace rlx::test {

/// The device under test: RLX_TEST_DEVICE, "vulkan" for example.
Device test_device();
/// Its id, which known_gaps.txt uses.
std::string test_device_name();
/// True when it can be used. Else the test is to return: it is skipped with the reason, or fails where
/// RLX_REQUIRE_DEVICES ("vulkan,tpu") names the device.
bool device_here();
/// The same of a device with generated kernels, whose edges are tested more closely; false on others.
bool generated_kernels_here();
/// The same of a device that takes whole programs by a PJRT plug-in.
bool tpu_here();
/// What the host runs of a compiled program in place of the device, as "sort: reason" lines; empty: nothing.
std::string host_part(const KernelDispatchReport& dispatch);
inline std::string host_part(const CompiledGraph& f) { return host_part(f.compile_result().dispatch); }

/// Whether case `number` belongs to the share of the cases that the environment asks for: RLX_TEST_SHARE = "3/20" takes
/// every 20th, from the 3rd on; all when it is not set.
bool in_share(std::size_t number);
/// Whether every case is asked for: RLX_TEST_SHARE is not set.
bool takes_all_cases();

/// Whether form `number` of the generated kernels is this device's to run: all where no share is asked for, else those
/// that its adapter is dealt, since the adapters of wgpu compile the same texts.
bool is_dealt_here(std::size_t number);

}  // namespace rlx::test
