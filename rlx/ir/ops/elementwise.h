// Op structs that work element by element.
#pragma once

#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// fn(x), elementwise. x: float (neg, abs, sign, square, relu: also integers; not: Bool or integers) -> same shape and
/// dtype. alpha and beta are parameters of the functions that have them, unset: the function's own (function_table.h):
/// leaky_relu's slope below 0; elu's factor; hard_sigmoid's max(0, min(1, alpha x + beta)).
struct Activation {
  RLX_OP(Activation);
  ActivationKind fn = ActivationKind::Relu;
  std::optional<double> alpha{}, beta{};
};
/// fn(a, b), elementwise with broadcasting. a, b: equal dtypes -> broadcast shape.
struct Binary { RLX_OP(Binary); BinaryKind fn = BinaryKind::Add; };
/// fn(a, b), elementwise with broadcasting -> Bool.
struct Compare { RLX_OP(Compare); CompareKind fn = CompareKind::Eq; };
/// cond ? a : b, elementwise; cond Bool; all three broadcast.
struct Where { RLX_OP(Where); };
/// Numeric conversion by the rules of `Tensor::cast`.
struct Cast { RLX_OP(Cast); DType to = DType::F32; };
/// min(max(x, low), high), elementwise with broadcasting. Composite.
struct Clamp { RLX_OP(Clamp); };
/// x, with a zero derivative.
struct StopGradient { RLX_OP(StopGradient); };

/// The bits of x read as `to`. Equal widths keep the dims; a narrower `to` adds a last axis of the ratio, a wider one takes
/// it away, as jax.lax.bitcast_convert_type.
struct Bitcast { RLX_OP(Bitcast); DType to = DType::F32; };
/// re + i im, elementwise with broadcasting: F32 -> C64, F64 -> C128; every bit of both parts stays. Inputs: re, im.
struct Complex { RLX_OP(Complex); };
/// The real or imaginary part of a complex x: C64 -> F32, C128 -> F64.
struct ComplexPart { RLX_OP(ComplexPart); bool imag = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
