// A pass that computes variances as results of layer norms.
#pragma once

#include "rlx/passes/passes.h"

namespace rlx {

/// Not part of all_passes(): it asks the target, and not only its set of kinds, about results that nobody reads.
extern const Pass norm_variances;

}  // namespace rlx
