// Random programs on a device, against the exact result.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/runtime/session.h"
#include "tests/support/rounding.h"

namespace rlx::test {

/// Runs the program of a seed on `session`, at two sets of extents, two runs each, with states from run to run; what is
/// wrong, or "". Of every second seed extents are runtime symbols, in every fourth leaves hold NaN, infinities and
/// subnormal numbers, these not where the device may take them for zero.
std::string check_program(const Session& session, std::uint64_t seed, Subnormals subnormals = Subnormals::Kept);

}  // namespace rlx::test
