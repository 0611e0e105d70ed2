// Op structs of normalization.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// (x - mean) / sqrt(var + eps) * gamma + beta, with the mean and the biased variance over the sorted `axes`. Inputs:
/// x, [gamma], [beta], which have the dims of those axes. Results: y; mean and rstd = 1 / sqrt(var + eps), whose dims
/// are 1 on the axes, F32 or wider.
struct LayerNorm {
  RLX_OP(LayerNorm);
  std::vector<std::int64_t> axes{};
  double eps = 1e-5;
  OperandMask present{};
};
/// x / sqrt(mean(x^2) + eps) * gamma + beta, with the mean over the sorted `axes`. Inputs: x, [gamma], [beta], which
/// have the dims of those axes. Results: y; rstd = 1 / sqrt(mean(x^2) + eps), whose dims are 1 on the axes, F32 or
/// wider.
struct RmsNorm {
  RLX_OP(RmsNorm);
  std::vector<std::int64_t> axes{};
  double eps = 1e-6;
  OperandMask present{};
};
/// Cotangents of the operands of LayerNorm for the cotangent dy of y. Inputs: x, dy, [gamma], and LayerNorm's [mean],
/// [rstd], which are recomputed if they are not given. Results: dx, dgamma, dbeta.
struct LayerNormBackward {
  RLX_OP(LayerNormBackward);
  std::vector<std::int64_t> axes{};
  double eps = 1e-5;
  OperandMask present{};
};
/// Cotangents of the operands of RmsNorm for the cotangent dy of y. Inputs: x, dy, [gamma], and RmsNorm's [rstd], which
/// is recomputed if it is not given. Results: dx, dgamma, dbeta.
struct RmsNormBackward {
  RLX_OP(RmsNormBackward);
  std::vector<std::int64_t> axes{};
  double eps = 1e-6;
  OperandMask present{};
};

/// (x - mean) / sqrt(var + eps) * gamma + beta, with the mean and the biased variance of each x[n] over each of
/// `groups` groups of adjacent channels. Inputs: x [N, C, ..], [gamma [C]], [beta [C]].
struct GroupNorm {
  RLX_OP(GroupNorm);
  std::int64_t groups = 1;
  double eps = 1e-5;
  OperandMask present{};
};
/// (x - mean) / sqrt(var + eps) * gamma + beta per channel, which is an index of `axis`. Inputs: x, [gamma [C]], [beta
/// [C]], and [mean [C]], [var [C]], both or neither, F32 or wider. Result with mean and var (inference): y. Results
/// without them (training): y, and the mean and biased variance of x over all other axes, which y uses.
struct BatchNorm {
  RLX_OP(BatchNorm);
  std::int64_t axis = 1;
  double eps = 1e-5;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
