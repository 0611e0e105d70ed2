// Copies values between their planned location, which may be strided, and dense row-major bytes.
#pragma once

#include <cstddef>

#include "rlx/ir/module.h"

namespace rlx {

/// Copies the elements of a value of `shape` from its planned bytes, which begin at `planned`, to dense bytes.
void gather_value(const Shape& shape, const LirValue& where, const std::byte* planned, std::byte* dense);
/// Copies in the other direction.
void spread_value(const Shape& shape, const LirValue& where, const std::byte* dense, std::byte* planned);

}  // namespace rlx
