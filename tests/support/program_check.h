// Random programs on a device, compared with the exact result.
#pragma once

#include <cstdint>
#include <string>

#include "rlx/runtime/session.h"
#include "tests/support/rounding.h"

namespace rlx::test {

/// Runs the program of a seed on `session`, with two sets of extents and two runs each, states kept from run to run.
/// Returns the error, or "". Every second seed has runtime symbols. In every fourth, leaves hold NaN, infinities and
/// subnormal numbers; no subnormal numbers where the device may flush them to zero.
std::string check_program(const Session& session, std::uint64_t seed, Subnormals subnormals = Subnormals::Kept);

}  // namespace rlx::test
