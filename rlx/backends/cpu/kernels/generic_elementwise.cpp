// Elementwise ops of every dtype the tape does not take: operands become doubles, 64-bit integers or complex doubles a
// block at a time, so each result is rounded once. Also iota.
#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::cpu {
namespace {

using I = std::int64_t;
using U = std::uint64_t;
using C = std::complex<double>;

/// out[i] = f(a[i], b[i], c[i]) for i < n; `bits`: width of the operands' dtype.
template <class A>
using BlockFn = void (*)(const A* a, const A* b, const A* c, A* out, int n, int bits);

template <class A, auto F>
void unary(const A* a, const A*, const A*, A* out, int n, int) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i]);
}
template <class A, auto F>
void binary(const A* a, const A* b, const A*, A* out, int n, int) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i], b[i]);
}
template <class A, auto F>
void shift(const A* a, const A* b, const A*, A* out, int n, int bits) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i], b[i], bits);
}
template <class A>
void choose(const A* a, const A* b, const A* c, A* out, int n, int) {
  for (int i = 0; i < n; ++i) out[i] = a[i] != A(0) ? b[i] : c[i];
}
template <class A>
void same(const A* a, const A*, const A*, A* out, int n, int) {
  std::copy(a, a + n, out);
}

// -- functions --

double sigmoid(double x) {  // the exponential never exceeds 1
  const double e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
double softplus(double x) { return (x <= 0 ? 0.0 : x) + std::log1p(std::exp(-std::fabs(x))); }
double vanishing(double x) { return std::max(x, -1000.0); }  // a factor beside 0: -inf would make NaN of it
double gelu(double x) { return 0.5 * vanishing(x) * std::erfc(-x * 0.70710678118654752440); }
double gelu_tanh(double x) { return vanishing(x) * sigmoid(1.59576912160573071176 * (x + 0.044715 * x * x * x)); }
double silu(double x) { return vanishing(x) * sigmoid(x); }
double relu(double x) { return x < 0 ? 0.0 : x; }
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
double hard_sigmoid(double x) { return x <= -3 ? 0.0 : x >= 3 ? 1.0 : (x + 3) / 6; }
double hard_swish(double x) { return vanishing(x) * hard_sigmoid(x); }
double elu(double x) { return x > 0 ? x : std::expm1(x); }
double mish(double x) { return vanishing(x) * std::tanh(softplus(x)); }
double softsign(double x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }
double log_sigmoid(double x) { return -softplus(-x); }
double real_exp(double x) { return std::exp(x); }
double real_log(double x) { return std::log(x); }
double real_sqrt(double x) { return std::sqrt(x); }
double real_rsqrt(double x) { return 1 / std::sqrt(x); }
double real_tanh(double x) { return std::tanh(x); }
double real_sin(double x) { return std::sin(x); }
double real_cos(double x) { return std::cos(x); }
double real_tan(double x) { return std::tan(x); }
double real_atan(double x) { return std::atan(x); }
double real_round(double x) { return std::nearbyint(x); }
double real_floor(double x) { return std::floor(x); }
double real_ceil(double x) { return std::ceil(x); }
double real_abs(double x) { return std::fabs(x); }
double real_erf(double x) { return std::erf(x); }
double real_expm1(double x) { return std::expm1(x); }
double real_log1p(double x) { return std::log1p(x); }
template <class A>
A negate(A x) {
  return wide_sub(A(0), x);
}
double negate_real(double x) { return -x; }
C negate_complex(C x) { return -x; }
template <class A>
A recip(A x) {
  return 1.0 / x;
}
template <class A>
A square(A x) {
  return wide_mul(x, x);
}
C complex_exp(C x) { return std::exp(x); }
C complex_log(C x) { return std::log(x); }
C complex_sqrt(C x) { return std::sqrt(x); }
C complex_rsqrt(C x) { return 1.0 / std::sqrt(x); }
C complex_tanh(C x) { return std::tanh(x); }
C complex_sin(C x) { return std::sin(x); }
C complex_cos(C x) { return std::cos(x); }
C complex_tan(C x) { return std::tan(x); }
C complex_atan(C x) { return std::atan(x); }
I abs_int(I x) { return x < 0 ? negate(x) : x; }
I relu_int(I x) { return x < 0 ? 0 : x; }
I sign_int(I x) { return I{x > 0} - I{x < 0}; }
U sign_unsigned(U x) { return x > 0; }
U not_bool(U x) { return x == 0; }
template <class A>
A not_bits(A x) {
  return ~x;
}

double real_div(double a, double b) { return a / b; }
double real_max(double a, double b) { return a > b || a != a ? a : b; }
double real_min(double a, double b) { return a < b || a != a ? a : b; }
double real_pow(double a, double b) { return std::pow(a, b); }
double real_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
double real_atan2(double a, double b) { return std::atan2(a, b); }
C complex_div(C a, C b) { return a / b; }
C complex_pow(C a, C b) { return b == C(0) ? C(1) : a == C(0) ? C(0) : std::pow(a, b); }
I int_div(I a, I b) { return b == 0 ? 0 : b == -1 ? negate(a) : a / b; }
I int_mod(I a, I b) {
  if (b == 0 || b == -1) return 0;
  const I r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
U unsigned_div(U a, U b) { return b ? a / b : 0; }
U unsigned_mod(U a, U b) { return b ? a % b : 0; }
U unsigned_pow(U base, U exponent) {
  U out = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) out *= base;
  return out;
}
I int_pow(I base, I exponent) {
  if (exponent >= 0) return static_cast<I>(unsigned_pow(static_cast<U>(base), static_cast<U>(exponent)));
  if (base == 1) return 1;
  if (base == -1) return exponent & 1 ? -1 : 1;
  return 0;
}
template <class A>
A larger(A a, A b) {
  return a > b ? a : b;
}
template <class A>
A smaller(A a, A b) {
  return a < b ? a : b;
}
template <class A>
A bit_and(A a, A b) {
  return a & b;
}
template <class A>
A bit_or(A a, A b) {
  return a | b;
}
template <class A>
A bit_xor(A a, A b) {
  return a ^ b;
}
I shl_int(I a, I b, int bits) { return b < 0 || b >= bits ? 0 : static_cast<I>(static_cast<U>(a) << b); }
U shl_unsigned(U a, U b, int bits) { return b >= static_cast<U>(bits) ? 0 : a << b; }
I shr_int(I a, I b, int bits) { return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b; }
U shr_unsigned(U a, U b, int bits) { return b >= static_cast<U>(bits) ? 0 : a >> b; }

template <class A>
A is_eq(A a, A b) {
  return A(a == b ? 1 : 0);
}
template <class A>
A is_ne(A a, A b) {
  return A(a != b ? 1 : 0);
}
template <class A>
A is_lt(A a, A b) {
  return A(a < b ? 1 : 0);
}
template <class A>
A is_le(A a, A b) {
  return A(a <= b ? 1 : 0);
}
template <class A>
A is_gt(A a, A b) {
  return A(a > b ? 1 : 0);
}
template <class A>
A is_ge(A a, A b) {
  return A(a >= b ? 1 : 0);
}

// -- the tables --

template <class A>
BlockFn<A> activation_fn(ActivationKind fn, DType t) {
  using K = ActivationKind;
  if constexpr (std::is_same_v<A, double>) {
    switch (fn) {
      case K::Gelu: return unary<A, gelu>;
      case K::GeluApprox: return unary<A, gelu_tanh>;
      case K::Silu: return unary<A, silu>;
      case K::Relu: return unary<A, relu>;
      case K::Sigmoid: return unary<A, sigmoid>;
      case K::Tanh: return unary<A, real_tanh>;
      case K::Exp: return unary<A, real_exp>;
      case K::Log: return unary<A, real_log>;
      case K::Sqrt: return unary<A, real_sqrt>;
      case K::Rsqrt: return unary<A, real_rsqrt>;
      case K::Neg: return unary<A, negate_real>;
      case K::Abs: return unary<A, real_abs>;
      case K::Sin: return unary<A, real_sin>;
      case K::Cos: return unary<A, real_cos>;
      case K::Tan: return unary<A, real_tan>;
      case K::Atan: return unary<A, real_atan>;
      case K::Round: return unary<A, real_round>;
      case K::Recip: return unary<A, recip<A>>;
      case K::Floor: return unary<A, real_floor>;
      case K::Ceil: return unary<A, real_ceil>;
      case K::Sign: return unary<A, sign>;
      case K::Softplus: return unary<A, softplus>;
      case K::Elu: return unary<A, elu>;
      case K::Erf: return unary<A, real_erf>;
      case K::HardSwish: return unary<A, hard_swish>;
      case K::HardSigmoid: return unary<A, hard_sigmoid>;
      case K::Mish: return unary<A, mish>;
      case K::Softsign: return unary<A, softsign>;
      case K::LogSigmoid: return unary<A, log_sigmoid>;
      case K::Expm1: return unary<A, real_expm1>;
      case K::Log1p: return unary<A, real_log1p>;
      case K::Not: return nullptr;
      case K::Square: return unary<A, square<A>>;
    }
  } else if constexpr (std::is_same_v<A, C>) {
    switch (fn) {
      case K::Tanh: return unary<A, complex_tanh>;
      case K::Exp: return unary<A, complex_exp>;
      case K::Log: return unary<A, complex_log>;
      case K::Sqrt: return unary<A, complex_sqrt>;
      case K::Rsqrt: return unary<A, complex_rsqrt>;
      case K::Neg: return unary<A, negate_complex>;
      case K::Sin: return unary<A, complex_sin>;
      case K::Cos: return unary<A, complex_cos>;
      case K::Tan: return unary<A, complex_tan>;
      case K::Atan: return unary<A, complex_atan>;
      case K::Recip: return unary<A, recip<A>>;
      case K::Square: return unary<A, square<A>>;
      default: return nullptr;
    }
  } else {
    constexpr bool is_signed = std::is_same_v<A, I>;
    if (t == DType::Bool) {
      if constexpr (!is_signed) return fn == K::Not ? unary<A, not_bool> : nullptr;
    }
    switch (fn) {
      case K::Relu:
        if constexpr (is_signed)
          return unary<A, relu_int>;
        else
          return same<A>;
      case K::Neg: return unary<A, negate<A>>;
      case K::Abs:
        if constexpr (is_signed)
          return unary<A, abs_int>;
        else
          return same<A>;
      case K::Sign:
        if constexpr (is_signed)
          return unary<A, sign_int>;
        else
          return unary<A, sign_unsigned>;
      case K::Not: return unary<A, not_bits<A>>;
      case K::Square: return unary<A, square<A>>;
      default: return nullptr;
    }
  }
  return nullptr;
}

template <class A>
BlockFn<A> binary_fn(BinaryKind fn) {
  using K = BinaryKind;
  switch (fn) {
    case K::Add: return binary<A, wide_add<A>>;
    case K::Sub: return binary<A, wide_sub<A>>;
    case K::Mul: return binary<A, wide_mul<A>>;
    default: break;
  }
  if constexpr (std::is_same_v<A, double>) {
    switch (fn) {
      case K::Div: return binary<A, real_div>;
      case K::Max: return binary<A, real_max>;
      case K::Min: return binary<A, real_min>;
      case K::Pow: return binary<A, real_pow>;
      case K::Mod: return binary<A, real_mod>;
      case K::Atan2: return binary<A, real_atan2>;
      default: return nullptr;
    }
  } else if constexpr (std::is_same_v<A, C>) {
    return fn == K::Div ? binary<A, complex_div> : fn == K::Pow ? binary<A, complex_pow> : nullptr;
  } else {
    constexpr bool is_signed = std::is_same_v<A, I>;
    switch (fn) {
      case K::Max: return binary<A, larger<A>>;
      case K::Min: return binary<A, smaller<A>>;
      case K::BitAnd: return binary<A, bit_and<A>>;
      case K::BitOr: return binary<A, bit_or<A>>;
      case K::BitXor: return binary<A, bit_xor<A>>;
      default: break;
    }
    if constexpr (is_signed) {
      switch (fn) {
        case K::Div: return binary<A, int_div>;
        case K::Mod: return binary<A, int_mod>;
        case K::Pow: return binary<A, int_pow>;
        case K::Shl: return shift<A, shl_int>;
        case K::Shr: return shift<A, shr_int>;
        default: return nullptr;
      }
    } else {
      switch (fn) {
        case K::Div: return binary<A, unsigned_div>;
        case K::Mod: return binary<A, unsigned_mod>;
        case K::Pow: return binary<A, unsigned_pow>;
        case K::Shl: return shift<A, shl_unsigned>;
        case K::Shr: return shift<A, shr_unsigned>;
        default: return nullptr;
      }
    }
  }
}

template <class A>
BlockFn<A> compare_fn(CompareKind fn) {
  if (fn == CompareKind::Eq) return binary<A, is_eq<A>>;
  if (fn == CompareKind::Ne) return binary<A, is_ne<A>>;
  if constexpr (std::is_same_v<A, C>) {
    return nullptr;
  } else {
    switch (fn) {
      case CompareKind::Lt: return binary<A, is_lt<A>>;
      case CompareKind::Le: return binary<A, is_le<A>>;
      case CompareKind::Gt: return binary<A, is_gt<A>>;
      default: return binary<A, is_ge<A>>;
    }
  }
}

/// The function of a node on values of type A; null when there is none.
template <class A>
BlockFn<A> node_fn(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (const auto* op = n.op.get_if<ops::Activation>()) return activation_fn<A>(op->fn, in_dtype(g, id, 0));
  if (const auto* op = n.op.get_if<ops::Binary>()) return binary_fn<A>(op->fn);
  if (const auto* op = n.op.get_if<ops::Compare>()) return compare_fn<A>(op->fn);
  if (n.kind() == OpKind::Where) return choose<A>;
  return same<A>;  // cast
}

/// The dtype whose wide type the node computes in.
DType computed_dtype(const Graph& g, NodeId id) { return in_dtype(g, id, g.node(id).kind() == OpKind::Where ? 1 : 0); }

const char* wide_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(id))) return why;
  const bool has_fn = visit_wide(computed_dtype(g, id), [&]<class A>(A) { return node_fn<A>(g, id) != nullptr; });
  return refuse_unless(has_fn, "its function is not defined for this dtype");
}

template <class A>
struct WideStep {
  RowWalk<4> walk;  // three operands, the result
  int num_inputs = 0, bits = 0;
  const void* in[3] = {};
  void* out = nullptr;
  LoadBlock<A> load[3] = {};
  StoreBlock<A> store = nullptr;
  BlockFn<A> fn = nullptr;
  std::int64_t blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;

  static void run(const WideStep& s, std::int64_t chunk) {
    A values[3][kGenericBlock], result[kGenericBlock];
    RowWalk<4> walk = s.walk;
    const std::int64_t begin = chunk * s.blocks_per_chunk, end = std::min(s.blocks, begin + s.blocks_per_chunk);
    walk.seek(begin / s.blocks_per_row);
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t col = b % s.blocks_per_row * kGenericBlock;
      if (b != begin && col == 0) walk.next();
      const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, walk.cols() - col));
      for (int i = 0; i < s.num_inputs; ++i)
        s.load[i](s.in[i], walk.offset[i] + col * walk.step(i), walk.step(i), n, values[i]);
      s.fn(values[0], values[1], values[2], result, n, s.bits);
      s.store(s.out, walk.offset[3] + col * walk.step(3), walk.step(3), n, result);
    }
  }
};

void lower_wide(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0) return;
  const DType computed = computed_dtype(c.graph(), c.id());
  visit_wide(computed, [&]<class A>(A) {
    auto& s = c.keep<WideStep<A>>();
    s.num_inputs = c.num_inputs();
    s.bits = dtype_bits(computed);
    s.fn = node_fn<A>(c.graph(), c.id());
    s.store = store_block<A>(y.dtype);
    std::vector<std::vector<std::int64_t>> strides;
    for (int i = 0; i < s.num_inputs; ++i) {
      const View x = c.in(i);
      s.load[i] = load_block<A>(x.dtype);
      strides.push_back(broadcast_strides(x, y.dims));
      c.point(s.in[i], x);
    }
    strides.resize(3, std::vector<std::int64_t>(y.dims.size(), 0));
    strides.push_back(y.strides);
    c.point(s.out, y);
    s.walk.set(y.dims, strides);
    s.blocks_per_row = (s.walk.cols() + kGenericBlock - 1) / kGenericBlock;
    s.blocks = s.blocks_per_row * s.walk.rows();
    s.blocks_per_chunk =
        dtype_bits(y.dtype) < 8
            ? s.blocks
            : c.grain(std::max<std::int64_t>(1, 4096 / std::min<std::int64_t>(kGenericBlock, s.walk.cols())));
    c.step<WideStep<A>::run>(s, (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk,
                             3.0 * static_cast<double>(y.elements()));
  });
}

bool any_strides(const Graph&, NodeId, int) { return true; }

// -- iota --

struct IotaStep {
  void* y = nullptr;
  std::int64_t extent = 1, inner = 1, elements = 0;
  StoreBlock<std::int64_t> store = nullptr;
};
constexpr std::int64_t kIotaChunk = 1 << 14;
void run_iota(const IotaStep& s, std::int64_t chunk) {
  std::int64_t values[kGenericBlock];
  const std::int64_t end = std::min(s.elements, (chunk + 1) * kIotaChunk);
  for (std::int64_t i = chunk * kIotaChunk; i < end; i += kGenericBlock) {
    const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, end - i));
    for (int k = 0; k < n; ++k) values[k] = (i + k) / s.inner % s.extent;
    s.store(s.y, i, 1, n, values);
  }
}
void lower_iota(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0) return;
  const auto axis = static_cast<std::size_t>(c.op<ops::Iota>().axis);
  auto& s = c.keep<IotaStep>();
  c.point(s.y, y);
  s.extent = y.dims[axis];
  s.inner = product(std::span(y.dims).subspan(axis + 1));
  s.elements = y.elements();
  s.store = store_block<std::int64_t>(y.dtype);
  c.step<run_iota>(s, (s.elements + kIotaChunk - 1) / kIotaChunk, 2.0 * static_cast<double>(s.elements));
}

constexpr Row kRows[] = {
    {OpKind::Activation, "generic_activation", wide_refuses, lower_wide, any_strides},
    {OpKind::Binary, "generic_binary", wide_refuses, lower_wide, any_strides},
    {OpKind::Compare, "generic_compare", wide_refuses, lower_wide, any_strides},
    {OpKind::Where, "generic_where", wide_refuses, lower_wide, any_strides},
    {OpKind::Cast, "generic_cast", wide_refuses, lower_wide, any_strides},
    {OpKind::Iota, "iota", never_refuses, lower_iota},
};

}  // namespace

std::span<const Row> generic_elementwise_rows() { return kRows; }

}  // namespace rlx::cpu
