// Activation: elementwise functions of one operand, one table row per function.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/elementwise.h"

namespace rlx {
namespace {

using C = std::complex<double>;
using I = std::int64_t;
using U = std::uint64_t;
using Kind = ActivationKind;

/// ct * f'(x), given x and y = f(x). Linear in ct, so it serves both directions of differentiation.
using Derivative = Expr (*)(Graph& g, Expr x, Expr y, Expr ct);

constexpr DTypes kF = DTypes::Float;
constexpr DTypes kFC = DTypes::Float | DTypes::Complex;
constexpr DTypes kFI = DTypes::Float | DTypes::Int;
constexpr DTypes kAll = DTypes::Float | DTypes::Int | DTypes::Complex;

struct Row {
  Kind fn;
  DTypes dtypes;
  double (*real)(double) = nullptr;
  C (*complex)(C) = nullptr;
  I (*signed_int)(I) = nullptr;
  U (*unsigned_int)(U) = nullptr;
  Derivative derivative = nullptr;  // null: zero everywhere
  int flops = 1;
  Fill fill = Fill::Normal;  // values at which the function and its derivative are tame
};

// -- functions --

constexpr double kInvSqrt2 = 0.70710678118654752440;
const double kSqrt2OverPi = std::sqrt(2 / std::numbers::pi);
constexpr double kGeluCubic = 0.044715;  // Hendrycks and Gimpel, "Gaussian Error Linear Units"

// Both branches keep the exponential at most 1, so that no intermediate overflows.
double sigmoid(double x) {
  double e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
double softplus(double x) { return (x > 0 ? x : std::isnan(x) ? x : 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double relu(double x) { return x < 0 ? 0.0 : x; }  // NaN stays
// The factor x of a function that vanishes below: at -inf the product is its limit -0, not -inf * 0. Every such
// function is 0 in double long before -1000.
double vanishing(double x) { return std::max(x, -1000.0); }
double gelu(double x) { return 0.5 * vanishing(x) * std::erfc(-x * kInvSqrt2); }
double gelu_approx(double x) { return vanishing(x) * sigmoid(2 * kSqrt2OverPi * (x + kGeluCubic * x * x * x)); }
double silu(double x) { return vanishing(x) * sigmoid(x); }
double mish(double x) { return vanishing(x) * std::tanh(softplus(x)); }
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
double hard_sigmoid(double x) { return x <= -3 ? 0.0 : x >= 3 ? 1.0 : (x + 3) / 6; }
double hard_swish(double x) { return vanishing(x) * hard_sigmoid(x); }
double softsign(double x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }
double elu(double x) { return x > 0 ? x : std::expm1(x); }

U wrap_neg(U x) { return U{0} - x; }
I wrap_neg(I x) { return static_cast<I>(wrap_neg(static_cast<U>(x))); }

// -- derivatives --

Expr d_gelu(Graph& g, Expr x, Expr y, Expr ct) {
  // 1 + erf cancels below -1, where y = x cdf(x) has kept its digits.
  const Expr far = g.lt(x, -1.0);
  Expr cdf = g.where(far, y / g.where(far, x, -1.0), (g.erf(x * kInvSqrt2) + 1.0) * 0.5);
  Expr pdf = g.exp(x * x * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
  return ct * (cdf + x * pdf);
}
Expr d_gelu_approx(Graph& g, Expr x, Expr, Expr ct) {
  Expr x2 = x * x;
  Expr t = g.tanh((x + x2 * x * kGeluCubic) * kSqrt2OverPi);
  Expr inner = (x2 * (3 * kGeluCubic) + 1.0) * kSqrt2OverPi;
  return ct * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner);
}
Expr d_silu(Graph& g, Expr x, Expr, Expr ct) {
  Expr s = g.sigmoid(x);
  return ct * (s * (x * (1.0 - s) + 1.0));
}
Expr d_elu(Graph& g, Expr x, Expr, Expr ct) {
  return ct * g.exp(g.where(g.gt(x, 0.0), 0.0, x));  // not min(x, 0): its tie would halve the second derivative at 0
}
Expr d_hard_swish(Graph& g, Expr x, Expr, Expr ct) {
  Expr middle = ct * ((x * 2.0 + 3.0) / 6.0);
  return g.where(g.le(x, -3.0), 0.0, g.where(g.ge(x, 3.0), ct, middle));
}
Expr d_mish(Graph& g, Expr x, Expr, Expr ct) {
  Expr t = g.tanh(g.activation(Kind::Softplus, x));
  return ct * (t + x * (1.0 - t * t) * g.sigmoid(x));
}
Expr d_softsign(Graph& g, Expr x, Expr, Expr ct) {
  Expr denominator = g.abs(x) + 1.0;
  return ct / (denominator * denominator);
}

// -- the table --

constexpr Row kTable[] = {
    {.fn = Kind::Gelu, .dtypes = kF, .real = gelu, .derivative = d_gelu, .flops = 12},
    {.fn = Kind::GeluApprox, .dtypes = kF, .real = gelu_approx, .derivative = d_gelu_approx, .flops = 14},
    {.fn = Kind::Silu, .dtypes = kF, .real = silu, .derivative = d_silu, .flops = 10},
    {.fn = Kind::Relu,
     .dtypes = kFI,
     .real = relu,
     .signed_int = [](I x) { return x < 0 ? I{0} : x; },
     .unsigned_int = [](U x) { return x; },
     // y is positive where x is: a product's epilogue then makes y, and x is kept by nobody.
     .derivative = [](Graph& g, Expr, Expr y, Expr ct) { return g.where(g.gt(y, 0.0), ct, 0.0); }},
    {.fn = Kind::Sigmoid,
     .dtypes = kF,
     .real = sigmoid,
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return ct * (y * (1.0 - y)); },
     .flops = 9},
    {.fn = Kind::Tanh,
     .dtypes = kFC,
     .real = [](double x) { return std::tanh(x); },
     .complex = [](C x) { return std::tanh(x); },
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return ct * (1.0 - y * y); },
     .flops = 10},
    {.fn = Kind::Exp,
     .dtypes = kFC,
     .real = [](double x) { return std::exp(x); },
     .complex = [](C x) { return std::exp(x); },
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return ct * y; },
     .flops = 8},
    {.fn = Kind::Log,
     .dtypes = kFC,
     .real = [](double x) { return std::log(x); },
     .complex = [](C x) { return std::log(x); },
     .derivative = [](Graph&, Expr x, Expr, Expr ct) { return ct / x; },
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = Kind::Sqrt,
     .dtypes = kFC,
     .real = [](double x) { return std::sqrt(x); },
     .complex = [](C x) { return std::sqrt(x); },
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return ct * 0.5 / y; },
     .flops = 2,
     .fill = Fill::Positive},
    {.fn = Kind::Rsqrt,
     .dtypes = kFC,
     .real = [](double x) { return 1 / std::sqrt(x); },
     .complex = [](C x) { return 1.0 / std::sqrt(x); },
     .derivative = [](Graph&, Expr x, Expr y, Expr ct) { return ct * -0.5 * y / x; },
     .flops = 3,
     .fill = Fill::Positive},
    {.fn = Kind::Neg,
     .dtypes = kAll,
     .real = [](double x) { return -x; },
     .complex = [](C x) { return -x; },
     .signed_int = [](I x) { return wrap_neg(x); },
     .unsigned_int = [](U x) { return wrap_neg(x); },
     .derivative = [](Graph&, Expr, Expr, Expr ct) { return -ct; }},
    {.fn = Kind::Abs,
     .dtypes = kFI,
     .real = [](double x) { return std::fabs(x); },
     .signed_int = [](I x) { return x < 0 ? wrap_neg(x) : x; },
     .unsigned_int = [](U x) { return x; },
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return ct * g.sign(x); }},
    {.fn = Kind::Sin,
     .dtypes = kFC,
     .real = [](double x) { return std::sin(x); },
     .complex = [](C x) { return std::sin(x); },
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return ct * g.cos(x); },
     .flops = 10},
    {.fn = Kind::Cos,
     .dtypes = kFC,
     .real = [](double x) { return std::cos(x); },
     .complex = [](C x) { return std::cos(x); },
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return -(ct * g.sin(x)); },
     .flops = 10},
    {.fn = Kind::Tan,
     .dtypes = kFC,
     .real = [](double x) { return std::tan(x); },
     .complex = [](C x) { return std::tan(x); },
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return ct * (y * y + 1.0); },
     .flops = 14,
     .fill = Fill::Unit},
    {.fn = Kind::Atan,
     .dtypes = kFC,
     .real = [](double x) { return std::atan(x); },
     .complex = [](C x) { return std::atan(x); },
     .derivative = [](Graph&, Expr x, Expr, Expr ct) { return ct / (x * x + 1.0); },
     .flops = 12,
     .fill = Fill::Unit},
    {.fn = Kind::Round, .dtypes = kF, .real = [](double x) { return std::nearbyint(x); }},
    {.fn = Kind::Recip,
     .dtypes = kFC,
     .real = [](double x) { return 1 / x; },
     .complex = [](C x) { return 1.0 / x; },
     .derivative = [](Graph&, Expr, Expr y, Expr ct) { return -(ct * y * y); },
     .flops = 2,
     .fill = Fill::Positive},
    {.fn = Kind::Floor, .dtypes = kF, .real = [](double x) { return std::floor(x); }},
    {.fn = Kind::Ceil, .dtypes = kF, .real = [](double x) { return std::ceil(x); }},
    {.fn = Kind::Sign,
     .dtypes = kFI,
     .real = sign,
     .signed_int = [](I x) { return I{x > 0} - I{x < 0}; },
     .unsigned_int = [](U x) { return U{x > 0}; }},
    {.fn = Kind::Softplus,
     .dtypes = kF,
     .real = softplus,
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return ct * g.sigmoid(x); },
     .flops = 16},
    {.fn = Kind::Elu, .dtypes = kF, .real = elu, .derivative = d_elu, .flops = 9},
    {.fn = Kind::Erf,
     .dtypes = kF,
     .real = [](double x) { return std::erf(x); },
     .derivative = [](Graph& g, Expr x, Expr,
                      Expr ct) { return ct * (g.exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi)); },
     .flops = 12},
    {.fn = Kind::HardSwish, .dtypes = kF, .real = hard_swish, .derivative = d_hard_swish, .flops = 5},
    {.fn = Kind::HardSigmoid,
     .dtypes = kF,
     .real = hard_sigmoid,
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return g.where(g.lt(g.abs(x), 3.0), ct / 6.0, 0.0); },
     .flops = 4},
    {.fn = Kind::Mish, .dtypes = kF, .real = mish, .derivative = d_mish, .flops = 28},
    {.fn = Kind::Softsign, .dtypes = kF, .real = softsign, .derivative = d_softsign, .flops = 3},
    {.fn = Kind::LogSigmoid,
     .dtypes = kF,
     .real = [](double x) { return -softplus(-x); },
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return ct * g.sigmoid(-x); },
     .flops = 16},
    {.fn = Kind::Expm1,
     .dtypes = kF,
     .real = [](double x) { return std::expm1(x); },
     .derivative = [](Graph& g, Expr x, Expr, Expr ct) { return ct * g.exp(x); },
     .flops = 8},
    {.fn = Kind::Log1p,
     .dtypes = kF,
     .real = [](double x) { return std::log1p(x); },
     .derivative = [](Graph&, Expr x, Expr, Expr ct) { return ct / (x + 1.0); },
     .flops = 8,
     .fill = Fill::Positive},
    {.fn = Kind::Not,
     .dtypes = DTypes::Int | DTypes::Bool,
     .signed_int = [](I x) { return ~x; },
     .unsigned_int = [](U x) { return ~x; }},
    {.fn = Kind::Square,
     .dtypes = kAll,
     .real = [](double x) { return x * x; },
     .complex = [](C x) { return x * x; },
     .signed_int = [](I x) { return static_cast<I>(static_cast<U>(x) * static_cast<U>(x)); },
     .unsigned_int = [](U x) { return x * x; },
     .derivative = [](Graph&, Expr x, Expr, Expr ct) { return ct * x * 2.0; }},
};

constexpr bool table_in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].fn) != i) return false;
  return std::size(kTable) == static_cast<std::size_t>(kNumActivationKinds);
}
static_assert(table_in_order(), "kTable must have one row per ActivationKind, in its order");

const Row& row(Kind fn) { return kTable[static_cast<std::size_t>(fn)]; }

template <class T>
void apply(const RefArgs& a, T (*fn)(T)) {
  std::vector<T> values = load_all<T>(a.in(0));
  for (T& v : values) v = fn(v);
  store_all(a.out(), values);
}

struct ActivationRules {
  static Result<Shapes> infer(const InferContext& c) {
    Kind fn = c.op<ops::Activation>().fn;
    if (static_cast<std::size_t>(fn) >= std::size(kTable)) return c.attr_error("has an unknown function");
    const Shape& x = c.input(0);
    if (!contains(row(fn).dtypes, x.dtype()))
      return c.dtype_error("needs a ", dtypes_text(row(fn).dtypes), " operand, got ", x);
    return Shapes{x};
  }

  static void reference(const RefArgs& a) {
    const Row& r = row(a.op<ops::Activation>().fn);
    DType dtype = a.in(0).dtype();
    if (dtype == DType::Bool)
      apply<U>(a, [](U x) { return U{x == 0}; });  // logical, not bitwise
    else if (is_complex(dtype))
      apply(a, r.complex);
    else if (is_signed_int(dtype))
      apply(a, r.signed_int);
    else if (is_unsigned_int(dtype))
      apply(a, r.unsigned_int);
    else
      apply(a, r.real);
  }

  static void vjp(VjpContext& c) {
    Derivative d = row(c.op<ops::Activation>().fn).derivative;
    if (d && c.wants(0)) c.accumulate(0, d(c.graph(), c.input(0), c.output(), c.cotangent()));
  }
  static void jvp(JvpContext& c) {
    Derivative d = row(c.op<ops::Activation>().fn).derivative;
    if (d && c.has_tangent(0)) c.set_tangent(d(c.graph(), c.input(0), c.output(), c.tangent(0)));
  }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }

  static Cost cost(const CostContext& c) { return c.with_flops(row(c.op<ops::Activation>().fn).flops * c.elements()); }

  static void samples(SampleSet& s) {
    for (const Row& r : kTable) {
      ops::Activation op{r.fn};
      std::string name(enum_name(r.fn));
      if (r.real) {
        s.add(name + " f32", {{Shape({2, 3}, DType::F32), r.fill}}, op);
        s.add(name + " f64", {{Shape({3}, DType::F64), r.fill}}, op);
        s.add_discrete(name + " bf16", {{Shape({4}, DType::BF16), r.fill}}, op);
        s.add_discrete(name + " f16", {{Shape({4}, DType::F16), r.fill}}, op);
      }
      if (r.complex)
        s.add(name + " c64", {{Shape({3}, DType::C64), r.fill == Fill::Positive ? Fill::Positive : Fill::Unit}}, op);
      if (r.signed_int) {
        s.add_discrete(name + " i8", {{Shape({5}, DType::I8), Fill::Small}}, op);
        s.add_discrete(name + " i64", {{Shape({2, 2}, DType::I64), Fill::Small}}, op);
        s.add_discrete(name + " u32", {{Shape({3}, DType::U32), Fill::Index, 7}}, op);
      }
      if (contains(r.dtypes, DType::Bool))
        s.add_discrete(name + " bool", {{Shape({4}, DType::Bool), Fill::Boolean}}, op);
    }
    s.add("scalar", {Shape({}, DType::F32)}, ops::Activation{Kind::Silu});
    s.add("no elements", {Shape({0, 3}, DType::F32)}, ops::Activation{Kind::Gelu});
    s.add("rank 4", {Shape({2, 1, 3, 2}, DType::F32)}, ops::Activation{Kind::Tanh});
  }
  static constexpr AttrField attrs[] = {field<&ops::Activation::fn>("fn", AttrPlace::Mnemonic)};
};

}  // namespace

constinit const OpDef ops::Activation::def{.kind = kind,
                                           .name = "activation",
                                           .what = "An elementwise function of one operand: gelu, relu, exp, ...",
                                           .inputs = inputs("x"),
                                           .attrs = ActivationRules::attrs,
                                           .level = Level::Mir,
                                           .leaf = LeafKind::None,
                                           .elementwise = ElementwiseKind::InBodies,
                                           .view = ViewKind::None,
                                           .precision = PrecisionCategory::Elementwise,
                                           .infer = ActivationRules::infer,
                                           .decompose = none("a primitive"),
                                           .vjp = ActivationRules::vjp,
                                           .jvp = ActivationRules::jvp,
                                           .batch = ActivationRules::batch,
                                           .reference = ActivationRules::reference,
                                           .cost = ActivationRules::cost,
                                           .samples = ActivationRules::samples};

}  // namespace rlx
