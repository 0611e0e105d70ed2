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
#include "rlx/ir/math/erfinv_fit.h"

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

/// x without the low half of its significand, so that products of two such numbers are exact.
Term head_of(const Term& x) {
  Writer& w = x.writer();
  const DType t = is_f64(x) ? DType::U64 : DType::U32;
  const Hlo mask = w.broadcast(w.scalar_bits(t, is_f64(x) ? ~0x7ffffffULL : 0xfffff000U), x.value().dims, {});
  return {w, w.bitcast(w.both(w.bitcast(x.value(), t), mask), x.dtype())};
}

/// An unevaluated sum of two numbers. The second is smaller than the last place of the first.
struct Pair {
  Term high, low;
};
Pair sum_of(const Term& larger, const Term& smaller) {
  const Term s = larger + smaller;
  return {s, (larger - s) + smaller};
}
Pair square_of(const Term& a) {
  const Term h = head_of(a);
  return sum_of(h * h, (a + h) * (a - h));
}

/// exp(a^2 / 2) Phi(-a) in F32, where Phi is the normal distribution. It is evaluated at the multiple of 2^-19 next to
/// a, where neither a + 2.5 nor a - 2.5 is rounded: 1 / (a + 2.5) times a polynomial in (a - 2.5) / (a + 2.5), rlx's
/// own fit (relative error 3e-8). `slope` is the derivative at that point, and `rest` is the remainder of a.
struct ScaledTail {
  Term value, slope, rest;
};
ScaledTail scaled_tail(const Term& a) {
  static constexpr double kTail[] = {0.7066566348075867,     -0.4336921274662018,   0.13198786973953247,
                                     0.009237708523869514,   -0.016392327845096588, -0.0016095744213089347,
                                     0.0025382712483406067,  0.00070127536309883,   -0.0003223884850740433,
                                     -0.00016925708041526377};
  const Term at = round(a * 0x1p19) * 0x1p-19, to = at + 2.5;
  const Term value = polynomial((at - 2.5) / to, kTail) / to;
  return {value, at * value - 0.3989422804014327, a - at};
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

// exp(-x^2) / (x + 2.5) times a polynomial like that of scaled_tail (relative error 2e-17).
Term erfc_f64(const Term& x) {
  static constexpr double kScaled[] = {
      1.054031820305718,       -0.8046518494391481,    0.45391411664809606,     -0.17125114524611904,
      0.02836155013199473,     0.008393044304762171,   -0.004818785523205377,   -0.00043920830010581554,
      0.0007026937233533891,   5.8308058735361604e-05, -0.00011260482456045286, -1.953333845777584e-05,
      1.8244308800215586e-05,  6.757380560429954e-06,  -2.3319948528866095e-06, -1.968137420877816e-06,
      -6.745419093408688e-09,  4.542632669297592e-07,  1.3921099556569646e-07,  -7.419956065343542e-08,
      -5.3689273590814675e-08, 6.462039521335913e-09,  1.1361665461077836e-08,  -3.4673885145664285e-11,
      -1.1394337576305021e-09};
  const Term a = min(x, 28.0), to = a + 2.5;
  const Pair z = square_of(a);
  const Term e = exp(-z.high);
  return polynomial((a - 2.5) / to, kScaled) / to * (e - e * z.low);
}

Hlo product(Writer& w, const Hlo& a, const Hlo& b) { return unfused(Term(w, w.mul(a, b))).value(); }

Term copysign(const Term& x, const Term& s) {
  const Term size = abs(x);
  Writer& w = s.writer();
  const DType t = is_f64(s) ? DType::I64 : DType::I32;  // the sign is tested by its bit, as -0 < 0 is false
  const Term negative = Term(w, w.bitcast(s.value(), t)) < 0.0;
  return select(negative, -size, size);
}

// F32 1.5, F64 1
Term erf(const Term& x) {
  if (is_f64(x)) {
    Writer& w = x.writer();
    return {w, w.op("chlo.erf", x.value())};
  }
  static constexpr double kNear[] = {0.1283791670580219,     -0.3761263843465026,   0.11283781974097996,
                                     -0.026865400041806084,  0.005220945432090817,  -0.0008482828837451664,
                                     0.00011256947868987523, -9.641516011374925e-06};
  static constexpr double kFar[] = {-0.00017055203093064878, 1.129495159060096,     0.633386646560743,
                                    0.10823661933236454,     -0.025091496779984818, 0.004160526993326608,
                                    -0.00043230300526666393, 2.090955560545326e-05};
  const Term a = abs(x), z = x * x;
  const Term near = polynomial(z, kNear) * a + a;
  const Term far = 1.0 - exp(-polynomial(min(a, 4.0), kFar));
  return copysign(select(a >= 1.0, far, near), x);
}

// Computed in F64 with ir/math/erfinv_fit.h.
Term erfinv(const Term& given) {
  const Term x = given.to(DType::F64), a = abs(x);
  const Term w = -log((1.0 - a) * (a + 1.0)), u = sqrt(w);
  const Term outside = select(w > 16.0, polynomial(u - 5.05, erfinv_fit::kEnd), polynomial(u - 3.25, erfinv_fit::kFar));
  const Term y = select(w > 6.25, outside, polynomial(w - 3.125, erfinv_fit::kNear)) * a;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return copysign(select(a < 1.0, y, select(a == 1.0, HUGE_VAL, a.like(nan))), x).to(given.dtype());
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

// F32: x Phi(x) = max(x, 0) - |x| Phi(-|x|). F64: the same rule as the function table, whose rounding of x / sqrt(2) is
// as large as the whole tolerance.
// max 4 ulp
Term gelu(const Term& x) {
  if (is_f64(x)) {
    const Term tail = erfc_f64(abs(x * 0.70710678118654752440));
    return max(x, -1000.0) * 0.5 * select(x < 0.0, tail, 2.0 - tail);
  }
  const Term a = min(abs(x), 15.0);
  const Pair z = square_of(a);
  const ScaledTail t = scaled_tail(a);
  const Term tail = (t.value + (t.rest * t.slope - t.value * (z.low * 0.5))) * a * exp(z.high * -0.5);
  return select(x < 0.0, -tail, x - tail);
}

// atan2 with a divisor that is 1 unless x is NaN. For a constant divisor XLA uses its own atan, which is wrong in some
// versions.
Term atan(const Term& x) { return atan2(x, select(x == x, x.like(1), x)); }

}  // namespace rlx::tpu
