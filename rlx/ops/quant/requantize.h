// Shared rules of matmuls on quantized values: dtypes, zero points, factors, and requantization of I32 sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "rlx/ops/quant/quantize_core.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {

constexpr bool is_byte_dtype(DType t) { return t == DType::I8 || t == DType::U8; }

/// The error for an op with fields x_zp, w_zp, out_zp, mult, dtype and operands x, w, [bias] that does not fit a result
/// with `channels` columns; none for a valid op.
template <class Op>
std::optional<Diagnostic> check_requantize(const InferContext& c, const Op& op, const Dim& channels) {
  const Shape &x = c.input("x"), &w = c.input("w");
  for (const Shape* s : {&x, &w})
    if (!is_byte_dtype(s->dtype())) return c.dtype_error("x and w must be i8 or u8, got ", x, " and ", w);
  if (!is_byte_dtype(op.dtype)) return c.dtype_error("makes i8 or u8, not ", dtype_name(op.dtype));
  const auto zero_point = [&](const char* name, std::int64_t zp, DType t) -> std::optional<Diagnostic> {
    const QuantizedRange range = quantized_range(t);
    const auto value = static_cast<double>(zp);
    if (value >= range.low && value <= range.high) return std::nullopt;
    return c.attr_error(name, " ", zp, " is not a value of ", dtype_name(t));
  };
  if (auto e = zero_point("x_zp", op.x_zp, x.dtype())) return e;
  if (auto e = zero_point("w_zp", op.w_zp, w.dtype())) return e;
  if (auto e = zero_point("out_zp", op.out_zp, op.dtype)) return e;
  if (op.mult.size() != 1 && !channels.is_static(static_cast<std::int64_t>(op.mult.size())))
    return c.attr_error("mult has ", op.mult.size(), " numbers; it needs one, or one for each of ", channels,
                        " channels");
  for (double m : op.mult)
    if (!std::isfinite(m)) return c.attr_error("mult must be finite, got ", m);
  if (c.has("bias")) {
    const Shape want({channels}, DType::I32);
    if (c.input("bias").dtype() != DType::I32) return c.dtype_error("bias must be i32, got ", c.input("bias"));
    if (!(c.input("bias") == want)) return c.error("bias must be ", want, ", got ", c.input("bias"));
  }
  return std::nullopt;
}

/// The quantized values of I32 sums whose channels are along `axis`.
template <class Op>
Expr requantized(Graph& g, const Op& op, Expr sums, std::int64_t axis) {
  Expr mult;
  if (op.mult.size() == 1) {
    mult = g.scalar(op.mult[0]);
  } else {
    Tensor t = Tensor::zeros(Shape({static_cast<std::int64_t>(op.mult.size())}, DType::F32));
    for (std::size_t i = 0; i < op.mult.size(); ++i) t.set(static_cast<std::int64_t>(i), op.mult[i]);
    Dims dims(static_cast<std::size_t>(sums.rank()), Dim(1));
    dims[static_cast<std::size_t>(axis)] = Dim(static_cast<std::int64_t>(op.mult.size()));
    mult = g.reshape(g.constant(std::move(t)), dims);
  }
  const QuantizedRange range = quantized_range(op.dtype);
  Expr q = g.round(g.cast(sums, DType::F32) * mult);
  if (op.out_zp != 0) q = q + static_cast<double>(op.out_zp);
  return g.cast(g.clamp(q, range.low, range.high), op.dtype);
}

/// The same for reference rules: one sum of channel `channel`.
template <class Op>
double requantized_code(const Op& op, std::int32_t sum, std::int64_t channel) {
  const auto mult = static_cast<float>(op.mult[op.mult.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
  const float product = static_cast<float>(sum) * mult;
  const QuantizedRange range = quantized_range(op.dtype);
  return std::clamp(std::nearbyint(static_cast<double>(product)) + static_cast<double>(op.out_zp), range.low,
                    range.high);
}

/// I32 sums of quantized values minus their zero points: dot - w_zp rows - x_zp columns + depth x_zp w_zp. Rows and
/// columns are computed only where they are needed, and broadcast against dot.
template <class Op, class Rows, class Columns>
Expr without_zero_points(Graph& g, const Op& op, Expr dot, Rows&& rows, Columns&& columns, Expr depth) {
  if (op.w_zp != 0) dot = dot - rows() * g.scalar(op.w_zp, DType::I32);
  if (op.x_zp != 0) dot = dot - columns() * g.scalar(op.x_zp, DType::I32);
  if (op.x_zp != 0 && op.w_zp != 0) dot = dot + depth * g.scalar(op.x_zp * op.w_zp, DType::I32);
  return dot;
}

}  // namespace rlx
