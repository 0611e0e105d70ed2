// Activations as compositions of ops.
#include "rlx/functions/activations.h"

#include <cmath>

#include "rlx/ir/graph.h"

namespace rlx::nn {
namespace {

[[noreturn]] void refuse_parameter(const char* what, double value, const char* hint) {
  throw Error(ErrorCode::InvalidArgument, concat_text(what, ", got ", value), hint);
}
void check_float_operand(const Expr& x, const char* function) {
  if (is_float(x.dtype())) return;
  throw Error(ErrorCode::DTypeMismatch, concat_text(function, " needs a float operand, got ", x.shape()),
              "cast it first: g.cast(x, DType::F32)");
}

}  // namespace

Expr selu(const Expr& x) {
  check_float_operand(x, "selu");
  return x.graph().elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946;
}

Expr celu(const Expr& x, double alpha) {
  check_float_operand(x, "celu");
  if (!std::isfinite(alpha) || alpha == 0)
    refuse_parameter("celu: alpha must be finite and not 0", alpha, "the default is 1");
  Graph& g = x.graph();
  const Expr above = g.gt(x, 0.0);  // for x > 0 the exponential and its derivative may overflow, so they are not
                                    // computed there
  return g.where(above, x, g.expm1(g.where(above, 0.0, x) / alpha) * alpha);
}

Expr prelu(const Expr& x, const Expr& slope) {
  check_float_operand(x, "prelu");
  Graph& g = x.graph();
  return g.where(g.lt(x, 0.0), x * slope, x);
}

Expr thresholded_relu(const Expr& x, double alpha) {
  check_float_operand(x, "thresholded_relu");
  Graph& g = x.graph();
  return g.where(g.le(x, alpha), 0.0, x);
}

Expr hard_tanh(const Expr& x, double low, double high) {
  check_float_operand(x, "hard_tanh");
  if (!(low <= high)) refuse_parameter("hard_tanh: low must not be above high", low, "give the lower bound first");
  Graph& g = x.graph();
  return g.where(g.gt(x, high), high, g.where(g.lt(x, low), low, x));
}

Expr relu6(const Expr& x) {
  check_float_operand(x, "relu6");
  Graph& g = x.graph();
  return g.where(g.ge(x, 6.0), 6.0, g.where(g.le(x, 0.0), 0.0, x));
}

Expr squareplus(const Expr& x, double b) {
  check_float_operand(x, "squareplus");
  if (!(b >= 0)) refuse_parameter("squareplus: b must not be negative", b, "the default is 4");
  Graph& g = x.graph();
  // y = (x + h) / 2 with h = sqrt(x^2 + b). Below 0, where this cancels, y is the quotient of b and the other solution.
  // The slope is y / h.
  const auto root = [b](Graph& body, const Expr& v) { return body.hypot(v, std::sqrt(b)); };
  CustomFn fn;
  fn.name = "squareplus";
  fn.body = [=](Graph& body, const ExprList& in) {
    const Expr v = in[0], below = body.lt(v, 0.0), sum = root(body, v) + body.where(below, -v, v);
    return ExprList{body.where(below, 0.5 * b / sum, sum * 0.5)};
  };
  fn.jvp = [=, value = fn.body](Graph& body, const ExprList& in) {
    const double top = in[0].dtype() == DType::F64 ? 1e308 : in[0].dtype() == DType::F16 ? 65504 : 3e38;
    const Expr y = value(body, in)[0];
    return ExprList{y, in[1] * (body.min(y, top) / body.min(root(body, in[0]), top))};
  };
  return g.custom_fn({x}, fn)[0];
}

Expr shrink(const Expr& x, double lambda, double bias) {
  check_float_operand(x, "shrink");
  if (!(lambda >= 0)) refuse_parameter("shrink: lambda must not be negative", lambda, "the default is 0.5");
  Graph& g = x.graph();
  const Expr inside = g.where(g.lt(x, -lambda), x + bias, 0.0);
  return g.where(g.gt(x, lambda), x - bias, g.where(g.ne(x, x), x, inside));
}

// Its slope is tanh(x)^2, which loses no digits near 0 as 1 - (1 - tanh(x)^2) does.
Expr tanh_shrink(const Expr& x) {
  Graph& g = x.graph();
  if (!is_float(x.dtype())) return x - g.tanh(x);
  CustomFn fn;
  fn.name = "tanh_shrink";
  fn.body = [](Graph& body, const ExprList& in) {
    const DType t = in[0].dtype(), wide = accumulator_dtype(t);
    const Expr v = body.cast(in[0], wide);
    return ExprList{body.cast(v - body.tanh(v), t)};
  };
  fn.jvp = [f = fn.body](Graph& body, const ExprList& in) {
    return ExprList{f(body, in)[0], in[1] * body.square(body.tanh(in[0]))};
  };
  return g.custom_fn({x}, fn)[0];
}

}  // namespace rlx::nn
