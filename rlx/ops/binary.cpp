// Binary: elementwise functions of two broadcast operands, one table row per function.
#include <cmath>
#include <complex>

#include "rlx/ir/ops/elementwise.h"
#include "rlx/ops/elementwise.h"

namespace rlx {
namespace {

using C = std::complex<double>;
using I = std::int64_t;
using U = std::uint64_t;
using Kind = BinaryKind;

/// ct * d fn / d operand, given both operands and y = fn(a, b). Linear in ct.
using Derivative = Expr (*)(Graph& g, Expr a, Expr b, Expr y, Expr ct);

constexpr DTypes kFloat = DTypes::Float;
constexpr DTypes kArithmetic = DTypes::Float | DTypes::Int | DTypes::Complex;
constexpr DTypes kBits = DTypes::Int | DTypes::Bool;

struct Row {
  Kind fn;
  DTypes dtypes;
  double (*real)(double, double) = nullptr;
  C (*complex)(C, C) = nullptr;
  I (*signed_int)(I, I, int bits) = nullptr;    // `bits`: width of the dtype
  U (*unsigned_int)(U, U, int bits) = nullptr;  // Bool too, as 0 and 1
  Derivative da = nullptr, db = nullptr;        // null: not differentiable (integers only)
  Fill fill_a = Fill::Normal, fill_b = Fill::Normal;
};

// -- functions --

double mod(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;  // the divisor's sign, as Python's %
}
I int_div(I a, I b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<I>(U{0} - static_cast<U>(a)) : a / b;  // the lowest value over -1 wraps
}
I int_mod(I a, I b) {
  if (b == 0 || b == -1) return 0;
  I r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
U int_pow(U base, U exponent) {
  U out = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) out *= base;
  return out;
}
I int_pow(I base, I exponent) {
  if (exponent >= 0) return static_cast<I>(int_pow(static_cast<U>(base), static_cast<U>(exponent)));
  if (base == 1) return 1;
  if (base == -1) return exponent & 1 ? -1 : 1;
  return 0;  // 1 / base^n truncated; 1 / 0 is 0 by the rule of division
}

// -- derivatives --

// A tie shares the cotangent equally, as in JAX.
Expr d_larger(Graph& g, Expr a, Expr b, Expr ct) { return g.where(g.gt(a, b), ct, g.where(g.eq(a, b), ct * 0.5, 0.0)); }

Expr d_pow_base(Graph& g, Expr a, Expr b, Expr, Expr ct) {
  // b = 0 would give 0 * a^-1, not a number at a = 0; and 0 times an infinite a is none either.
  const Expr flat = g.eq(b, 0.0);
  return ct * g.where(flat, 0.0, b * g.pow(a, g.where(flat, 1.0, b - 1.0)));
}
// The quotient a mod b counts: floor(a / b), and -1 where a / b vanishes and the result is a + b, not a.
Expr d_mod_divisor(Graph& g, Expr a, Expr b, Expr rest, Expr ct) {
  const Expr quotient = g.floor(a / b), negated = -quotient;
  const Expr one = g.where(g.ne(rest, a), g.scalar(1.0, negated.dtype()), negated);
  return ct * g.where(g.eq(quotient, 0.0), one, negated);
}

Expr d_pow_exponent(Graph& g, Expr a, Expr, Expr y, Expr ct) {
  // 0^b is flat in b; a negative base has no real derivative in b and counts as flat too.
  Expr usable = is_complex(a.dtype()) ? g.ne(a, 0.0) : g.gt(a, 0.0);
  return ct * y * g.log(g.where(usable, a, 1.0));
}

// -- the table --

constexpr Row kTable[] = {
    {.fn = Kind::Add,
     .dtypes = kArithmetic | DTypes::Bool,
     .real = [](double a, double b) { return a + b; },
     .complex = [](C a, C b) { return a + b; },
     .signed_int = [](I a, I b, int) { return static_cast<I>(static_cast<U>(a) + static_cast<U>(b)); },
     .unsigned_int = [](U a, U b, int) { return a + b; },
     .da = [](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = [](Graph&, Expr, Expr, Expr, Expr ct) { return ct; }},
    {.fn = Kind::Sub,
     .dtypes = kArithmetic,
     .real = [](double a, double b) { return a - b; },
     .complex = [](C a, C b) { return a - b; },
     .signed_int = [](I a, I b, int) { return static_cast<I>(static_cast<U>(a) - static_cast<U>(b)); },
     .unsigned_int = [](U a, U b, int) { return a - b; },
     .da = [](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = [](Graph&, Expr, Expr, Expr, Expr ct) { return -ct; }},
    {.fn = Kind::Mul,
     .dtypes = kArithmetic | DTypes::Bool,
     .real = [](double a, double b) { return a * b; },
     .complex = [](C a, C b) { return a * b; },
     .signed_int = [](I a, I b, int) { return static_cast<I>(static_cast<U>(a) * static_cast<U>(b)); },
     .unsigned_int = [](U a, U b, int) { return a * b; },
     .da = [](Graph&, Expr, Expr b, Expr, Expr ct) { return ct * b; },
     .db = [](Graph&, Expr a, Expr, Expr, Expr ct) { return ct * a; }},
    {.fn = Kind::Div,
     .dtypes = kArithmetic,
     .real = [](double a, double b) { return a / b; },
     .complex = [](C a, C b) { return a / b; },
     .signed_int = [](I a, I b, int) { return int_div(a, b); },
     .unsigned_int = [](U a, U b, int) { return b ? a / b : U{0}; },
     .da = [](Graph&, Expr, Expr b, Expr, Expr ct) { return ct / b; },
     .db = [](Graph&, Expr, Expr b, Expr y, Expr ct) { return -(ct * y / b); },
     .fill_b = Fill::Positive},
    {.fn = Kind::Max,
     .dtypes = kFloat | kBits,
     .real = [](double a, double b) { return a > b || std::isnan(a) ? a : b; },
     .signed_int = [](I a, I b, int) { return a > b ? a : b; },
     .unsigned_int = [](U a, U b, int) { return a > b ? a : b; },
     .da = [](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, a, b, ct); },
     .db = [](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, b, a, ct); }},
    {.fn = Kind::Min,
     .dtypes = kFloat | kBits,
     .real = [](double a, double b) { return a < b || std::isnan(a) ? a : b; },
     .signed_int = [](I a, I b, int) { return a < b ? a : b; },
     .unsigned_int = [](U a, U b, int) { return a < b ? a : b; },
     .da = [](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, b, a, ct); },
     .db = [](Graph& g, Expr a, Expr b, Expr, Expr ct) { return d_larger(g, a, b, ct); }},
    {.fn = Kind::Pow,
     .dtypes = kArithmetic,
     .real = [](double a, double b) { return std::pow(a, b); },
     .complex = [](C a, C b) { return b == C(0)   ? C(1)
                                      : a == C(0) ? C(0)
                                                  : std::pow(a, b); },
     .signed_int = [](I a, I b, int) { return int_pow(a, b); },
     .unsigned_int = [](U a, U b, int) { return int_pow(a, b); },
     .da = d_pow_base,
     .db = d_pow_exponent,
     .fill_a = Fill::Positive},
    {.fn = Kind::Mod,
     .dtypes = kFloat | DTypes::Int,
     .real = mod,
     .signed_int = [](I a, I b, int) { return int_mod(a, b); },
     .unsigned_int = [](U a, U b, int) { return b ? a % b : U{0}; },
     .da = [](Graph&, Expr, Expr, Expr, Expr ct) { return ct; },
     .db = d_mod_divisor,
     .fill_b = Fill::Positive},
    {.fn = Kind::Atan2,
     .dtypes = kFloat,
     .real = [](double a, double b) { return std::atan2(a, b); },
     .da = [](Graph&, Expr a, Expr b, Expr, Expr ct) { return ct * b / (a * a + b * b); },
     .db = [](Graph&, Expr a, Expr b, Expr, Expr ct) { return -(ct * a / (a * a + b * b)); },
     .fill_b = Fill::Positive},
    {.fn = Kind::BitAnd,
     .dtypes = kBits,
     .signed_int = [](I a, I b, int) { return a & b; },
     .unsigned_int = [](U a, U b, int) { return a & b; }},
    {.fn = Kind::BitOr,
     .dtypes = kBits,
     .signed_int = [](I a, I b, int) { return a | b; },
     .unsigned_int = [](U a, U b, int) { return a | b; }},
    {.fn = Kind::BitXor,
     .dtypes = kBits,
     .signed_int = [](I a, I b, int) { return a ^ b; },
     .unsigned_int = [](U a, U b, int) { return a ^ b; }},
    {.fn = Kind::Shl,
     .dtypes = DTypes::Int,
     .signed_int = [](I a, I b,
                      int bits) { return b < 0 || b >= bits ? I{0} : static_cast<I>(static_cast<U>(a) << b); },
     .unsigned_int = [](U a, U b, int bits) { return b >= static_cast<U>(bits) ? U{0} : a << b; }},
    {.fn = Kind::Shr,
     .dtypes = DTypes::Int,
     .signed_int = [](I a, I b, int bits) { return b < 0 || b >= bits ? (a < 0 ? I{-1} : I{0}) : a >> b; },
     .unsigned_int = [](U a, U b, int bits) { return b >= static_cast<U>(bits) ? U{0} : a >> b; }},
};

constexpr bool table_in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].fn) != i) return false;
  return std::size(kTable) == static_cast<std::size_t>(kNumBinaryKinds);
}
static_assert(table_in_order(), "kTable must have one row per BinaryKind, in its order");

const Row& row(Kind fn) { return kTable[static_cast<std::size_t>(fn)]; }

template <class T, class F>
void apply(const RefArgs& a, F fn) {
  std::vector<std::int64_t> dims = a.out().dims();
  std::vector<T> left = load_broadcast<T>(a.in(0), dims);
  const std::vector<T> right = load_broadcast<T>(a.in(1), dims);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = fn(left[i], right[i]);
  store_all(a.out(), left);
}

struct BinaryRules {
  static Result<Shapes> infer(const InferContext& c) {
    Kind fn = c.op<ops::Binary>().fn;
    if (static_cast<std::size_t>(fn) >= std::size(kTable)) return c.attr_error("has an unknown function");
    if (auto bad = c.check_same_dtype(0, 2)) return *bad;
    DType dtype = c.input(0).dtype();
    if (!contains(row(fn).dtypes, dtype))
      return c.dtype_error("needs ", dtypes_text(row(fn).dtypes), " operands, got ", c.input(0));
    Result<Dims> dims = broadcast_operands(c, 0, 2);
    if (!dims) return dims.error();
    return Shapes{Shape(*dims, dtype)};
  }

  static void reference(const RefArgs& a) {
    const Row& r = row(a.op<ops::Binary>().fn);
    DType dtype = a.in(0).dtype();
    int bits = dtype_bits(dtype);
    if (is_complex(dtype))
      apply<C>(a, r.complex);
    else if (is_signed_int(dtype))
      apply<I>(a, [&](I x, I y) { return r.signed_int(x, y, bits); });
    else if (is_float(dtype))
      apply<double>(a, r.real);
    else
      apply<U>(a, [&](U x, U y) { return r.unsigned_int(x, y, bits); });
  }

  static void vjp(VjpContext& c) {
    const Row& r = row(c.op<ops::Binary>().fn);
    if (!c.wants(0)) return;
    Expr a = c.input(0), b = c.input(1), y = c.output(), ct = c.cotangent();
    c.accumulate(0, r.da(c.graph(), a, b, y, ct));
    c.accumulate(1, r.db(c.graph(), a, b, y, ct));
  }
  static void jvp(JvpContext& c) {
    const Row& r = row(c.op<ops::Binary>().fn);
    Expr a = c.input(0), b = c.input(1), y = c.output();
    if (c.has_tangent(0)) c.add_tangent(0, r.da(c.graph(), a, b, y, c.tangent(0)));
    if (c.has_tangent(1)) c.add_tangent(0, r.db(c.graph(), a, b, y, c.tangent(1)));
  }
  static void batch(BatchContext& c) {
    int rank = c.result_shape().rank();
    Graph& g = c.graph();
    c.set_result(g.add(c.box(), {c.aligned(0, rank), c.aligned(1, rank)}));
  }

  static void samples(SampleSet& s) {
    auto pair = [](const Row& r, Dims a, Dims b, DType t) {
      return std::vector<SampleInput>{{Shape(std::move(a), t), r.fill_a}, {Shape(std::move(b), t), r.fill_b}};
    };
    for (const Row& r : kTable) {
      ops::Binary op{r.fn};
      std::string name(enum_name(r.fn));
      if (r.real) {
        s.add(name + " f32", pair(r, {2, 3}, {2, 3}, DType::F32), op);
        s.add(name + " f64 row", pair(r, {2, 3}, {3}, DType::F64), op);
        s.add(name + " left scalar", pair(r, {}, {2, 2}, DType::F32), op);
        s.add_discrete(name + " bf16", pair(r, {3}, {3}, DType::BF16), op);
        s.add_discrete(name + " f16", pair(r, {3}, {3}, DType::F16), op);
      }
      if (r.complex) s.add(name + " c64", pair(r, {2, 2}, {2}, DType::C64), op);
      if (r.signed_int) {
        for (DType t : {DType::I8, DType::I32, DType::I64})
          s.add_discrete(concat_text(name, " ", dtype_name(t)),
                         {{Shape({7}, t), Fill::Small}, {Shape({2, 7}, t), Fill::Small}}, op);
        for (DType t : {DType::U8, DType::U64})
          s.add_discrete(concat_text(name, " ", dtype_name(t)),
                         {{Shape({7}, t), Fill::Index, 9}, {Shape({2, 7}, t), Fill::Index, 4}}, op);
      }
      if (contains(r.dtypes, DType::Bool))
        s.add_discrete(name + " bool",
                       {{Shape({4, 1}, DType::Bool), Fill::Boolean}, {Shape({4}, DType::Bool), Fill::Boolean}}, op);
    }
    ops::Binary mul{Kind::Mul}, max{Kind::Max};
    s.add("both sides stretch", {Shape({2, 1, 3}, DType::F32), Shape({4, 1}, DType::F32)}, mul);
    s.add("right scalar", {Shape({2, 3}, DType::F32), Shape({}, DType::F32)}, mul);
    s.add("scalars", {Shape({}, DType::F32), Shape({}, DType::F32)}, mul);
    s.add("size one stays", {Shape({1, 1}, DType::F32), Shape({1}, DType::F32)}, max);
    s.add("no elements", {Shape({0, 3}, DType::F32), Shape({3}, DType::F32)}, mul);
    s.add("one stretches to none", {Shape({1, 3}, DType::F32), Shape({0, 1}, DType::F32)}, max);
    s.add_discrete("ties", {{Shape({16}, DType::F32), Fill::Small}, {Shape({16}, DType::F32), Fill::Small}}, max);
  }
  static constexpr AttrField attrs[] = {field<&ops::Binary::fn>("fn", AttrPlace::Mnemonic)};
};

}  // namespace

constinit const OpDef ops::Binary::def{.kind = kind,
                                       .name = "binary",
                                       .what = "An elementwise function of two operands, broadcast: add, mul, max, ...",
                                       .inputs = inputs("a", "b"),
                                       .attrs = BinaryRules::attrs,
                                       .level = Level::Mir,
                                       .leaf = LeafKind::None,
                                       .elementwise = ElementwiseKind::InBodies,
                                       .view = ViewKind::None,
                                       .precision = PrecisionCategory::Elementwise,
                                       .infer = BinaryRules::infer,
                                       .decompose = none("a primitive"),
                                       .vjp = BinaryRules::vjp,
                                       .jvp = BinaryRules::jvp,
                                       .batch = BinaryRules::batch,
                                       .reference = BinaryRules::reference,
                                       .cost = flops_per_element<1>,
                                       .samples = BinaryRules::samples};

}  // namespace rlx
