// Scaled values and matmuls with experts' weights as compositions of Quantize, Dequantize and GroupedDot.
#include "rlx/functions/quantized.h"

#include <cmath>

#include "rlx/functions/term.h"
#include "rlx/ir/build/building.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"

namespace rlx::quantized {
namespace {

using functions::abs;
using functions::chosen;
using functions::combined;
using functions::compared;
using functions::larger;
using functions::smaller;
using functions::Term;

// The exponent of the largest quantized value.
int top_exponent(const Term& at, DType codes, const char* what) {
  if (codes == DType::F8E4M3) return 8;
  if (codes == DType::F8E5M2) return 15;
  if (codes == DType::F4E2M1) return 2;
  building::fail(at.loc(), ErrorCode::DTypeMismatch,
                 concat_text(what, ": scaled values must be f8e4m3, f8e5m2 or f4e2m1, not ", dtype_name(codes)),
                 "use quantize for integers");
}

constexpr int kLeast = -126, kMost = 127;  // exponents of normal powers of two in F32
// Exact 2^e for integers e from kLeast to kMost.
Term power_of_two(const Term& e) {
  Tensor table = Tensor::zeros(Shape({kMost - kLeast + 1}, DType::F32));
  for (int i = kLeast; i <= kMost; ++i) table.set(i - kLeast, std::ldexp(1.0, i));
  Graph& g = e.graph();
  const Term place = (e - static_cast<double>(kLeast)).cast(DType::I32);
  return e.at(g.gather(e.at(g.constant(std::move(table), e.loc())), place, 0));
}

// x [.., D, ..] reshaped to [.., D / block, block, ..].
Term in_blocks(const Term& x, std::int64_t axis, std::int64_t block, const char* what) {
  Dims dims = x.shape().dims();
  const auto at = static_cast<std::size_t>(axis);
  if (block < 1)
    building::fail(x.loc(), ErrorCode::InvalidArgument,
                   concat_text(what, ": the block size must be at least 1, got ", block));
  if (!dims[at].is_static() || dims[at].value() % block != 0)
    building::fail(x.loc(), ErrorCode::ShapeMismatch,
                   concat_text(what, ": axis ", axis, " of ", x.shape(), " cannot be divided into blocks of ", block),
                   "pad the axis, or use another block size");
  dims[at] = Dim(dims[at].value() / block);
  dims.insert(dims.begin() + axis + 1, Dim(block));
  return x.at(x.graph().reshape(x, dims));
}

ops::Dequantize decode_of(const ScaledFormat& f, DType t) {
  ops::Dequantize op;
  op.axis = f.axis, op.block = f.block, op.dtype = t;
  return op;
}

Term row_major(const Term& w) { return w.at(w.graph().transpose(w, {0, 2, 1})); }

}  // namespace

Expr scaled_quant_scale(Operand x, const ScaledFormat& format) {
  constexpr const char* kWhat = "scaled_quant_scale";
  const Term v = Term(x, kWhat);
  const int top = top_exponent(v, format.dtype, kWhat);
  const std::int64_t axis = building::normalize_axis_at(v.loc(), format.axis, v.rank(), kWhat);
  Graph& g = v.graph();
  const Term wide = v.cast(DType::F32);
  const Term most = v.at(g.reduce_max(in_blocks(abs(wide), axis, format.block, kWhat), {axis + 1}));
  // The exponent from log2, which may be off by one near powers of two. Comparisons with powers of two correct it.
  const Term finite = compared(CompareKind::Lt, most, HUGE_VAL), some = compared(CompareKind::Gt, most, 0.0);
  const Term own = chosen(functions::both(finite, some), larger(most, std::ldexp(1.0, kLeast)), 1.0);
  const Term guess = larger(smaller(functions::floor(own(ActivationKind::Log2)), static_cast<double>(kMost)),
                            static_cast<double>(kLeast));
  const Term above = compared(CompareKind::Gt, power_of_two(guess), own);
  const Term next = smaller(guess + 1.0, static_cast<double>(kMost));
  const Term below = functions::both(compared(CompareKind::Le, power_of_two(next), own),
                                     compared(CompareKind::Lt, guess, static_cast<double>(kMost)));
  const Term exponent = chosen(above, guess - 1.0, chosen(below, next, guess));
  const Term scale = power_of_two(
      larger(larger(exponent, static_cast<double>(kLeast)) - static_cast<double>(top), static_cast<double>(kLeast)));
  return chosen(finite, chosen(some, scale, 1.0), std::nan(""));
}

ScaledValue scaled_quantize(Operand x, const ScaledFormat& format) {
  const Term v = Term(x, "scaled_quantize");
  const Term scale = v.at(scaled_quant_scale(v, format));
  ops::Quantize op;
  op.axis = format.axis, op.block = format.block, op.dtype = format.dtype;
  return {v.graph().quantize(v.cast(DType::F32), scale, op), scale};
}
Expr scaled_dequantize(const ScaledValue& x, const ScaledFormat& format, DType dtype, SourceLoc loc) {
  return x.codes.graph().dequantize(Operand(x.codes, loc), Operand(x.scale, loc), decode_of(format, dtype));
}
Expr scaled_matmul(const ScaledValue& x, const ScaledValue& w, std::int64_t block, SourceLoc loc) {
  const Expr left = scaled_dequantize(x, {x.codes.dtype(), block, -1}, DType::F32, loc);
  const Expr right = scaled_dequantize(w, {w.codes.dtype(), block, -2}, DType::F32, loc);
  return left.graph().matmul(Operand(left, loc), Operand(right, loc));
}
Expr scaled_grouped_matmul(const ScaledValue& x, const ScaledValue& w, Operand ids, std::int64_t block) {
  const SourceLoc loc = ids.loc();
  const Expr left = scaled_dequantize(x, {x.codes.dtype(), block, -1}, DType::F32, loc);
  const Expr right = scaled_dequantize(w, {w.codes.dtype(), block, -2}, DType::F32, loc);
  return left.graph().grouped_dot(Operand(left, loc), Operand(right, loc), ids);
}

Expr dequant_moe_weights(Operand codes, QuantScheme scheme) {
  const Term c(codes, "dequant_moe_weights");
  if (c.rank() != 3)
    building::fail(c.loc(), ErrorCode::ShapeMismatch,
                   concat_text("dequant_moe_weights: codes must be [E, N, row bytes], got ", c.shape()));
  return row_major(c.at(c.graph().dequantize(c, scheme)));
}
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand ids, QuantScheme scheme) {
  const Term v(x, "dequant_grouped_matmul");
  return v.graph().grouped_dot(v, v.at(dequant_moe_weights(codes, scheme)).cast(v.dtype()), ids);
}
Expr dequant_grouped_matmul(Operand x, Operand codes, Operand scale, Operand bias, Operand ids, std::int64_t block) {
  constexpr const char* kWhat = "dequant_grouped_matmul";
  const Term v(x, kWhat), c = Term(codes, kWhat);
  Graph& g = v.graph();
  if (c.rank() != 3)
    building::fail(v.loc(), ErrorCode::ShapeMismatch, concat_text(kWhat, ": codes must be [E, N, K], got ", c.shape()));
  const Term decoded =
      v.at(g.dequantize(c, std::optional<Operand>(scale), decode_of({c.dtype(), block, 2}, DType::F32)));
  const Term blocks = in_blocks(decoded, 2, block, kWhat);
  const Term added = v.at(g.add(blocks, v.at(g.unsqueeze(v.at(building::own_at(g, bias, v.loc())), 3))));
  return g.grouped_dot(v, row_major(v.at(g.reshape(added, decoded.shape().dims()))).cast(v.dtype()), ids);
}

}  // namespace rlx::quantized
