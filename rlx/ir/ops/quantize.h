// Op structs of quantization.
//
// An affine quantized value q stands for the number (q - zero_point) * scale. Scale and zero point have the shape
//   []        one for the whole tensor             (no axis)
//   [C]       one for each index of `axis`         (axis)
//   x's dims, with ceil(D / block) at `axis`       (axis and block: one for every `block` neighbours along the axis)
// Block schemes keep values, scales and offsets inside U8 blocks (rlx/tensor/block_schemes.h). docs/quantisation.md has
// the formats and their precision.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/dim.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

/// The straight-through estimator of FakeQuantize: what its derivative multiplies a cotangent by. Identity: 1.
/// ClippedIdentity: 1 where x lies inside the range, else 0. Tanh: 1 - tanh(x / s)^2. HardTanh: max(0, 1 - |x| / (q_max
/// s)).
enum class StraightThrough : std::uint8_t { Identity, ClippedIdentity, Tanh, HardTanh };
/// The source of the scale of a FakeQuantize. PerBatch: the largest |x| of the batch. Ema: an exponential moving
/// average of those, whose last value is the operand. Fixed: the operand, as a constant. Learned: the operand, as a
/// parameter with a derivative (LSQ).
enum class ScaleMode : std::uint8_t { PerBatch, Ema, Fixed, Learned };
template <> struct EnumNames<QuantScheme> {
  static constexpr std::string_view values[] = {"affine", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1",
                                                "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k", "q1_0",
                                                "tq1_0", "tq2_0", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "iq2_xxs",
                                                "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m"};
};
template <> struct EnumNames<StraightThrough> {
  static constexpr std::string_view values[] = {"identity", "clipped_identity", "tanh", "hard_tanh"};
};
template <> struct EnumNames<ScaleMode> {
  static constexpr std::string_view values[] = {"per_batch", "ema", "fixed", "learned"};
};

namespace ops {

/// (q - zero_point) * scale * global_scale as `dtype`. Inputs: quantized values q, [scale], [zero_point], [global_scale
/// []]. With a block scheme the only input is the blocks, U8 [.., row bytes]; `dims` are the dims of the result.
/// Composite.
struct Dequantize {
  RLX_OP(Dequantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  Dims dims{};
  DType dtype = DType::F32;
  OperandMask present{};
};
/// saturate(round(x / scale) + zero_point) as `dtype`, ties to even; F8 and F4 dtypes round to the nearest value.
/// Inputs: x, scale, [zero_point]. With a block scheme of 32 elements the only input is x [.., row elements], `dtype`
/// is U8, and the result is blocks [.., row bytes]. Composite.
struct Quantize {
  RLX_OP(Quantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  DType dtype = DType::I8;
  OperandMask present{};
};
/// Quantize with a scale and zero point computed from x. `symmetric`: zero_point 0 and scale max|x| / q_max; else the
/// range of x and 0. Results: quantized values, scale, zero_point. Composite.
struct DynamicQuantize {
  RLX_OP(DynamicQuantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  DType dtype = DType::I8;
  bool symmetric = true;
};
/// Quantize and dequantize in floats, for quantization-aware training: clamp(round(x / s), -q_max, q_max) * s with
/// q_max = 2^(bits - 1) - 1. `ste` is the straight-through estimator of its derivative. Inputs: x, [scale] (all modes
/// but per_batch). Results: y, the scale s used ([] or [C]).
struct FakeQuantize {
  RLX_OP(FakeQuantize);
  std::int64_t bits = 8;
  std::optional<std::int64_t> axis{};
  StraightThrough ste = StraightThrough::ClippedIdentity;
  ScaleMode mode = ScaleMode::PerBatch;
  double decay = 0.99;
};

/// FakeQuantize with a learned scale ("Learned step size quantization", Esser et al., ICLR 2020, without its gradient
/// scale): y = clamp(round(x / s), -q_max, q_max) s. The derivative by x is 1 where |x| <= q_max s, else 0. The
/// derivative by s is the sum of psi(x / s) dy, with psi(z) = round(z) - z inside the range and sign(z) q_max outside.
/// Inputs: x, scale ([] or [C] of `axis`). Result: y. Composite: FakeQuantize with Learned and ClippedIdentity.
struct FakeQuantizeLsq {
  RLX_OP(FakeQuantizeLsq);
  std::int64_t bits = 8;
  std::optional<std::int64_t> axis{};
};
/// A matmul of 8-bit quantized values with a quantized result: saturate(round((bias + sum_k (x - x_zp)(w - w_zp)) mult)
/// + out_zp) as `dtype` (I8 or U8), ties to even. The sum is exact in I32, where it wraps around. It is rounded to F32
/// and multiplied in F32 by mult = scale_x scale_w / scale_out: one number, or one per column. Inputs: x [.., M, K], w
/// [K, N] or [.., K, N] (I8 or U8 each), [bias I32 [N]]. Result: [.., M, N]. Composite.
struct QMatMul {
  RLX_OP(QMatMul);
  std::int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  std::vector<double> mult{1.0};
  DType dtype = DType::I8;
  OperandMask present{};
};
/// A convolution (cross-correlation) of 8-bit quantized values with a quantized result, rounded as QMatMul is; mult is
/// one number, or one per output channel. Padding has the value x_zp, which stands for 0. Empty lists of strides and
/// dilations mean 1, empty paddings 0. Inputs: x [N, C, spatial..], w [O, C / groups, spatial..] (I8 or U8 each), [bias
/// I32 [O]]. Result: [N, O, spatial..], extents floor((d + low + high - dilation (k - 1) - 1) / stride) + 1. Composite.
struct QConv {
  RLX_OP(QConv);
  std::vector<std::int64_t> strides{}, dilations{}, low{}, high{};
  std::int64_t groups = 1;
  std::int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  std::vector<double> mult{1.0};
  DType dtype = DType::I8;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
