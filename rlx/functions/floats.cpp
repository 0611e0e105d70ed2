// Classification and decomposition of floating-point numbers by their bits (frexp, ldexp, nextafter, ..).
#include "rlx/functions/floats.h"

#include <cmath>
#include <limits>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::floats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The bit layout of a float dtype. `bits` is the integer dtype of the same width.
struct FloatLayout {
  DType bits;
  int fraction, bias;
};
FloatLayout layout_of(const Expr& x, const char* function) {
  switch (x.dtype()) {
    case DType::F64: return {DType::I64, 52, 1023};
    case DType::F32: return {DType::I32, 23, 127};
    case DType::BF16: return {DType::I16, 7, 127};
    case DType::F16: return {DType::I16, 10, 15};
    default:
      throw Error(ErrorCode::DTypeMismatch, concat_text(function, " needs floats, got ", x.shape()),
                  "cast it first: g.cast(x, DType::F32)");
  }
}

Expr part_of(const Expr& x, bool imag) { return x.graph().add(ops::ComplexPart{imag}, {x}); }
Expr never(const Expr& x) { return x.graph().ne(x, x); }
bool is_exact(const Expr& x) { return is_int(x.dtype()) || x.dtype() == DType::Bool; }

/// 2^n in the dtype of x, for integers n for which it is a normal number.
Expr power_of_two(const Expr& n, const Expr& x, const FloatLayout& f) {
  Graph& g = x.graph();
  return g.bitcast(g.shl(g.cast(n + f.bias, f.bits), g.scalar(f.fraction, f.bits)), x.dtype());
}
/// x 2^n, rounded once. The first two multiplications are exact unless the result is 0 or infinite; only the last one
/// rounds.
Expr scaled(const Expr& x, Expr n, const FloatLayout& f) {
  Graph& g = x.graph();
  if (x.dtype() == DType::F16) {  // all F16 numbers are normal numbers in F32
    const Expr wide = g.cast(x, DType::F32);
    return g.cast(scaled(wide, n, layout_of(wide, "ldexp")), DType::F16);
  }
  const int low = 1 - f.bias, high = f.bias, down = low + f.fraction + 1;
  n = g.min(g.max(n, 4 * low), 4 * high);
  Expr y = x;
  for (int i = 0; i < 2; ++i) {
    const Expr step = g.where(g.gt(n, high), high, g.where(g.lt(n, low), g.scalar(down, n.dtype()), 0));
    y = y * power_of_two(step, x, f);
    n = n - step;
  }
  return y * power_of_two(g.min(g.max(n, low), high), x, f);
}

}  // namespace

Expr is_nan(const Expr& x) { return x.graph().ne(x, x); }

Expr is_inf(const Expr& x) {
  Graph& g = x.graph();
  if (is_exact(x)) return never(x);
  if (is_complex(x.dtype())) return g.bit_or(is_inf(part_of(x, false)), is_inf(part_of(x, true)));
  return g.eq(g.abs(x), kInfinity);
}

Expr is_finite(const Expr& x) {
  Graph& g = x.graph();
  if (is_exact(x)) return g.eq(x, x);
  if (is_complex(x.dtype())) return g.bit_and(is_finite(part_of(x, false)), is_finite(part_of(x, true)));
  return g.lt(g.abs(x), kInfinity);
}

Expr signbit(const Expr& x) {
  Graph& g = x.graph();
  if (is_signed_int(x.dtype())) return g.lt(x, 0);
  if (is_exact(x)) return never(x);
  return g.lt(g.bitcast(x, layout_of(x, "signbit").bits), 0);
}

Expr copysign(const Expr& x, const Expr& y) {
  layout_of(x, "copysign");
  Graph& g = x.graph();
  return g.where(g.ne(signbit(x), signbit(y)), -x, x);
}

Expr nextafter(const Expr& x, const Expr& y) {
  const FloatLayout f = layout_of(x, "nextafter");
  Graph& g = x.graph();
  const Expr stays = g.stop_gradient(x), target = g.stop_gradient(y), back = stays - target;
  const Expr last = g.scalar(dtype_bits(f.bits) - 1, f.bits);
  // The bits of a float are sign and magnitude, so a step away from 0 adds one to them. For x = 0 the sign of y is
  // taken. The direction comes from a comparison, because devices that flush subnormal numbers lose the sign of a small
  // x - y.
  const Expr bits =
      g.where(g.eq(x, 0.0), g.bit_and(g.bitcast(y, f.bits), g.shl(g.scalar(-1, f.bits), last)), g.bitcast(x, f.bits));
  const Expr down = g.bit_or(g.shr(bits, last), 1);  // what a step down subtracts: 1 for positive numbers, -1 for
                                                     // negative ones
  const Expr next = g.bitcast(bits - g.where(g.lt(stays, target), -down, down), x.dtype());
  return g.where(g.eq(x, y), target, g.where(g.ne(back, back), back, next));
}

Expr ldexp(const Expr& x, const Expr& n) {
  const FloatLayout f = layout_of(x, "ldexp");
  if (!is_int(n.dtype()))
    throw Error(ErrorCode::DTypeMismatch, concat_text("ldexp needs integer exponents, got ", n.shape()),
                "cast them first: g.cast(n, DType::I32)");
  Graph& g = x.graph();
  const bool narrow = dtype_bits(n.dtype()) < 16;
  const Expr wide = narrow ? g.cast(n, DType::I32) : is_signed_int(n.dtype()) ? n : g.min(n, 1 << 14);
  return scaled(x, g.cast(g.min(g.max(wide, is_signed_int(wide.dtype()) ? -(1 << 14) : 0), 1 << 14), DType::I32), f);
}

Frexp frexp(const Expr& x) {
  const FloatLayout f = layout_of(x, "frexp");
  Graph& g = x.graph();
  const Expr size = g.stop_gradient(g.abs(x));
  const Expr plain = g.bit_and(g.gt(size, 0.0), g.lt(size, kInfinity));
  // Scales subnormal numbers to normal ones first.
  const Expr tiny = g.lt(size, std::ldexp(1.0, 1 - f.bias));
  const Expr normal = g.where(tiny, size * std::ldexp(1.0, f.fraction + 1), size);
  const Expr field = g.cast(g.shr(g.bitcast(normal, f.bits), g.scalar(f.fraction, f.bits)), DType::I32);
  const Expr e = g.where(plain, field - (f.bias - 1) - g.where(tiny, f.fraction + 1, g.scalar(0, DType::I32)), 0);
  return {g.where(plain, scaled(x, -e, f), x), e};
}

}  // namespace rlx::floats
