// Second order: Hessian-vector products, Jacobians and Hessians as graphs.
#pragma once

#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Forward over reverse: outputs [loss, grads.., d_loss, Hv..] with the new Inputs `d_output` (see reverse.h) and
/// `tangent_<name>` for each Input or Param in `wrt` (the vector v). d_loss is the directional derivative of the loss.
TransformResult hvp(const Graph& forward, const std::vector<Wrt>& wrt);

/// Jacobians of output 0 by reverse mode: for each entry of `wrt` one output of shape output.dims ++ wrt.dims. Cheaper
/// than `jacfwd` when the output has fewer elements than the leaves. Real dtypes only.
TransformResult jacrev(const Graph& forward, const std::vector<Wrt>& wrt);
/// The same by forward mode.
TransformResult jacfwd(const Graph& forward, const std::vector<Wrt>& wrt);
/// Second derivatives of a one-element output 0: for each pair (i, j) of `wrt`, row by row, one output of shape
/// wrt[i].dims ++ wrt[j].dims.
TransformResult hessian(const Graph& forward, const std::vector<Wrt>& wrt);

}  // namespace rlx
