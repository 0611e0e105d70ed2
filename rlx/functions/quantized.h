// Functions of quantised values: microscaling formats, and products with weights in blocks (docs/quantisation.md).
//
// A scaled value is codes of 8 or 4 bits (F8E4M3, F8E5M2, F4E2M1) with a scale, a power of two in F32, for every
// `block` neighbours along an axis: the formats MXFP8 and MXFP4 of the Open Compute Project's "Microscaling formats
// (MX) specification" 1.0 with blocks of 32.
#pragma once

#include <cstdint>

#include "rlx/ir/graph.h"

namespace rlx::quantized {

struct ScaledValue {
  Expr codes, scale;
};
/// How a scaled value is made: its codes, and the blocks along an axis that share a scale.
struct ScaledFormat {
  DType dtype = DType::F8E4M3;
  std::int64_t block = 32, axis = -1;
};

/// The scales of x: 2^(e - E) of each block, e the exponent of its largest magnitude and E that of the largest code; 1
/// for a block of zeros, NaN for one with NaN or infinity.
Expr scaled_quant_scale(Operand x, const ScaledFormat& format = {});
/// x as codes, rounded to the nearest and saturated, with those scales.
ScaledValue scaled_quantize(Operand x, const ScaledFormat& format = {});
/// The numbers that codes and scales stand for, as `dtype`.
Expr scaled_dequantize(const ScaledValue& x, const ScaledFormat& format = {}, DType dtype = DType::F32,
                       SourceLoc loc = SourceLoc::current());
/// x [.., M, K] times w [K, N], both scaled along K in blocks of `block`: [.., M, N] in F32.
Expr scaled_matmul(const ScaledValue& x, const ScaledValue& w, std::int64_t block = 32,
                   SourceLoc loc = SourceLoc::current());
/// Rows x [M, K] times the matrix of their group, of w [E, K, N], both scaled along K: [M, N]; see
/// Builder::grouped_dot.
Expr scaled_grouped_matmul(const ScaledValue& x, const ScaledValue& w, Operand ids, std::int64_t block = 32);

/// The weights of experts in a block scheme, codes U8 [E, N, row bytes] as GGUF lies, as [E, K, N] in F32.
Expr dequant_moe_weights(Operand codes, QuantScheme scheme);
/// Rows x [M, K] times the matrix of their expert, of codes U8 [E, N, row bytes]: [M, N].
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand ids, QuantScheme scheme);
/// The same of affine codes [E, N, K] (U4, U8, I8, ..) that stand for code * scale + bias, as MLX has them, with scale
/// and bias [E, N, K / block].
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand scale, Operand bias, Operand ids, std::int64_t block);

}  // namespace rlx::quantized
