// Steps of elementwise ops that compute in the dtype itself.
#pragma once

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Adds the step of an elementwise op or region whose function has a loop in its dtype; false where it has none.
bool lower_typed(LowerContext& c);

}  // namespace rlx::cpu
