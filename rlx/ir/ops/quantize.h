// Op structs of quantised values: codes, and the numbers they stand for.
//
// Affine codes stand for (q - zero_point) * scale. Scale and zero point have the shape
//   []        one for the whole tensor             (no axis)
//   [C]       one for each index of `axis`         (axis)
//   x's dims, with ceil(D / block) at `axis`       (axis and block: one for every `block` neighbours along the axis)
// Block schemes keep all of it inside U8 codes (tensor/block_schemes.h). docs/quantisation.md has the numbers.
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

/// How a FakeQuantize passes a cotangent through the rounding: as it is; where x lies inside the range; times
/// 1 - tanh(x / s)^2; times max(0, 1 - |x| / (q_max s)).
enum class StraightThrough : std::uint8_t { Identity, ClippedIdentity, Tanh, HardTanh };
/// Where the scale of a FakeQuantize comes from: the batch's largest |x|; a running mean of those, the operand being
/// the mean so far; the operand, as a constant; the operand, as a parameter with a derivative (LSQ).
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

/// (codes - zero_point) * scale * global_scale as `dtype`. Inputs: codes, [scale], [zero_point], [global_scale []].
/// Block schemes: codes U8 [.., row bytes] and nothing else; `dims` are the dimensions of the result. Composite.
struct Dequantize {
  RLX_OP(Dequantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  Dims dims{};
  DType dtype = DType::F32;
  OperandMask present{};
};
/// saturate(round(x / scale) + zero_point) as `dtype`, halves to even; F8 and F4 codes: the nearest. Inputs: x, scale,
/// [zero_point]. Block schemes of 32 elements: x [.., row elements] alone, `dtype` U8, and blocks [.., row bytes].
/// Composite.
struct Quantize {
  RLX_OP(Quantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  DType dtype = DType::I8;
  OperandMask present{};
};
/// Codes with scale and zero point of the values themselves: symmetric (zero_point 0, scale max|x| / q_max) or over the
/// range of x and 0. Results: codes, scale, zero_point. Composite.
struct DynamicQuantize {
  RLX_OP(DynamicQuantize);
  QuantScheme scheme = QuantScheme::Affine;
  std::optional<std::int64_t> axis{};
  std::int64_t block = 0;
  DType dtype = DType::I8;
  bool symmetric = true;
};
/// clamp(round(x / s), -q_max, q_max) * s with q_max = 2^(bits - 1) - 1, and a derivative that passes through the
/// rounding as `ste` says. Inputs: x, [scale] (all modes but per_batch). Results: y, the scale s used ([] or [C]).
struct FakeQuantize {
  RLX_OP(FakeQuantize);
  std::int64_t bits = 8;
  std::optional<std::int64_t> axis{};
  StraightThrough ste = StraightThrough::ClippedIdentity;
  ScaleMode mode = ScaleMode::PerBatch;
  double decay = 0.99;
};

/// FakeQuantize with a learned scale ("Learned step size quantization", Esser et al., ICLR 2020, without its gradient
/// scale): y = clamp(round(x / s), -q_max, q_max) s. dx passes where |x| <= q_max s; ds is the sum of psi(x / s) dy,
/// psi(z) = round(z) - z inside the range, sign(z) q_max outside. Inputs: x, scale ([] or [C] of `axis`). Result: y.
/// Composite: FakeQuantize of a learned scale and a clipped identity.
struct FakeQuantizeLsq {
  RLX_OP(FakeQuantizeLsq);
  std::int64_t bits = 8;
  std::optional<std::int64_t> axis{};
};
/// A product of codes as codes: saturate(round((bias + sum_k (x - x_zp)(w - w_zp)) mult) + out_zp) as `dtype` (I8 or
/// U8), halves to even. The sum is exact in I32 (it wraps); it is rounded to F32 and multiplied in F32 by mult, which
/// is scale_x scale_w / scale_out: one number, or one for each column. Inputs: x [.., M, K], w [K, N] or [.., K, N]
/// (I8 or U8 each), [bias I32 [N]]. Result: [.., M, N]. Composite.
struct QMatMul {
  RLX_OP(QMatMul);
  std::int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  std::vector<double> mult{1.0};
  DType dtype = DType::I8;
  OperandMask present{};
};
/// A convolution (cross-correlation) of codes as codes, with the rounding of QMatMul and one mult, or one for each of
/// the O channels. What `low` and `high` pad stands for 0: it is x_zp. Empty lists of strides, dilations and pads are
/// ones and zeros. Inputs: x [N, C, spatial..], w [O, C / groups, spatial..] (I8 or U8 each), [bias I32 [O]]. Result:
/// [N, O, spatial..], extents (d + low + high - dilation (k - 1) - 1) / stride + 1. Composite.
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
