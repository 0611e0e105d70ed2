// Shared rules of the quantization ops: shapes of scales, their broadcast over elements, and byte blocks as ops.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// The layout of scales: one for all, one for each index of `axis`, or one for every `block` neighbours along it.
struct ScaleGrid {
  std::optional<std::int64_t> axis;
  std::int64_t block = 0;
};
template <class Op>
ScaleGrid scale_grid(const Op& op) {
  return {op.axis, op.block};
}

/// True for the dtypes of affine quantized values: integers except U64, and the 4- and 8-bit storage types.
bool is_quantized_dtype(DType t);
/// True for quantized values that are floats (F8, F4).
constexpr bool is_float_quantized(DType t) { return t == DType::F8E4M3 || t == DType::F8E5M2 || t == DType::F4E2M1; }
/// The lowest and highest value of an integer dtype of quantized values.
struct QuantizedRange {
  double low, high;
};
QuantizedRange quantized_range(DType t);

/// The dims of the scale of `x`.
Dims scale_dims(const Dims& x, const ScaleGrid& grid);
/// The error for an axis or a block that does not fit x; none for a valid one.
std::optional<Diagnostic> check_grid(const InferContext& c, const Shape& x, const ScaleGrid& grid);
/// The error for a scale or zero point whose dims are not scale_dims(x); none for a valid one.
std::optional<Diagnostic> check_scale_dims(const InferContext& c, std::string_view name, const Shape& scale,
                                           const Shape& x, const ScaleGrid& grid);
/// The index of the scale of element i of x, for reference rules. `x` must be static.
class ScaleIndex {
 public:
  ScaleIndex(std::span<const std::int64_t> x, const ScaleGrid& grid);
  std::size_t operator()(std::int64_t i) const;

 private:
  std::int64_t inner_ = 1, extent_ = 1, block_ = 0, blocks_ = 1;
  bool per_axis_ = false;
};
/// `s` of dims scale_dims(x), expanded so that it broadcasts against x.
Expr spread_scale(Graph& g, Expr s, const Dims& x, const ScaleGrid& grid);
/// The max (or min) of x over the elements that share a scale: [scale_dims(x)]. An extent that a block does not divide
/// is padded with zeros.
Expr reduce_to_scale(Graph& g, ReduceKind fn, Expr x, const ScaleGrid& grid);

/// [lead.., last..].
Dims with_last(const Dims& lead, std::initializer_list<std::int64_t> last);

/// The dtype that scales are computed with: F64 for F64, else F32.
constexpr DType scale_dtype(DType x) { return x == DType::F64 ? DType::F64 : DType::F32; }
/// v rounded to the scale dtype, for reference rules that compute each step in double. A product, quotient or sum of
/// two F32 numbers rounded twice equals the one rounded once.
inline double rounded_to(DType scale, double v) {
  return scale == DType::F64 ? v : static_cast<double>(static_cast<float>(v));
}

/// vmap of an op with scales: the batch axis joins the axis of the scales, so that it stays one op.
class ScaleBatch {
 public:
  /// For operand `x` of c, with scales of `grid`.
  ScaleBatch(const BatchContext& c, int x, const ScaleGrid& grid);
  const ScaleGrid& grid() const { return grid_; }  // the layout of the scales of x()
  Expr x() const { return x_; }
  /// Operand i, which has scale_dims, for use with x().
  Expr scale(int i) const { return fold_scale(c_.lifted(i)); }
  /// The same for a value [V, scale_dims..].
  Expr fold_scale(Expr lifted) const;
  /// A result with the dims of x(), or with its scale_dims, with the batch axis moved to the front.
  Expr back(Expr y) const;
  Expr scale_back(Expr s) const;

 private:
  const BatchContext& c_;
  ScaleGrid grid_;
  Expr x_;
  bool folded_ = false;
  Dims moved_;                      // [V, C, the others..]
  std::vector<std::int64_t> perm_;  // to `moved_`
};

/// Decodes `codes` U8 [.., row bytes] of a block scheme to F32 [.., row elements] by integer ops, exactly like
/// dequantize_blocks.
Expr decode_blocks(Graph& g, QuantScheme scheme, Expr codes, const Dims& dims);
/// Encodes x F32 [.., row elements] as blocks U8 [.., row bytes], exactly like quantize_blocks; for the schemes without
/// group scales.
Expr encode_blocks(Graph& g, QuantScheme scheme, Expr x);

}  // namespace rlx
