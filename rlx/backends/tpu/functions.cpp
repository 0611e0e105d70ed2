// Functions of F32 and F64 in which XLA is less accurate than a few ulp. On XLA's CPU backend tanh, erf and expm1 of
// F32 are 5 to 7 ulp off, log1p of F64 is 100 ulp off, and erfc, sinh and cosh are worse near the ends of their ranges.
// The comment of each function gives the largest error that tests/unit/tpu measured.
//
// Compilers may contract a product and a sum into one rounding, but do not reorder these formulas. Formulas that XLA's
// simplifier would reorder (sums with constants, products of exponentials) are avoided.
#include <cmath>
#include <limits>
#include <numbers>

#include "rlx/backends/tpu/expression.h"
#include "rlx/elementwise/functions.h"

namespace rlx::tpu {
namespace {

bool is_f64(const Term& x) { return x.dtype() == DType::F64; }
Term round(const Term& x) { return x.apply("round_nearest_even"); }

/// 2^n for an integer n in the range of normal exponents.
Term power_of_two(const Term& n) {
  const bool wide = is_f64(n);
  Writer& w = n.writer();
  const Term biased = n.to(wide ? DType::I64 : DType::I32) + (wide ? 1023.0 : 127.0);
  const Term bits = biased.apply("shift_left", biased.like(wide ? 52 : 23));
  return {w, w.bitcast(bits.value(), n.dtype())};
}

/// x with so many low bits of its significand cleared.
Term without_low_bits(const Term& x, int count) {
  Writer& w = x.writer();
  const DType t = is_f64(x) ? DType::U64 : DType::U32;
  const std::uint64_t bits = ~std::uint64_t{0} << count;
  const Hlo mask = w.broadcast(w.scalar_bits(t, is_f64(x) ? bits : bits & 0xffffffffU), x.value().dims, {});
  return {w, w.bitcast(w.both(w.bitcast(x.value(), t), mask), x.dtype())};
}

/// x 2^n, rounded once.
Term scaled(const Term& x, const Term& n) {
  const Term first = (n * 0.5).apply("floor");
  return x * power_of_two(first) * power_of_two(n - first);
}

/// A product of F64 that is not contracted with a later addition: by a select that neither XLA's simplifier nor the
/// compiler can fold.
Term unfused(const Term& x) { return is_f64(x) ? select(x == x, x, std::numeric_limits<double>::quiet_NaN()) : x; }

Term applied(const elementwise::Node& n, const Term& a, const Term& b, const Term& c) {
  using elementwise::Op;
  switch (n.op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Fma: return a * b + c;
    case Op::Neg: return -a;
    case Op::Abs: return abs(a);
    case Op::Sqrt: return sqrt(a);
    case Op::Min: return min(a, b);
    case Op::Max: return max(a, b);
    case Op::CopySign: return copysign(a, b);
    case Op::Round: return round(a);
    case Op::Floor: return a.apply("floor");
    case Op::Ceil: return a.apply("ceil");
    case Op::Scale: return scaled(a, b);
    case Op::WithoutLowBits: return without_low_bits(a, static_cast<int>(n.number));
    case Op::Rounded: return unfused(a);
    case Op::Less: return a < b;
    case Op::LessEqual: return a.compare("LE", b);
    case Op::Equal: return a == b;
    case Op::IsNan: return a != a;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Select: return select(a, b, c);
    case Op::ToF32: return a.to(DType::F32);
    case Op::ToF64: return a.to(DType::F64);
    case Op::Exp: return exp(a);
    case Op::Log: return log(a);
    case Op::Log1p: return a.apply("log_plus_one");
    case Op::Erf: return a.apply("chlo.erf");
    default: break;
  }
  check(false, "a formula has an operation that StableHLO lacks");
  return a;
}

}  // namespace

// Where the formula is more than an op of XLA, NaN is selected last: XLA's exp of a NaN constant may be a number.
Term formula(std::string_view name, const Term& x, double parameter) {
  const elementwise::Function* f = elementwise::find_function(name);
  check(f != nullptr, "a function has no formula");
  const elementwise::Expression e = is_f64(x) ? f->xla_f64() : f->xla_f32();
  const std::vector<int> uses = e.uses();
  std::vector<Term> values;
  values.reserve(e.nodes().size());
  for (std::size_t i = 0; i < e.nodes().size(); ++i) {
    const elementwise::Node& n = e.nodes()[i];
    if (uses[i] == 0) {
      values.push_back(x);  // in place of what nothing reads
    } else if (n.op == elementwise::Op::Input) {
      values.push_back(n.number == 0 ? x : x.like(parameter));
    } else if (n.op == elementwise::Op::Number) {
      values.push_back(Term(x.writer(), x.writer().full(n.type == elementwise::Type::F64 ? DType::F64 : DType::F32,
                                                        n.number, x.value().dims)));
    } else {
      values.push_back(applied(n, values[n.operands[0]], values[n.operands[1]], values[n.operands[2]]));
    }
  }
  const Term& y = values[e.result()];
  return e.nodes().size() > 2 ? select(x == x, y, x) : y;
}

Hlo product(Writer& w, const Hlo& a, const Hlo& b) { return unfused(Term(w, w.mul(a, b))).value(); }

Term copysign(const Term& x, const Term& s) {
  const Term size = abs(x);
  Writer& w = s.writer();
  const DType t = is_f64(s) ? DType::I64 : DType::I32;  // the sign is tested by its bit, as -0 < 0 is false
  const Term negative = Term(w, w.bitcast(s.value(), t)) < 0.0;
  return select(negative, -size, size);
}

// 1.5: a Newton step after XLA's cbrt, which is 7 units off in some versions.
Term cbrt(const Term& given) {
  const Term tiny = abs(given) < 0x1p-60;  // its step would underflow
  const Term x = select(tiny, given * 0x1p90, given);
  const Term y = x.apply("cbrt");
  const Term step = (y * y * y - x) / (y * y * 3.0);
  const Term root = select(abs(step) < abs(y), y - step, y);  // no step for 0, infinities and NaN
  return select(tiny, root * 0x1p-30, root);
}

// atan2 with a divisor that is 1 unless x is NaN. For a constant divisor XLA uses its own atan, which is wrong in some
// versions.
Term atan(const Term& x) { return atan2(x, select(x == x, x.like(1), x)); }

}  // namespace rlx::tpu
