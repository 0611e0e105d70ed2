// Op structs of normalisation.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// (x - mean) / sqrt(var + eps) * gamma + beta over the sorted `axes`, biased variance. Inputs: x, [gamma], [beta], of
/// the dims of those axes. Results: y; mean and rstd = 1 / sqrt(var + eps) with the axes as 1, F32 or wider.
struct LayerNorm {
  RLX_OP(LayerNorm);
  std::vector<std::int64_t> axes{};
  double eps = 1e-5;
  OperandMask present{};
};
/// x / sqrt(mean(x^2) + eps) * gamma + beta likewise. Inputs: x, [gamma], [beta]. Results: y, rstd.
struct RmsNorm {
  RLX_OP(RmsNorm);
  std::vector<std::int64_t> axes{};
  double eps = 1e-6;
  OperandMask present{};
};
/// Cotangents of what LayerNorm's y depends on. Inputs: x, dy, [gamma], and LayerNorm's [mean], [rstd], which are
/// computed again where they are not given. Results: dx, dgamma, dbeta.
struct LayerNormBackward {
  RLX_OP(LayerNormBackward);
  std::vector<std::int64_t> axes{};
  double eps = 1e-5;
  OperandMask present{};
};
/// The same of RmsNorm. Inputs: x, dy, [gamma], [rstd]. Results: dx, dgamma, dbeta.
struct RmsNormBackward {
  RLX_OP(RmsNormBackward);
  std::vector<std::int64_t> axes{};
  double eps = 1e-6;
  OperandMask present{};
};

/// (x - mean) / sqrt(var + eps) * gamma + beta with the mean and the biased variance of each of `groups` groups of
/// neighbouring channels of each x[n]. Inputs: x [N, C, ..], [gamma [C]], [beta [C]].
struct GroupNorm {
  RLX_OP(GroupNorm);
  std::int64_t groups = 1;
  double eps = 1e-5;
  OperandMask present{};
};
/// (x - mean) / sqrt(var + eps) * gamma + beta of each channel, an element of `axis`. Inputs: x, [gamma [C]], [beta
/// [C]], and [mean [C]], [var [C]], both or none, F32 or wider. Results: y; without mean and var those of x over all
/// other axes too, the variance biased, which y is made with then: the form of training.
struct BatchNorm {
  RLX_OP(BatchNorm);
  std::int64_t axis = 1;
  double eps = 1e-5;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
