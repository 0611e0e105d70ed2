// Op structs that work element by element.
#pragma once

#include <optional>

#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

// clang-format off
namespace rlx {

namespace ops {

/// fn(x), elementwise. The result has the shape and dtype of x. x is a float; neg, abs, sign, square and relu also take
/// integers, not takes Bool or integers, popcount and clz take integers alone. alpha and beta are the parameters of
/// functions that have them; unset means the default (rlx/ir/math/function_table.h). leaky_relu: alpha is the slope
/// below 0. elu: alpha is the factor. hard_sigmoid: max(0, min(1, alpha x + beta)). polygamma: alpha is the order, an
/// integer from 0 to 170. lgamma is log |Gamma|, digamma is its derivative, and polygamma of order n is the n-th
/// derivative of digamma. sinc is sin(pi x) / (pi x). popcount is the number of 1 bits, clz the number of leading 0
/// bits, in the width of the dtype.
struct Activation {
  RLX_OP(Activation);
  ActivationKind fn = ActivationKind::Relu;
  std::optional<double> alpha{}, beta{};
};
/// fn(a, b), elementwise with broadcasting. a and b have equal dtypes. Integers wrap around at overflow. Integer x / 0,
/// mod by 0 and rem by 0 are 0, and the lowest integer / -1 is itself, as in NumPy (JAX leaves both undefined). div
/// truncates toward zero. mod has the divisor's sign, rem the dividend's. A shift by a negative count, or by the width
/// or more, gives 0; shr of a negative number gives -1 (as jax.lax). igamma(a, x) is the regularized lower incomplete
/// gamma function P for a >= 0 and x >= 0, NaN elsewhere. igammac is 1 - P, igamma_grad_a is the derivative of P by a.
struct Binary { RLX_OP(Binary); BinaryKind fn = BinaryKind::Add; };
/// fn(a, b), elementwise with broadcasting. The result is Bool.
struct Compare { RLX_OP(Compare); CompareKind fn = CompareKind::Eq; };
/// a where cond is true, b where it is false; elementwise, and all three broadcast. cond is Bool.
struct Where { RLX_OP(Where); };
/// Conversion of values by the rules of `Tensor::cast`. A float to an integer truncates toward zero and saturates, and
/// NaN gives 0. An integer to a narrower integer keeps the low bits. To Bool, every value but 0 is true, NaN too (as
/// jax.numpy.astype).
struct Cast { RLX_OP(Cast); DType to = DType::F32; };
/// min(max(x, low), high), elementwise with broadcasting. Composite.
struct Clamp { RLX_OP(Clamp); };
/// x, with a zero derivative.
struct StopGradient { RLX_OP(StopGradient); };

/// The bits of x reinterpreted as `to`, as numpy.ndarray.view and jax.lax.bitcast_convert_type. Integers, floats and
/// quantized dtypes of any width are allowed. Equal widths keep the dims. A narrower `to` adds a last axis of extent
/// old width / new width, lowest bits first; a wider one removes it: f32 [2, 3] as u8 is [2, 3, 4]. The derivative is
/// 0. Bool and complex dtypes can be read as themselves only.
struct Bitcast { RLX_OP(Bitcast); DType to = DType::F32; };
/// re + i im, elementwise with broadcasting: F32 -> C64, F64 -> C128. The bits of both parts are kept. Inputs: re, im.
struct Complex { RLX_OP(Complex); };
/// The real or imaginary part of a complex x: C64 -> F32, C128 -> F64.
struct ComplexPart { RLX_OP(ComplexPart); bool imag = false; };

}  // namespace ops
}  // namespace rlx
// clang-format on
