// Forward mode: directional derivatives of graphs, as graphs.
#pragma once

#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Outputs: [primals.., tangents..], the outputs of `forward` and their derivatives in the direction of the new Inputs
/// `tangent_<name>`. There is one such Input for each Input or Param in `tangent_for`, with its shape. Outputs that do
/// not depend on them, and integer outputs, have zero tangents. Errors as in reverse.h.
TransformResult jvp(const Graph& forward, const std::vector<Wrt>& tangent_for);

/// A graph split into its values at a point and the linear map of its tangents there.
struct Linearized {
  /// Outputs: [outputs of `forward`.., residuals..]. Leaves: those of `forward`.
  TransformResult primal;
  /// Outputs: the tangents of the outputs of `forward`. Inputs: `residuals`, then `tangents`. The only other leaves are
  /// Params of `forward` that have no tangent.
  Graph linear;
  std::vector<std::string> residuals;  // input i of `linear` is output (number of outputs of `forward`) + i
  std::vector<std::string> tangents;   // as in jvp
};
/// As `jvp`, in two graphs. Run `primal` once at a point, then `linear` for any number of directions. Errors as in jvp.
Linearized linearize(const Graph& forward, const std::vector<Wrt>& tangent_for);

}  // namespace rlx
