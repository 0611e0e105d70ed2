// Second order: Hessian-vector products, Jacobians and Hessians as graphs.
#pragma once

#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Forward over reverse mode. Outputs: [loss, grads.., d_loss, Hv..]. New Inputs: `d_output` (see reverse.h) and
/// `tangent_<name>` for each Input or Param in `wrt` (the vector v). d_loss is the directional derivative of the loss.
TransformResult hvp(const Graph& forward, const std::vector<Wrt>& wrt);

/// Jacobians of output 0 by reverse mode. For each entry of `wrt` there is one output of shape output.dims ++ wrt.dims.
/// Cheaper than `jacfwd` when the output has fewer elements than the leaves. Real dtypes only.
TransformResult jacrev(const Graph& forward, const std::vector<Wrt>& wrt);
/// The same by forward mode.
TransformResult jacfwd(const Graph& forward, const std::vector<Wrt>& wrt);
/// Second derivatives of output 0, which must have one element. For each pair (i, j) of `wrt`, in row-major order,
/// there is one output of shape wrt[i].dims ++ wrt[j].dims.
TransformResult hessian(const Graph& forward, const std::vector<Wrt>& wrt);

}  // namespace rlx
