// Op structs that work element by element.
#pragma once

#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// fn(x), elementwise. x: float (neg, abs, sign, square, relu: also integers; not: Bool or integers; popcount, clz:
/// integers alone) -> same shape and dtype. alpha and beta are parameters of the functions that have them, unset: the
/// function's own (function_table.h): leaky_relu's slope below 0; elu's factor; hard_sigmoid's
/// max(0, min(1, alpha x + beta)); polygamma's order, a whole number from 0 to 170. lgamma is log |Gamma|, digamma its
/// derivative, polygamma of order n the n-th derivative of digamma; sinc is sin(pi x) / (pi x); popcount counts the
/// bits that are 1, clz those above the highest 1, both of the dtype's width.
struct Activation {
  RLX_OP(Activation);
  ActivationKind fn = ActivationKind::Relu;
  std::optional<double> alpha{}, beta{};
};
/// fn(a, b), elementwise with broadcasting. a, b: equal dtypes -> broadcast shape. Integers wrap around at overflow, in
/// the low bits of their width; x / 0, mod and rem by 0 are 0, and the lowest number / -1 is itself (NumPy; JAX leaves
/// both open). div truncates toward zero; mod has the divisor's sign, rem the dividend's. Shifts by a negative count or
/// by the width or more give 0, shr of a negative number -1 (jax.lax). igamma(a, x) is the regularised lower incomplete
/// gamma function P of a >= 0, x >= 0, NaN elsewhere; igammac is 1 - P, igamma_grad_a the derivative of P by a.
struct Binary { RLX_OP(Binary); BinaryKind fn = BinaryKind::Add; };
/// fn(a, b), elementwise with broadcasting -> Bool.
struct Compare { RLX_OP(Compare); CompareKind fn = CompareKind::Eq; };
/// cond ? a : b, elementwise; cond Bool; all three broadcast.
struct Where { RLX_OP(Where); };
/// Numeric conversion by the rules of `Tensor::cast`: a float to an integer truncates toward zero and saturates, NaN
/// gives 0; an integer to a narrower one keeps the low bits; to Bool all but 0 is true, NaN too (jax.numpy.astype).
struct Cast { RLX_OP(Cast); DType to = DType::F32; };
/// min(max(x, low), high), elementwise with broadcasting. Composite.
struct Clamp { RLX_OP(Clamp); };
/// x, with a zero derivative.
struct StopGradient { RLX_OP(StopGradient); };

/// The bits of x read as `to`, a number or code of any width. Equal widths keep the dims; a narrower `to` adds a last
/// axis of the ratio, lowest bits first, a wider one takes it away: f32 [2, 3] as u8 is [2, 3, 4]. The derivative is 0.
/// Bool and complex dtypes are read as themselves only. numpy.ndarray.view, jax.lax.bitcast_convert_type.
struct Bitcast { RLX_OP(Bitcast); DType to = DType::F32; };
/// re + i im, elementwise with broadcasting: F32 -> C64, F64 -> C128; every bit of both parts stays. Inputs: re, im.
struct Complex { RLX_OP(Complex); };
/// The real or imaginary part of a complex x: C64 -> F32, C128 -> F64.
struct ComplexPart { RLX_OP(ComplexPart); bool imag = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
