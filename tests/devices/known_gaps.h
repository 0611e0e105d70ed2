// What a device leaves to the host, by decision: tests/devices/known_gaps.txt.
#pragma once

#include <string>
#include <string_view>

#include "rlx/ir/graph.h"

namespace rlx::test {

/// Fails unless known_gaps.txt has every line of `host` (host_part) for this device, and for a composite in any case:
/// its parts have to run. A line of the file is
///   DEVICES | KINDS | REASON
/// with ',' between devices and between kinds; the reason is how the device's own sentence begins.
/// Behind it, `| wide`: only where `program`, as its user wrote it, holds a dtype beyond 32 bits or of storage alone;
/// what rules make of other programs (gradients, batched forms, parts of composites) has to do without. Or `| of OP`:
/// only in what rules make of that op.
void expect_known_gap(std::string_view op, const std::string& host, const Graph& program);

/// Fails where a kind of a line of known_gaps.txt for this device is in no line of `host`; of an op's own lines (`of
/// OP`) nothing is asked.
void expect_gaps_met(const std::string& host);

}  // namespace rlx::test
