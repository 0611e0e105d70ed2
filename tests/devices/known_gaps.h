// What a device leaves to the host, by decision: tests/devices/known_gaps.txt.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx::test {

/// Fails unless known_gaps.txt has every line of `host` (host_part) for this device, and for a composite in any case:
/// its parts have to run. A line of the file is
///   DEVICES | KINDS | REASON
/// with ',' between devices and between kinds, '*' for all; the reason is how the device's own sentence begins.
void expect_known_gap(std::string_view op, const std::string& host);

/// RLX_TEST_SHARE = "k/n": whether case `number` is one of the k-th n-th of the cases; all when it is not set.
bool in_share(std::size_t number);

}  // namespace rlx::test
