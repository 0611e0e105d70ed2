// Activations that are built of ops. The others are functions of a graph: g.gelu(x), g.silu(x).
#pragma once

#include "rlx/ir/value.h"

namespace rlx::nn {

/// scale * elu(x, alpha) with the constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017). Float x.
Expr selu(const Expr& x);
/// x above 0, alpha (exp(x / alpha) - 1) below; alpha is not 0. Barron, "Continuously Differentiable Exponential Linear
/// Units" (2017). Float x.
Expr celu(const Expr& x, double alpha = 1);
/// x where it is not below 0, slope * x below; slope, of the dtype of x, broadcasts against it: [C, 1, 1] is one of
/// each channel of [N, C, H, W]. ONNX PRelu.
Expr prelu(const Expr& x, const Expr& slope);
/// x above alpha, 0 elsewhere. ONNX ThresholdedRelu. Float x.
Expr thresholded_relu(const Expr& x, double alpha = 1);
/// x cut to [low, high], low <= high; the derivative at both ends is 1. Float x.
Expr hard_tanh(const Expr& x, double low = -1, double high = 1);
/// x cut to [0, 6]; the derivative at both ends is 0, as in jax.nn. Float x.
Expr relu6(const Expr& x);
/// (x + sqrt(x^2 + b)) / 2. Float x.
Expr squareplus(const Expr& x, double b = 4);
/// x moved by `bias` toward 0 where |x| is above lambda, 0 elsewhere: ONNX Shrink; with bias 0 PyTorch's hardshrink,
/// with bias = lambda its softshrink. lambda >= 0. Float x.
Expr shrink(const Expr& x, double lambda = 0.5, double bias = 0);
/// x - tanh(x). Float or complex x.
Expr tanh_shrink(const Expr& x);

}  // namespace rlx::nn
