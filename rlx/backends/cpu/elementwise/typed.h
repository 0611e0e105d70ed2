// Lowering of elementwise ops that compute in the dtype itself.
#pragma once

#include "rlx/backends/cpu/entries.h"

namespace rlx::cpu {

/// Adds the task of an elementwise op or region whose function has a loop in its dtype; returns false without such a
/// loop.
bool lower_typed(LowerContext& c);

}  // namespace rlx::cpu
