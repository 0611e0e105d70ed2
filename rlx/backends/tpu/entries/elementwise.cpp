// Kernel entries of elementwise ops. They also serve the bodies of FusedDot and of regions.
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/backends/tpu/entries.h"
#include "rlx/backends/tpu/expression.h"
#include "rlx/elementwise/list.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::tpu {
namespace {

// -- functions of one operand --

Term hard_sigmoid(const Term& x) { return min(max(x + 3.0, 0.0), 6.0) / 6.0; }

// With parameters. The sum is that of the exact numbers, as near its zero its last bits matter.
Term hard_sigmoid(const Term& x, const FunctionParams& p) {
  const Term y = x.to(DType::F64) * p.alpha + p.beta;
  return min(max(y, 0.0), 1.0).to(x.dtype());
}

Term real_function(const Term& x, ActivationKind fn, bool own, const FunctionParams& p) {
  using K = ActivationKind;
  switch (fn) {
#define RLX_CASE(Kind, name, ...) \
  case K::Kind: return formula(#name, x, p.alpha);
    RLX_FOR_EACH_FORMULA(RLX_CASE)
    RLX_FOR_EACH_FORMULA_WITH_PARAMETER(RLX_CASE)
#undef RLX_CASE
    case K::Relu: return max(x, 0.0);
    case K::Sqrt: return sqrt(x);
    case K::Rsqrt: return x.apply("rsqrt");
    case K::Neg: return -x;
    case K::Abs: return abs(x);
    case K::Sin: return x.apply("sine");
    case K::Cos: return x.apply("cosine");
    case K::Tan: return x.apply("tan");
    case K::Atan: return atan(x);
    case K::Round: return x.apply("round_nearest_even");
    case K::Recip: return 1.0 / x;
    case K::Floor: return x.apply("floor");
    case K::Ceil: return x.apply("ceil");
    case K::Sign: return x.apply("sign");
    case K::HardSwish: return max(x, -3.0) * hard_sigmoid(x);
    case K::HardSigmoid: return own ? hard_sigmoid(x) : hard_sigmoid(x, p);
    case K::Softsign: {
      const Term a = abs(x);
      return select(a == HUGE_VAL, x.apply("sign"), x / (a + 1.0));
    }
    case K::Square: return x * x;
    case K::LeakyRelu: return select(x < 0.0, p.alpha == 0 ? x.like(-0.0) : x * p.alpha, x);
    case K::Asin: return atan2(x, sqrt((1.0 - x) * (x + 1.0)));
    case K::Acos: return atan2(sqrt((1.0 - x) * (x + 1.0)), x);
    case K::Cbrt: return cbrt(x);
    case K::Trunc: return select(x < 0.0, x.apply("ceil"), x.apply("floor"));
    case K::Lgamma: return lgamma(x);
    case K::Digamma: return digamma(x);
    case K::Polygamma: return polygamma(x, p.alpha);
    case K::Sinc: return sinc(x);
    case K::Not:
    case K::Popcount:
    case K::Clz: break;
  }
  check(false, "a float function has no StableHLO expression");
  return x;
}

Hlo integer_function(Writer& w, const Hlo& x, ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Relu: return is_signed_int(x.dtype) ? w.max(x, 0) : x;
    case ActivationKind::Neg: return w.neg(x);
    case ActivationKind::Abs: return is_signed_int(x.dtype) ? w.abs(x) : x;
    case ActivationKind::Sign:
      return is_signed_int(x.dtype) ? w.op("sign", x) : w.convert(w.compare("NE", x, 0), x.dtype);
    case ActivationKind::Not: return w.op("not", x);
    case ActivationKind::Square: return w.mul(x, x);
    case ActivationKind::Popcount: return w.op("popcnt", x);
    case ActivationKind::Clz: return w.op("count_leading_zeros", x);
    default: break;
  }
  check(false, "an integer function has no StableHLO expression");
  return x;
}

void emit_activation(EmitContext& c) {
  const auto& op = c.op<ops::Activation>();
  c.set(activation(c.w, c.in(0), op));
}

// -- functions of two operands --

// XLA would replace division by a constant or broadcast divisor by a multiplication with its reciprocal, which rounds
// twice. Here the divisor depends on the dividend.
Hlo quotient(Writer& w, const Hlo& a, const Hlo& b) {
  return w.div(a, w.select(w.compare("EQ", a, a), b, std::numeric_limits<double>::quiet_NaN()));
}

// A zero divisor is replaced by one; the following select sets the result of division by zero.
Hlo integer_quotient(Writer& w, const Hlo& a, const Hlo& b, BinaryKind fn) {
  const Hlo zero = w.compare("EQ", b, 0), safe = w.select(zero, 1, b);
  if (fn == BinaryKind::Div) return w.select(zero, 0, w.div(a, safe));
  Hlo r = w.op("remainder", a, safe);
  if (fn == BinaryKind::Mod && is_signed_int(a.dtype)) {  // the result has the divisor's sign
    const Hlo differ = w.compare("NE", w.compare("LT", r, 0), w.compare("LT", b, 0));
    r = w.select(w.both(w.compare("NE", r, 0), differ), w.add(r, b), r);
  }
  return w.select(zero, 0, r);
}

Hlo float_mod(Writer& w, const Hlo& x, const Hlo& y) {
  const Term b(w, y), r = Term(w, x).apply("remainder", b);
  const Term differ = (r < 0.0) != (b < 0.0);
  return select(r == 0.0, copysign(r.like(0), b), select(differ, r + b, r)).value();
}

// By repeated squaring, as often as the largest exponent needs. XLA's own op ignores bits of large exponents.
Hlo integer_power(Writer& w, const Hlo& a, const Hlo& b) {
  const HloType t = type_of(a);
  const HloType types[] = {t, t, t};
  const Hlo start[] = {w.full_like(a, 1), a, is_signed_int(a.dtype) ? w.max(b, 0) : b};
  const auto more = [&](const Hlos& v) {
    std::vector<std::int64_t> axes;
    for (int i = 0; i < v[2].rank(); ++i) axes.push_back(i);
    return Hlos{w.reduce("or", w.compare("NE", v[2], 0), w.scalar(DType::Bool, 0), axes)};
  };
  const auto step = [&](const Hlos& v) {
    const Hlo one = w.full_like(v[2], 1), odd = w.compare("NE", w.both(v[2], one), 0);
    return Hlos{w.select(odd, w.mul(v[0], v[1]), v[0]), w.mul(v[1], v[1]), w.op("shift_right_logical", v[2], one)};
  };
  const Hlo power = w.with_regions("while", start, types, {{types, more}, {types, step}})[0];
  if (!is_signed_int(a.dtype)) return power;
  const Hlo odd = w.compare("NE", w.both(b, w.full_like(b, 1)), 0);
  const Hlo of_minus_one = w.select(odd, -1, w.full_like(a, 1));
  const Hlo inverse =
      w.select(w.compare("EQ", a, 1), 1, w.select(w.compare("EQ", a, -1), of_minus_one, w.full_like(a, 0)));
  return w.select(w.compare("LT", b, 0), inverse, power);
}

Hlo complex_power(Writer& w, const Hlo& a, const Hlo& b) {
  const DType t = a.dtype;
  const Hlo y = cast(w, w.op("power", cast(w, a, t, DType::C128), cast(w, b, t, DType::C128)), DType::C128, t);
  return w.select(w.compare("EQ", b, 0), 1, w.select(w.compare("EQ", a, 0), 0, y));
}

// True for a float constant with an exact reciprocal.
bool is_power_of_two(const Graph& g, Value v) {
  const auto* c = g.node(v.node).op.get_if<ops::Constant>();
  if (!c || c->value.num_elements() != 1 || !is_float(c->value.dtype())) return false;
  int exponent = 0;
  return std::fabs(std::frexp(c->value.at(0), &exponent)) == 0.5 && std::abs(exponent) < 100;
}

void emit_binary(EmitContext& c) {
  const BinaryKind fn = c.op<ops::Binary>().fn;
  if (fn == BinaryKind::Div && is_power_of_two(c.graph(), c.node().inputs[1]))
    return c.set(c.w.div(c.spread(0), c.spread(1)));
  c.set(binary(c.w, c.spread(0), c.spread(1), fn));
}

// atan2 of two subnormal numbers is NaN on XLA's CPU, which otherwise flushes them to 0.
Term zero_if_subnormal(const Term& x) {
  const double smallest = x.dtype() == DType::F64 ? 0x1p-1022 : 0x1p-126;
  return select(abs(x) < smallest, copysign(x.like(0), x), x);
}

void emit_compare(EmitContext& c) {
  static constexpr std::string_view kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  c.set(c.w.compare(kDirections[static_cast<std::size_t>(c.op<ops::Compare>().fn)], c.spread(0), c.spread(1)));
}

void emit_where(EmitContext& c) { c.set(c.w.select(c.spread(0), c.spread(1), c.spread(2))); }
void emit_cast(EmitContext& c) { c.set(cast(c.w, c.in(0), c.in_dtype(0), c.dtype())); }
void emit_clamp(EmitContext& c) { c.set(c.w.min(c.w.max(c.spread(0), c.spread(1)), c.spread(2))); }

const char* refuses_activation(const Graph& g, NodeId id) {
  const ActivationKind fn = g.node(id).op.as<ops::Activation>().fn;
  const bool gamma = fn == ActivationKind::Lgamma || fn == ActivationKind::Polygamma;
  return refuse_unless(!gamma || g.shape(id).dtype() != DType::F64,
                       "XLA's gamma functions of f64 lose digits near their roots and where they are tiny");
}
const char* refuses_binary(const Graph& g, NodeId id) {
  const BinaryKind fn = g.node(id).op.as<ops::Binary>().fn;
  const bool series = fn == BinaryKind::Igamma || fn == BinaryKind::Igammac || fn == BinaryKind::IgammaGradA;
  return series ? "StableHLO text has no incomplete gamma function" : nullptr;
}
const char* refuses_compare(const Graph& g, NodeId id) {
  for (Value v : g.node(id).inputs)
    if (is_storage_only(g.shape(v).dtype())) return "it compares values of a dtype that is for storage only";
  return nullptr;
}

}  // namespace

Hlo activation(Writer& w, const Hlo& x, const ops::Activation& op) {
  if (is_complex(x.dtype)) return complex_function(w, x, op.fn);
  if (!is_float(x.dtype)) return integer_function(w, x, op.fn);
  // Half-precision functions are computed in F32 and rounded once.
  const Term wide(w, widen(w, x));
  return w.convert(real_function(wide, op.fn, has_own_params(op), function_params(op)).value(), x.dtype);
}

Hlo binary(Writer& w, const Hlo& a, const Hlo& b, BinaryKind fn) {
  const bool whole = is_int(a.dtype) || a.dtype == DType::Bool, is_bool = a.dtype == DType::Bool;
  switch (fn) {
    case BinaryKind::Add: return is_bool ? w.either(a, b) : w.add(a, b);
    case BinaryKind::Sub: return w.sub(a, b);
    case BinaryKind::Mul:
      return is_bool ? w.both(a, b) : is_complex(a.dtype) ? complex_product(w, a, b) : product(w, a, b);
    case BinaryKind::Div:
      if (whole) return integer_quotient(w, a, b, fn);
      if (is_complex(a.dtype)) return complex_quotient(w, a, b);
      return w.convert(quotient(w, widen(w, a), widen(w, b)), a.dtype);
    case BinaryKind::Max: return is_bool ? w.either(a, b) : w.max(a, b);
    case BinaryKind::Min: return is_bool ? w.both(a, b) : w.min(a, b);
    case BinaryKind::Pow:
      if (is_complex(a.dtype)) return complex_power(w, a, b);
      if (whole) return integer_power(w, a, b);
      return w.convert(w.op("power", widen(w, a), widen(w, b)), a.dtype);
    case BinaryKind::Mod:
      if (whole) return integer_quotient(w, a, b, fn);
      return w.convert(float_mod(w, widen(w, a), widen(w, b)), a.dtype);
    case BinaryKind::Atan2: {
      const Term y = zero_if_subnormal({w, widen(w, a)}), x = zero_if_subnormal({w, widen(w, b)});
      return w.convert(atan2(y, x).value(), a.dtype);
    }
    case BinaryKind::BitAnd: return w.both(a, b);
    case BinaryKind::BitOr: return w.either(a, b);
    case BinaryKind::BitXor: return w.op("xor", a, b);
    // A shift count that is negative or at least the width gives zeros, or the sign.
    case BinaryKind::Shl: return w.op("shift_left", a, b);
    case BinaryKind::Shr: return w.op(is_signed_int(a.dtype) ? "shift_right_arithmetic" : "shift_right_logical", a, b);
    case BinaryKind::Rem:
      if (whole) return integer_quotient(w, a, b, fn);
      return w.convert(w.op("remainder", widen(w, a), widen(w, b)), a.dtype);
    case BinaryKind::Hypot: return w.convert(hypot({w, widen(w, a)}, {w, widen(w, b)}).value(), a.dtype);
    case BinaryKind::LogAddExp: return w.convert(logaddexp({w, widen(w, a)}, {w, widen(w, b)}).value(), a.dtype);
    case BinaryKind::Igamma:
    case BinaryKind::Igammac:
    case BinaryKind::IgammaGradA: break;  // refused
  }
  check(false, "a binary function has no StableHLO expression");
  return a;
}

std::span<const KernelEntry> elementwise_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::Activation, refuses_activation, emit_activation},
      {OpKind::Binary, refuses_binary, emit_binary},
      {OpKind::Compare, refuses_compare, emit_compare},
      {OpKind::Where, never_refuses, emit_where},
      {OpKind::Cast, never_refuses, emit_cast},
      {OpKind::Clamp, never_refuses, emit_clamp},
  };
  return kRows;
}

}  // namespace rlx::tpu
