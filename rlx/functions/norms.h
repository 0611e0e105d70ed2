// Norms of images and of layers beside those that are builder functions of their own.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// x normalised with a given mean and variance [C] of each element of `axis`: (x - mean) / sqrt(var + eps) * gamma +
/// beta, all [C]. mean and var are F32 or wider.
Expr batch_norm(Operand x, Operand mean, Operand var, std::optional<Operand> gamma = std::nullopt,
                std::optional<Operand> beta = std::nullopt, double eps = 1e-5, std::int64_t axis = 1);
struct BatchStatistics {
  Expr y, mean, var;  // [C], F32 or wider; var is biased
};
/// The same with the mean and variance of x itself over all other axes, which it gives too: the form of training.
BatchStatistics batch_norm_training(Operand x, std::optional<Operand> gamma = std::nullopt,
                                    std::optional<Operand> beta = std::nullopt, double eps = 1e-5,
                                    std::int64_t axis = 1);
struct RunningStatistics {
  Expr mean, var;
};
/// PyTorch's running averages: (1 - momentum) running + momentum batch, where the variance counts unbiased, times n /
/// (n - 1) with n the elements of a channel of x; n must be known, and more than 1.
RunningStatistics running_statistics(Operand mean, Operand var, const BatchStatistics& batch, std::int64_t n,
                                     double momentum = 0.1);
/// Each channel of each x[n] normalised: x [N, C, ..], gamma, beta [C].
Expr instance_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                   double eps = 1e-5);
/// x / (k + alpha / size * sum of squares of `size` neighbours along `axis`)^beta; of an even number of neighbours
/// one more is in front, as in PyTorch.
Expr local_response_norm(Operand x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1,
                         std::int64_t axis = 1);
/// x / max((sum of |x|^p)^(1/p), eps) along `axis`.
Expr lp_normalize(Operand x, double p = 2, std::int64_t axis = 1, double eps = 1e-12);
/// layer_norm(x) * (1 + scale) + shift over the last axis, as diffusion transformers condition it: x [B, S, H], scale
/// and shift of dims that broadcast to it, or [B, H].
Expr ada_layer_norm(Operand x, Operand scale, Operand shift, double eps = 1e-5);
/// x + gate * y; gate of dims that broadcast to x [B, S, H], or [B, H].
Expr gated_residual(Operand x, Operand gate, Operand y);

}  // namespace rlx::nn
