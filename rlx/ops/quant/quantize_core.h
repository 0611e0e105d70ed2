// What the ops of quantised values share: the shapes of scales, spreading them over elements, blocks of bytes as ops.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx {

/// One scale for all, for each index of `axis`, or for every `block` neighbours along it.
struct ScaleGrid {
  std::optional<std::int64_t> axis;
  std::int64_t block = 0;
};
template <class Op>
ScaleGrid scale_grid(const Op& op) {
  return {op.axis, op.block};
}

/// True for the dtypes of affine codes: integers but U64, and the 4- and 8-bit storage types.
bool is_code_dtype(DType t);
/// True for codes that are floats themselves (F8, F4).
constexpr bool is_float_code(DType t) { return t == DType::F8E4M3 || t == DType::F8E5M2 || t == DType::F4E2M1; }
/// Lowest and highest value of an integer code dtype.
struct CodeRange {
  double low, high;
};
CodeRange code_range(DType t);

/// Dimensions of the scale of `x`.
Dims scale_dims(const Dims& x, const ScaleGrid& grid);
/// The error for an axis or a block that does not fit x; none when it is fine.
std::optional<Diagnostic> check_grid(const InferContext& c, const Shape& x, const ScaleGrid& grid);
/// The error for a scale or zero point that is not of scale_dims(x); none when it is fine.
std::optional<Diagnostic> check_scale_dims(const InferContext& c, std::string_view name, const Shape& scale,
                                           const Shape& x, const ScaleGrid& grid);
/// Where the scale of element i of x lies, for reference rules: `x` static.
class ScaleIndex {
 public:
  ScaleIndex(std::span<const std::int64_t> x, const ScaleGrid& grid);
  std::size_t operator()(std::int64_t i) const;

 private:
  std::int64_t inner_ = 1, extent_ = 1, block_ = 0, blocks_ = 1;
  bool per_axis_ = false;
};
/// `s` of scale_dims(x) so that it broadcasts against x.
Expr spread_scale(Graph& g, Expr s, const Dims& x, const ScaleGrid& grid);
/// max (or min) of x over the elements that share a scale: [scale_dims(x)]; an extent that a block does not divide
/// counts as filled up with zeros.
Expr reduce_to_scale(Graph& g, ReduceKind fn, Expr x, const ScaleGrid& grid);

/// [lead.., last..].
Dims with_last(const Dims& lead, std::initializer_list<std::int64_t> last);

/// The dtype that scales are computed with: F64 for F64, else F32.
constexpr DType scale_dtype(DType x) { return x == DType::F64 ? DType::F64 : DType::F32; }
/// v rounded to the scale dtype, for reference rules, which compute each step in double: the product, quotient or sum
/// of two F32 numbers rounded twice is the one rounded once.
inline double rounded_to(DType scale, double v) {
  return scale == DType::F64 ? v : static_cast<double>(static_cast<float>(v));
}

/// vmap of an op whose scales belong to x: the batch joins the axis of the scales, so that it stays one op.
class ScaleBatch {
 public:
  /// Of operand `x` of c with scales of `grid`.
  ScaleBatch(const BatchContext& c, int x, const ScaleGrid& grid);
  const ScaleGrid& grid() const { return grid_; }  // of x()
  Expr x() const { return x_; }
  /// Operand i, which has scale_dims, beside x().
  Expr scale(int i) const { return fold_scale(c_.lifted(i)); }
  /// The same of a value [V, scale_dims..].
  Expr fold_scale(Expr lifted) const;
  /// A result of the dims of x(), or of its scale_dims, with the batch in front.
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

/// codes U8 [.., row bytes] of a block scheme decoded to F32 [.., row elements] by integer ops, exactly as
/// dequantize_blocks does.
Expr decode_blocks(Graph& g, QuantScheme scheme, Expr codes, const Dims& dims);
/// x F32 [.., row elements] as blocks U8 [.., row bytes], exactly as quantize_blocks makes them; for the schemes
/// without scales of groups.
Expr encode_blocks(Graph& g, QuantScheme scheme, Expr x);

}  // namespace rlx
