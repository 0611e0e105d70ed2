// Op structs of normalisation.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// (x - mean) / sqrt(var + eps) * gamma + beta over `axis`, biased variance. gamma, beta: [dim(axis)].
struct LayerNorm { RLX_OP(LayerNorm); std::int64_t axis = 0; double eps = 1e-5; };
/// x / sqrt(mean(x^2) + eps) * gamma + beta over `axis`. gamma, beta: [dim(axis)].
struct RmsNorm { RLX_OP(RmsNorm); std::int64_t axis = 0; double eps = 1e-6; };
/// Cotangents of LayerNorm. Inputs: x, gamma, dy. Results: dx, dgamma, dbeta.
struct LayerNormBackward { RLX_OP(LayerNormBackward); std::int64_t axis = 0; double eps = 1e-5; };
/// Cotangents of RmsNorm. Inputs: x, gamma, dy. Results: dx, dgamma, dbeta.
struct RmsNormBackward { RLX_OP(RmsNormBackward); std::int64_t axis = 0; double eps = 1e-6; };

}  // namespace ops
}  // namespace rlx
// clang-format on
