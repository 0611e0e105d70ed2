// Elementwise ops of every dtype the tape does not take: operands become doubles, 64-bit integers or complex doubles a
// block at a time, so each result is rounded once. Also iota.
#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/kernels/generic_functions.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::cpu {
namespace {

using I = std::int64_t;
using U = std::uint64_t;
using C = std::complex<double>;

template <class A, auto F>
void binary(const A* a, const A* b, const A*, A* out, int n, const BlockArgs&) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i], b[i]);
}
template <class A, auto F>
void shift(const A* a, const A* b, const A*, A* out, int n, const BlockArgs& args) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i], b[i], args.bits);
}
template <class A>
void choose(const A* a, const A* b, const A* c, A* out, int n, const BlockArgs&) {
  for (int i = 0; i < n; ++i) out[i] = a[i] != A(0) ? b[i] : c[i];
}
template <class A>
void same(const A* a, const A*, const A*, A* out, int n, const BlockArgs&) {
  std::copy(a, a + n, out);
}

// -- functions --

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
I int_div(I a, I b) { return b == 0 ? 0 : b == -1 ? wide_sub(I{0}, a) : a / b; }
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
  if (const auto* op = n.op.get_if<ops::Activation>()) return activation_block<A>(*op, in_dtype(g, id, 0));
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
  int num_inputs = 0;
  BlockArgs args;
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
      s.fn(values[0], values[1], values[2], result, n, s.args);
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
    s.args.bits = dtype_bits(computed);
    if (const auto* op = c.graph().node(c.id()).op.template get_if<ops::Activation>())
      s.args.params = function_params(*op);
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
