// A pass that computes variances as results of layer norms.
#pragma once

#include "rlx/passes/passes.h"

namespace rlx {

/// Not part of all_passes(): it needs a Target (Target::skips_unread), not just the set of claimed kinds.
extern const Pass norm_variances;

}  // namespace rlx
