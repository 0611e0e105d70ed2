// Reverse mode: gradients of graphs, as graphs.
//
// The forward nodes are kept, and the backward nodes follow them. Activations are shared, not recomputed. Cotangents
// follow JAX's convention: the cotangent g of a complex value z pairs with a tangent t as Re(sum(g * t)), without
// conjugation. State updates stay. Errors of every function: NotFound for an unknown leaf name, InvalidArgument for
// integers, Unsupported naming the op, its node and the reason when an op on the path has no derivative.
#pragma once

#include <vector>

#include "rlx/transforms/transform.h"

namespace rlx {

/// Outputs: [grads..], one per entry of `wrt` with its shape, zeros when the loss does not depend on it. The loss is
/// output 0 of `forward`, of any shape. The new Input `d_output`, of the loss's shape, is its cotangent. Further
/// outputs are dropped.
GradResult grad(const Graph& forward, const std::vector<Wrt>& wrt);
/// As `grad`, with outputs [loss, grads.., further outputs of `forward`..].
GradResult grad_with_loss(const Graph& forward, const std::vector<Wrt>& wrt);
/// As `grad_with_loss`, for a loss of one element with the constant 1 as cotangent: no new Input.
GradResult value_and_grad(const Graph& forward, const std::vector<Wrt>& wrt);
/// Cotangents of all outputs at once. Outputs: [outputs of `forward`.., grads..]. The new Input is `d_output` when
/// there is one output, else there is a `d_output_<i>` for each output i. Integer and Bool outputs have none. Runs and
/// `evaluate` accept `d_output_0` for `d_output` and vice versa.
GradResult vjp(const Graph& forward, const std::vector<Wrt>& wrt);

}  // namespace rlx
