// Values between where a plan puts them, maybe strided, and dense row-major bytes.
#pragma once

#include <cstddef>

#include "rlx/ir/module.h"

namespace rlx {

/// Copies the elements of a value of `shape` from its planned bytes, the first of which is `planned`, to dense ones.
void gather_value(const Shape& shape, const LirValue& where, const std::byte* planned, std::byte* dense);
/// The way back.
void spread_value(const Shape& shape, const LirValue& where, const std::byte* dense, std::byte* planned);

}  // namespace rlx
