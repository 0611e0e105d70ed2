// Elementwise ops of every dtype that the tape does not take. Operands are converted to double, 64-bit integers or
// complex<double> a block at a time, so each result is rounded once. Also iota.
#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"
#include "rlx/backends/cpu/elementwise/typed.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/generic/generic_functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::cpu {
namespace {

using C = std::complex<double>;

template <class A, auto F>
void binary(const A* a, const A* b, const A*, A* out, int n, const BlockArgs&) {
  for (int i = 0; i < n; ++i) out[i] = F(a[i], b[i]);
}
template <class A>
void choose(const A* a, const A* b, const A* c, A* out, int n, const BlockArgs&) {
  for (int i = 0; i < n; ++i) out[i] = a[i] != A(0) ? b[i] : c[i];
}
template <class A>
void same(const A* a, const A*, const A*, A* out, int n, const BlockArgs&) {
  std::copy(a, a + n, out);
}

// -- comparisons --

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
  if (const auto* op = n.op.get_if<ops::Binary>()) return binary_block<A>(op->fn);
  if (const auto* op = n.op.get_if<ops::Compare>()) return compare_fn<A>(op->fn);
  if (n.kind() == OpKind::Where) return choose<A>;
  return same<A>;  // cast
}

/// The dtype whose compute type the node uses.
DType computed_dtype(const Graph& g, NodeId id) { return in_dtype(g, id, g.node(id).kind() == OpKind::Where ? 1 : 0); }

/// A vectorised version of the function, and its approximate ns per element. fn is null where there is none.
struct VectorFn {
  BlockFn<double> fn = nullptr;
  int which = 0;
  double cost = 3;
};
VectorFn vector_fn(const Node& n, Isa isa) {
  if (const auto* op = n.op.get_if<ops::Activation>()) {
    const bool takes_alpha = op->fn == ActivationKind::Elu || op->fn == ActivationKind::LeakyRelu;
    if (f64_has(op->fn) && (takes_alpha || has_own_params(*op)))
      return {f64_kernels(isa).unary, static_cast<int>(op->fn), f64_cost(op->fn)};
  }
  if (const auto* op = n.op.get_if<ops::Binary>(); op && f64_has(op->fn))
    return {f64_kernels(isa).binary, static_cast<int>(op->fn), f64_cost(op->fn)};
  return {};
}

const char* f64_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(g.shape(id))) return why;
  const bool has_fn = visit_f64(computed_dtype(g, id), [&]<class A>(A) { return node_fn<A>(g, id) != nullptr; });
  return refuse_unless(has_fn, "its function is not defined for this dtype");
}

/// Whether elements of dtype `t` are stored as A.
template <class A>
bool holds(DType t) {
  if constexpr (std::is_same_v<A, double>)
    return t == DType::F64;
  else if constexpr (std::is_same_v<A, std::int64_t>)
    return t == DType::I64;
  else if constexpr (std::is_same_v<A, std::uint64_t>)
    return t == DType::U64;
  else
    return t == DType::C128;
}

template <class A>
struct F64Step {
  RowIterator<4> walk;  // three operands, the result
  int num_inputs = 0;
  BlockArgs args;
  const void* in[3] = {};
  void* out = nullptr;
  LoadBlock<A> load[3] = {};      // null where an operand is read in place: contiguous elements of the compute type
  StoreBlock<A> store = nullptr;  // the same for the result
  BlockFn<A> fn = nullptr;
  std::int64_t blocks_per_row = 1, blocks = 0, blocks_per_chunk = 1;

  static void run(const F64Step& s, std::int64_t chunk) {
    A values[3][kGenericBlock], result[kGenericBlock];
    RowIterator<4> walk = s.walk;
    const std::int64_t begin = chunk * s.blocks_per_chunk, end = std::min(s.blocks, begin + s.blocks_per_chunk);
    walk.seek(begin / s.blocks_per_row);
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t col = b % s.blocks_per_row * kGenericBlock;
      if (b != begin && col == 0) walk.next();
      const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, walk.cols() - col));
      const A* operands[3] = {values[0], values[1], values[2]};
      for (int i = 0; i < s.num_inputs; ++i) {
        const std::int64_t at = walk.offset[i] + col * walk.step(i);
        if (s.load[i])
          s.load[i](s.in[i], at, walk.step(i), n, values[i]);
        else
          operands[i] = static_cast<const A*>(s.in[i]) + at;
      }
      const std::int64_t at = walk.offset[3] + col * walk.step(3);
      A* const to = s.store ? result : static_cast<A*>(s.out) + at;
      s.fn(operands[0], operands[1], operands[2], to, n, s.args);
      if (s.store) s.store(s.out, at, walk.step(3), n, result);
    }
  }
};

void lower_f64(LowerContext& c) {
  const View y = c.out();
  if (y.elements() == 0 || lower_typed(c)) return;
  const DType computed = computed_dtype(c.graph(), c.id());
  visit_f64(computed, [&]<class A>(A) {
    auto& s = c.keep<F64Step<A>>();
    s.num_inputs = c.num_inputs();
    s.args.bits = dtype_bits(computed);
    if (const auto* op = c.graph().node(c.id()).op.template get_if<ops::Activation>())
      s.args.params = function_params(*op);
    s.fn = node_fn<A>(c.graph(), c.id());
    double cost = 3;
    if constexpr (std::is_same_v<A, double>) {
      if (const VectorFn v = vector_fn(c.node(), c.kernels().isa); v.fn)
        s.fn = v.fn, s.args.fn = v.which, cost = v.cost;
    }
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
    for (int i = 0; i < s.num_inputs; ++i)
      if (holds<A>(c.in(i).dtype) && s.walk.step(i) == 1) s.load[i] = nullptr;
    if (holds<A>(y.dtype) && s.walk.step(3) == 1) s.store = nullptr;
    s.blocks_per_row = (s.walk.cols() + kGenericBlock - 1) / kGenericBlock;
    s.blocks = s.blocks_per_row * s.walk.rows();
    s.blocks_per_chunk =
        dtype_bits(y.dtype) < 8
            ? s.blocks
            : c.grain(std::max<std::int64_t>(1, 4096 / std::min<std::int64_t>(kGenericBlock, s.walk.cols())));
    c.step<F64Step<A>::run>(s, (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk,
                            cost * static_cast<double>(y.elements()));
  });
}

bool any_strides(const Graph&, NodeId, int) { return true; }

// -- iota --

struct IotaStep {
  void* y = nullptr;
  std::int64_t extent = 1, inner = 1, elements = 0;
  StoreBlock<std::int64_t> store = nullptr;
  int bits = 0;  // of integers that are written without conversion, else 0
};
constexpr std::int64_t kIotaChunk = 1 << 14;

// y[0, n): the index along the axis of element `i` and the elements after it.
template <class E>
void count_places(const IotaStep& s, std::int64_t i, std::int64_t n, E* y) {
  std::int64_t at = i / s.inner % s.extent, left = s.inner - i % s.inner;  // of the next element
  while (n > 0) {
    std::int64_t run = 0;
    if (s.inner == 1) {  // a run of consecutive numbers
      run = std::min(s.extent - at, n);
      const E first = static_cast<E>(at);
      for (std::int64_t j = 0; j < run; ++j) y[j] = static_cast<E>(first + static_cast<E>(j));
      at = at + run == s.extent ? 0 : at + run;
    } else {
      run = std::min(left, n);
      std::fill_n(y, run, static_cast<E>(at));
      left -= run;
      if (left == 0) left = s.inner, at = at + 1 == s.extent ? 0 : at + 1;
    }
    y += run;
    n -= run;
  }
}
void run_iota(const IotaStep& s, std::int64_t chunk) {
  const std::int64_t first = chunk * kIotaChunk, end = std::min(s.elements, first + kIotaChunk);
  if (s.bits == 32) return count_places(s, first, end - first, static_cast<std::uint32_t*>(s.y) + first);
  if (s.bits == 64) return count_places(s, first, end - first, static_cast<std::uint64_t*>(s.y) + first);
  std::int64_t values[kGenericBlock];
  for (std::int64_t i = first; i < end; i += kGenericBlock) {
    const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, end - i));
    count_places(s, i, n, values);
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
  if (is_int(y.dtype) && dtype_bits(y.dtype) >= 32) s.bits = dtype_bits(y.dtype);
  c.step<run_iota>(s, (s.elements + kIotaChunk - 1) / kIotaChunk,
                   (s.bits != 0 ? 0.3 : 2.0) * static_cast<double>(s.elements));
}

constexpr KernelEntry kRows[] = {
    {OpKind::Activation, "generic_activation", f64_refuses, lower_f64, any_strides},
    {OpKind::Binary, "generic_binary", f64_refuses, lower_f64, any_strides},
    {OpKind::Compare, "generic_compare", f64_refuses, lower_f64, any_strides},
    {OpKind::Where, "generic_where", f64_refuses, lower_f64, any_strides},
    {OpKind::Cast, "generic_cast", f64_refuses, lower_f64, any_strides},
    {OpKind::Iota, "iota", never_refuses, lower_iota},
};

}  // namespace

std::span<const KernelEntry> generic_elementwise_entries() { return kRows; }

}  // namespace rlx::cpu
