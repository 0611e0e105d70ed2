// Reductions, scans and sorts of every dtype and axis, in the generic compute types and in element order.
#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/reduce/typed_reduce_kernels.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::cpu {
namespace {

const char* any_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_high_rank(in_shape(g, id, 0))) return why;
  return refuse_storage_only(in_dtype(g, id, 0));
}
const char* ordered_refuses(const Graph& g, NodeId id) {
  if (const char* why = any_refuses(g, id)) return why;
  return refuse_unless(!is_complex(in_dtype(g, id, 0)), "complex numbers have no order");
}
const char* float_refuses(const Graph& g, NodeId id) {
  if (const char* why = any_refuses(g, id)) return why;
  return refuse_unless(is_float(in_dtype(g, id, 0)), "its operand is not of a real float dtype");
}
bool first_operand(const Graph&, NodeId, int operand) { return operand == 0; }

std::int64_t chunks_of(std::int64_t n, std::int64_t per_chunk) { return (n + per_chunk - 1) / per_chunk; }

/// Combines blocks of values into `acc`.
template <class A>
void accumulate(ReduceKind fn, const A* v, int n, A& acc) {
  switch (fn) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
      for (int i = 0; i < n; ++i) acc = add_vd(acc, v[i]);
      break;
    case ReduceKind::Prod:
      for (int i = 0; i < n; ++i) acc = mul_vd(acc, v[i]);
      break;
    case ReduceKind::Max:
    case ReduceKind::Min:
      for (int i = 0; i < n; ++i)
        if (wide_beats(v[i], acc, fn == ReduceKind::Max)) acc = v[i];
      break;
  }
}

template <class A>
A identity_of(ReduceKind fn, DType t) {
  if (fn == ReduceKind::Prod) return A(1);
  if (fn == ReduceKind::Max || fn == ReduceKind::Min) return wide_extreme<A>(t, fn == ReduceKind::Max);
  return A(0);
}

// Computes one result element at a time. `kept` iterates over the results in x, `reduced` over the elements of one
// result.
template <class A>
struct ReduceStep {
  RowIterator<1> kept, reduced;
  ReduceKind fn = ReduceKind::Sum;
  A identity{};
  double count = 1;
  const void* x = nullptr;
  void* y = nullptr;
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;
  std::int64_t results = 0, per_chunk = 1;

  static void run(const ReduceStep& s, std::int64_t chunk) {
    RowIterator<1> kept = s.kept;
    const std::int64_t begin = chunk * s.per_chunk, end = std::min(s.results, begin + s.per_chunk), cols = kept.cols();
    kept.seek(begin / cols);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t col = r % cols;
      if (r != begin && col == 0) kept.next();
      const std::int64_t base = kept.offset[0] + col * kept.step(0);
      A acc = s.identity, values[kGenericBlock];
      RowIterator<1> walk = s.reduced;
      const std::int64_t rows = walk.cols() == 0 ? 0 : walk.rows();
      for (std::int64_t row = 0; row < rows; ++row, walk.next()) {
        for (std::int64_t i = 0; i < walk.cols(); i += kGenericBlock) {
          const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, walk.cols() - i));
          s.load(s.x, base + walk.offset[0] + i * walk.step(0), walk.step(0), n, values);
          accumulate(s.fn, values, n, acc);
        }
      }
      if constexpr (!std::is_integral_v<A>) {
        if (s.fn == ReduceKind::Mean) acc /= s.count;
      }
      s.store(s.y, r, 1, 1, &acc);
    }
  }
};

void lower_reduce(LowerContext& c) {
  const auto& op = c.op<ops::Reduce>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  visit_f64(x.dtype, [&]<class A>(A) {
    auto& s = c.keep<ReduceStep<A>>();
    std::vector<std::int64_t> dims[2];
    std::vector<std::vector<std::int64_t>> strides[2] = {{{}}, {{}}};
    for (int i = 0; i < x.rank(); ++i) {
      const int part = std::binary_search(op.axes.begin(), op.axes.end(), i) ? 1 : 0;
      dims[part].push_back(x.dim(i));
      strides[part][0].push_back(x.stride(i));
    }
    s.kept.set(dims[0], strides[0]);
    s.reduced.set(dims[1], strides[1]);
    s.fn = kernel_kind(op.fn);
    s.identity = identity_of<A>(s.fn, x.dtype);
    s.count = static_cast<double>(product(dims[1]));
    s.load = load_block<A>(x.dtype);
    s.store = store_block<A>(y.dtype);
    s.results = y.elements();
    s.per_chunk = c.grain(std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, product(dims[1]))));
    c.point(s.x, x);
    c.point(s.y, y);
    c.step<ReduceStep<A>::run>(s, chunks_of(s.results, s.per_chunk),
                               2.0 * static_cast<double>(std::max(x.elements(), y.elements())));
  });
}

// -- lines along one axis --

/// Works on lines of `extent` elements. Line l starts at (l / inner) * extent * inner + l % inner and has stride inner.
struct Lines {
  AxisView axis;
  std::int64_t lines = 0, per_chunk = 1;
  const void* x = nullptr;
  void *y = nullptr, *y2 = nullptr;
  std::int64_t start(std::int64_t l) const { return l / axis.inner * axis.extent * axis.inner + l % axis.inner; }

  void set(LowerContext& c, std::int64_t along) {
    const View in = c.in(0);
    check(in.dense(), "the operand of a scan is not row-major");
    axis = around(in, along);
    lines = axis.outer * axis.inner;
    per_chunk = c.grain(std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, axis.extent)));
    c.point(x, in);
    c.point(y, c.out());
  }
};
template <class S>
void add_lines(LowerContext& c, S& s, double cost_per_element) {
  c.step<S::run>(s, chunks_of(s.lines, s.per_chunk), cost_per_element * static_cast<double>(s.lines * s.axis.extent));
}

template <class A>
struct ArgStep : Lines {
  bool maximum = true;
  LoadBlock<A> load = nullptr;
  static void run(const ArgStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.lines, (chunk + 1) * s.per_chunk);
    for (std::int64_t l = chunk * s.per_chunk; l < end; ++l) {
      A best{}, values[kGenericBlock];
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < s.axis.extent; i += kGenericBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, s.axis.extent - i));
        s.load(s.x, s.start(l) + i * s.axis.inner, s.axis.inner, n, values);
        for (int k = 0; k < n; ++k)
          if (i + k == 0 || wide_beats(values[k], best, s.maximum)) best = values[k], at = i + k;
      }
      static_cast<std::int32_t*>(s.y)[l] = static_cast<std::int32_t>(at);
    }
  }
};
void lower_arg_reduce(LowerContext& c) {
  const auto& op = c.op<ops::ArgReduce>();
  if (c.out().elements() == 0) return;
  visit_f64(c.in(0).dtype, [&]<class A>(A) {
    auto& s = c.keep<ArgStep<A>>();
    s.set(c, op.axis);
    s.maximum = op.fn == ArgReduceKind::Max;
    s.load = load_block<A>(c.in(0).dtype);
    add_lines(c, s, 2);
  });
}

template <class A>
struct ScanStep : Lines {
  ReduceKind fn = ReduceKind::Sum;
  bool exclusive = false, reverse = false;
  A identity{};
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;
  static void run(const ScanStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.lines, (chunk + 1) * s.per_chunk);
    for (std::int64_t l = chunk * s.per_chunk; l < end; ++l) {
      A acc = s.identity, values[kGenericBlock];
      for (std::int64_t i = 0; i < s.axis.extent; i += kGenericBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, s.axis.extent - i));
        const std::int64_t first = s.reverse ? s.axis.extent - 1 - i : i,
                           step = s.reverse ? -s.axis.inner : s.axis.inner;
        const std::int64_t at = s.start(l) + first * s.axis.inner;
        s.load(s.x, at, step, n, values);
        for (int k = 0; k < n; ++k) {
          const A before = acc;
          accumulate(s.fn, values + k, 1, acc);
          values[k] = s.exclusive ? before : acc;
        }
        s.store(s.y, at, step, n, values);
      }
    }
  }
};
void lower_scan(LowerContext& c) {
  const auto& op = c.op<ops::Cumulative>();
  if (c.out().elements() == 0) return;
  constexpr ReduceKind kFns[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min};
  visit_f64(c.in(0).dtype, [&]<class A>(A) {
    auto& s = c.keep<ScanStep<A>>();
    s.set(c, op.axis);
    s.fn = kFns[static_cast<std::size_t>(op.fn)];
    s.exclusive = op.exclusive;
    s.reverse = op.reverse;
    s.identity = identity_of<A>(s.fn, c.in(0).dtype);
    s.load = load_block<A>(c.in(0).dtype);
    s.store = store_block<A>(c.in(0).dtype);
    add_lines(c, s, 3);
  });
}

struct SoftmaxStep : Lines {
  LoadBlock<double> load = nullptr;
  StoreBlock<double> store = nullptr;
  const Scratch* scratch = nullptr;
  static void run(const SoftmaxStep& s, std::int64_t chunk) {
    const std::int64_t n = s.axis.extent, end = std::min(s.lines, (chunk + 1) * s.per_chunk);
    auto* row = reinterpret_cast<double*>(s.scratch->mine());
    for (std::int64_t l = chunk * s.per_chunk; l < end; ++l) {
      s.load(s.x, s.start(l), s.axis.inner, static_cast<int>(n), row);
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      accumulate(ReduceKind::Max, row, static_cast<int>(n), top);
      const bool hidden = top == -std::numeric_limits<double>::infinity();  // a row of -inf gives zeros
      for (std::int64_t i = 0; i < n; ++i) sum += row[i] = hidden ? 0.0 : std::exp(row[i] - top);
      for (std::int64_t i = 0; i < n && !hidden; ++i) row[i] /= sum;
      s.store(s.y, s.start(l), s.axis.inner, static_cast<int>(n), row);
    }
  }
};
// Softmax along any axis of dtypes that float holds: some lines at a time are gathered, and the row kernel runs on
// them.
struct FloatSoftmaxStep : Lines {
  DType dtype = DType::F32;
  std::int64_t together = 1;
  const TypedReduceKernels* runs = nullptr;
  const KernelTable* kernels = nullptr;
  const Scratch* scratch = nullptr;
  static void run(const FloatSoftmaxStep& s, std::int64_t chunk) {
    const std::int64_t n = s.axis.extent, inner = s.axis.inner, end = std::min(s.lines, (chunk + 1) * s.per_chunk);
    auto* rows = reinterpret_cast<float*>(s.scratch->mine());
    float* across = rows + s.together * n;  // an element of each line
    for (std::int64_t l = chunk * s.per_chunk; l < end;) {
      const std::int64_t count = std::min({s.together, end - l, inner == 1 ? end - l : inner - l % inner});
      const std::int64_t start = s.start(l);
      if (inner == 1) {
        s.runs->load(s.dtype, s.x, start, 1, count * n, rows);
      } else {
        for (std::int64_t i = 0; i < n; ++i) {
          s.runs->load(s.dtype, s.x, start + i * inner, 1, count, across);
          for (std::int64_t k = 0; k < count; ++k) rows[k * n + i] = across[k];
        }
      }
      s.kernels->softmax_f32(rows, n, rows, n, n, 0, count);
      if (inner == 1) {
        s.runs->store(s.dtype, rows, count * n, s.y, start, 1);
      } else {
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t k = 0; k < count; ++k) across[k] = rows[k * n + i];
          s.runs->store(s.dtype, across, count, s.y, start + i * inner, 1);
        }
      }
      l += count;
    }
  }
};
void lower_float_softmax(LowerContext& c, const View& x) {
  auto& s = c.keep<FloatSoftmaxStep>();
  s.set(c, c.op<ops::Softmax>().axis);
  s.dtype = x.dtype;
  s.together = std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(1, s.axis.extent), 1, 32);
  s.per_chunk = c.finest() ? 1 : std::max(s.per_chunk, s.together);
  s.runs = &typed_reduce_kernels(c.kernels().isa);
  s.kernels = &c.kernels();
  s.scratch = c.scratch(static_cast<std::size_t>(s.together * (s.axis.extent + 1) + 64) * sizeof(float));
  add_lines(c, s, 1);
}
void lower_softmax(LowerContext& c) {
  const View x = c.in(0);
  if (c.out().elements() == 0) return;
  if (x.dtype != DType::F64) return lower_float_softmax(c, x);
  auto& s = c.keep<SoftmaxStep>();
  s.set(c, c.op<ops::Softmax>().axis);
  s.load = load_block<double>(x.dtype);
  s.store = store_block<double>(x.dtype);
  s.scratch = c.scratch(static_cast<std::size_t>(s.axis.extent) * sizeof(double));
  add_lines(c, s, 8);
}

constexpr KernelEntry kRows[] = {
    {OpKind::Reduce, "generic_reduce", any_refuses, lower_reduce, first_operand},
    {OpKind::ArgReduce, "generic_arg_reduce", ordered_refuses, lower_arg_reduce},
    {OpKind::Cumulative, "generic_scan", any_refuses, lower_scan},
    {OpKind::Softmax, "generic_softmax", float_refuses, lower_softmax},
};

}  // namespace

std::span<const KernelEntry> generic_reduce_entries() { return kRows; }

}  // namespace rlx::cpu
