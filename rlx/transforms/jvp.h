// Forward mode: directional derivatives of graphs as graphs.
#pragma once

#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Outputs [primals.., tangents..]: the outputs of `forward` and their derivatives in the direction given by the new
/// Inputs `tangent_<name>`, one for each Input or Param in `tangent_for`, with its shape. Outputs that do not depend on
/// them, and integer ones, have zero tangents. Errors as in reverse.h.
TransformResult jvp(const Graph& forward, const std::vector<Wrt>& tangent_for);

}  // namespace rlx
