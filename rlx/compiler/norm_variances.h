// Variances as results of layer norms.
#pragma once

#include "rlx/passes/passes.h"

namespace rlx {

/// Not one of all_passes(): it asks what a target, no set of kinds, does for results that nobody reads.
extern const Pass norm_variances;

}  // namespace rlx
