// Activations. These are composed of ops; the others are builder functions: g.gelu(x), g.silu(x).
#pragma once

#include "rlx/ir/value.h"

namespace rlx::nn {

/// SELU: scale * elu(x, alpha) with the constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017). Float
/// x.
Expr selu(const Expr& x);
/// CELU: x for x > 0, alpha (exp(x / alpha) - 1) otherwise. Barron, "Continuously Differentiable Exponential Linear
/// Units" (2017). Float x. InvalidArgument if alpha is 0 or not finite.
Expr celu(const Expr& x, double alpha = 1);
/// PReLU, ONNX PRelu: x for x >= 0, slope * x below 0. Float x. slope has the dtype of x and broadcasts to it: [C, 1,
/// 1] is one slope per channel of x [N, C, H, W].
Expr prelu(const Expr& x, const Expr& slope);
/// ONNX ThresholdedRelu: x for x > alpha, 0 otherwise. Float x.
Expr thresholded_relu(const Expr& x, double alpha = 1);
/// x clamped to [low, high]. The derivative at both ends is 1. Float x. InvalidArgument if low > high.
Expr hard_tanh(const Expr& x, double low = -1, double high = 1);
/// x clamped to [0, 6]. The derivative at both ends is 0, as in jax.nn.relu6. Float x.
Expr relu6(const Expr& x);
/// (x + sqrt(x^2 + b)) / 2, as jax.nn.squareplus. Float x. InvalidArgument if b < 0.
Expr squareplus(const Expr& x, double b = 4);
/// ONNX Shrink: x - bias for x > lambda, x + bias for x < -lambda, 0 between. bias 0 is PyTorch's hardshrink, bias =
/// lambda is its softshrink. Float x. InvalidArgument if lambda < 0.
Expr shrink(const Expr& x, double lambda = 0.5, double bias = 0);
/// x - tanh(x). Float or complex x.
Expr tanh_shrink(const Expr& x);

}  // namespace rlx::nn
