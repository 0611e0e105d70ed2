// What the device under test makes of numbers otherwise than the rules (device/difference.h), for tests of values.
#pragma once

#include "rlx/device/difference.h"
#include "rlx/ir/evaluate.h"
#include "tests/support/rounding.h"

namespace rlx::test {

/// Whether the backend's table has it for that op.
bool has_difference(Difference::What what, OpKind kind);
/// Whether the device under test takes subnormal numbers for 0: asked of it, where its table says that some do.
bool takes_subnormals_for_zero();
inline Subnormals device_subnormals() { return takes_subnormals_for_zero() ? Subnormals::MayBeZero : Subnormals::Kept; }

}  // namespace rlx::test
