// Functions of quantized values. They make microscaling formats and multiply with block-quantized weights
// (docs/quantisation.md).
//
// A scaled value has quantized values of 8 or 4 bits (F8E4M3, F8E5M2, F4E2M1) and one scale, a power of two in F32, for
// every `block` neighbours along an axis. With blocks of 32 these are MXFP8 and MXFP4 of the Open Compute Project's
// "Microscaling formats (MX) specification" 1.0.
#pragma once

#include <cstdint>

#include "rlx/ir/graph.h"

namespace rlx::quantized {

/// Quantized values and the scales of their blocks.
struct ScaledValue {
  Expr codes, scale;
};
/// The format of a scaled value: its dtype, and the length and axis of the blocks.
struct ScaledFormat {
  DType dtype = DType::F8E4M3;
  std::int64_t block = 32, axis = -1;
};

/// The scale of each block of x: 2^(e - E), where e is the exponent of the largest magnitude of the block and E that of
/// the largest number of the dtype. 1 for a block of zeros, NaN for a block with a NaN or infinity.
Expr scaled_quant_scale(Operand x, const ScaledFormat& format = {});
/// x quantized with the scales of scaled_quant_scale, rounded to the nearest and saturated.
ScaledValue scaled_quantize(Operand x, const ScaledFormat& format = {});
/// The numbers of a scaled value as `dtype`: quantized value * scale.
Expr scaled_dequantize(const ScaledValue& x, const ScaledFormat& format = {}, DType dtype = DType::F32,
                       SourceLoc loc = SourceLoc::current());
/// The matmul of scaled x [.., M, K] and w [K, N], both in blocks of `block` along K: [.., M, N] F32.
Expr scaled_matmul(const ScaledValue& x, const ScaledValue& w, std::int64_t block = 32,
                   SourceLoc loc = SourceLoc::current());
/// The grouped matmul of scaled x [M, K] and w [E, K, N], both in blocks along K: row i is x[i] w[ids[i]], [M, N]. See
/// Builder::grouped_dot.
Expr scaled_grouped_matmul(const ScaledValue& x, const ScaledValue& w, Operand ids, std::int64_t block = 32);

/// Block-quantized expert weights U8 [E, N, row bytes], in the layout of GGUF, dequantized to [E, K, N] F32.
Expr dequant_moe_weights(Operand codes, QuantScheme scheme);
/// The grouped matmul of x [M, K] with block-quantized expert weights U8 [E, N, row bytes]: row i uses expert ids[i],
/// [M, N].
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand ids, QuantScheme scheme);
/// The grouped matmul of x [M, K] with affine quantized expert weights [E, N, K] (U4, U8, I8, ..), as in MLX: a weight
/// is quantized value * scale + bias. scale and bias are [E, N, K / block].
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand scale, Operand bias, Operand ids, std::int64_t block);

}  // namespace rlx::quantized
