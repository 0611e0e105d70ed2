// Normalization layers. layer_norm, rms_norm and group_norm are builder functions.
#pragma once

#include <cstdint>
#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// Batch normalization with given statistics (inference): (x - mean) / sqrt(var + eps) * gamma + beta per channel, an
/// index of `axis`. mean, var, gamma and beta are [C]; mean and var are F32 or wider.
Expr batch_norm(Operand x, Operand mean, Operand var, std::optional<Operand> gamma = std::nullopt,
                std::optional<Operand> beta = std::nullopt, double eps = 1e-5, std::int64_t axis = 1);
/// Results of batch_norm_training.
struct BatchStatistics {
  Expr y, mean, var;  // [C], F32 or wider; var is biased
};
/// Batch normalization with the mean and variance of x over all other axes (training), which are results too.
BatchStatistics batch_norm_training(Operand x, std::optional<Operand> gamma = std::nullopt,
                                    std::optional<Operand> beta = std::nullopt, double eps = 1e-5,
                                    std::int64_t axis = 1);
/// Results of running_statistics, [C] each.
struct RunningStatistics {
  Expr mean, var;
};
/// PyTorch's running averages: (1 - momentum) running + momentum batch. The batch variance is made unbiased, times n /
/// (n - 1), where n > 1 is the number of elements of x per channel.
RunningStatistics running_statistics(Operand mean, Operand var, const BatchStatistics& batch, std::int64_t n,
                                     double momentum = 0.1);
/// Instance normalization: (x - mean) / sqrt(var + eps) * gamma + beta with the mean and variance of each channel of
/// each x[n]. x [N, C, ..], gamma and beta [C].
Expr instance_norm(Operand x, std::optional<Operand> gamma = std::nullopt, std::optional<Operand> beta = std::nullopt,
                   double eps = 1e-5);
/// Local response normalization: x / (k + alpha / size * sum of squares of `size` neighbours along `axis`)^beta. An
/// even window reaches one element further to the front, as in PyTorch.
Expr local_response_norm(Operand x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1,
                         std::int64_t axis = 1);
/// x / max(|x|_p, eps) with the p-norm (sum of |x|^p)^(1/p) along `axis`.
Expr lp_normalize(Operand x, double p = 2, std::int64_t axis = 1, double eps = 1e-12);
/// Adaptive layer normalization of diffusion transformers: layer_norm(x) * (1 + scale) + shift over the last axis. x
/// [B, S, H]; scale and shift broadcast to it, or are [B, H].
Expr ada_layer_norm(Operand x, Operand scale, Operand shift, double eps = 1e-5);
/// x + gate * y. x and y [B, S, H]; gate broadcasts to them, or is [B, H].
Expr gated_residual(Operand x, Operand gate, Operand y);

}  // namespace rlx::nn
