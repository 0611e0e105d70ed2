// Sorting along an axis and the largest of a line, for every dtype, on the kernels of kernels/sort.h. They order
// numbers alone; NaN, zeros of both signs and the places of equal keys are brought in here.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/kernels/sort.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/tensor/half.h"

namespace rlx::cpu {
namespace {

// -- lines of keys as what the kernels sort: float, double, int32 or int64 --

template <class F>
void visit_sorted(DType t, F&& f) {
  switch (t) {
    case DType::F32:
    case DType::F16:
    case DType::BF16: return f(float{});
    case DType::F64: return f(double{});
    case DType::I64:
    case DType::U64: return f(std::int64_t{});
    default: return f(std::int32_t{});
  }
}

// An unsigned integer as the signed one of the same order, and back.
template <class W>
W turned(W v) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<std::make_unsigned_t<W>>(v) ^ std::make_unsigned_t<W>{1} << (8 * sizeof(W) - 1));
  else
    return v;
}

template <class W, class E>
void load_as(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) {
  const E* p = static_cast<const E*>(x) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<E, bool>)
      out[i] = static_cast<W>(static_cast<const std::uint8_t*>(x)[at + i * step] != 0);
    else if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>)
      out[i] = turned(static_cast<W>(p[i * step]));
    else
      out[i] = static_cast<W>(p[i * step]);
  }
}
template <class W, class E>
void store_as(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) {
  E* p = static_cast<E*>(y) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(E) == sizeof(W) && std::is_unsigned_v<E>)
      p[i * step] = static_cast<E>(turned(in[i]));
    else
      p[i * step] = static_cast<E>(in[i]);
  }
}

template <class W>
struct KeyLine {
  void (*load)(const void* x, std::int64_t at, std::int64_t step, std::int64_t n, W* out) = nullptr;
  void (*store)(const W* in, std::int64_t n, void* y, std::int64_t at, std::int64_t step) = nullptr;
};
template <class W>
KeyLine<W> key_line(DType t) {
  const auto of = []<class E>(E) { return KeyLine<W>{load_as<W, E>, store_as<W, E>}; };
  if constexpr (std::is_same_v<W, float>) {
    return t == DType::F32 ? of(float{}) : t == DType::F16 ? of(F16{}) : of(BF16{});
  } else if constexpr (std::is_same_v<W, double>) {
    return of(double{});
  } else if constexpr (std::is_same_v<W, std::int64_t>) {
    return t == DType::I64 ? of(std::int64_t{}) : of(std::uint64_t{});
  } else {
    switch (t) {
      case DType::Bool: return {load_as<W, bool>, store_as<W, std::uint8_t>};
      case DType::I8: return of(std::int8_t{});
      case DType::U8: return of(std::uint8_t{});
      case DType::I16: return of(std::int16_t{});
      case DType::U16: return of(std::uint16_t{});
      case DType::U32: return of(std::uint32_t{});
      default: return of(std::int32_t{});
    }
  }
}

void sort_numbers(const SortKernels& k, float* x, std::int64_t n, float* s) { k.sort_f32(x, n, s); }
void sort_numbers(const SortKernels& k, double* x, std::int64_t n, double* s) { k.sort_f64(x, n, s); }
void sort_numbers(const SortKernels& k, std::int32_t* x, std::int64_t n, std::int32_t* s) { k.sort_i32(x, n, s); }
void sort_numbers(const SortKernels& k, std::int64_t* x, std::int64_t n, std::int64_t* s) { k.sort_i64(x, n, s); }

// Copies, and says whether there is NaN or -0.
bool copy_keys(const SortKernels& k, const float* x, std::int64_t n, float* y) { return k.copy_f32(x, n, y); }
bool copy_keys(const SortKernels& k, const double* x, std::int64_t n, double* y) { return k.copy_f64(x, n, y); }
template <class W>
bool copy_keys(const SortKernels&, const W* x, std::int64_t n, W* y) {
  if (x != y) std::copy(x, x + n, y);
  return false;
}

// Scratch in parts, each 64-byte aligned.
struct ScratchParts {
  std::byte* at;
  template <class T>
  T* take(std::int64_t n) {
    std::byte* here = at;
    at += bytes<T>(n);
    return reinterpret_cast<T*>(here);
  }
  template <class T>
  static std::size_t bytes(std::int64_t n) {
    return (static_cast<std::size_t>(n + kSortSlack) * sizeof(T) + 63) / 64 * 64;
  }
};

// What sorts of lines have in common.
struct SortedLines {
  AxisView view;
  bool descending = false;
  std::int64_t lines = 0, per_chunk = 1;
  const SortKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;

  std::int64_t end(std::int64_t chunk) const { return std::min(lines, (chunk + 1) * per_chunk); }
  std::int64_t base(std::int64_t line) const {
    return line / view.inner * view.extent * view.inner + line % view.inner;
  }
};

// -- keys alone --

template <class W>
struct KeysStep : SortedLines {
  KeyLine<W> line{};
  bool in_result = false;  // the result's line is sorted where it lies
  int bits = 8;
  const void* x = nullptr;
  void* y = nullptr;

  static void run(const KeysStep& s, std::int64_t chunk) {
    const std::int64_t n = s.view.extent, step = s.view.inner;
    ScratchParts parts{s.scratch->mine()};
    W* scratch = parts.take<W>(n);
    W* own = s.in_result ? nullptr : parts.take<W>(n);
    for (std::int64_t l = chunk * s.per_chunk; l < s.end(chunk); ++l) {
      const std::int64_t base = s.base(l);
      W* keys = s.in_result ? static_cast<W*>(s.y) + base : own;
      bool special = false;
      if (s.in_result) {
        special = copy_keys(*s.kernels, static_cast<const W*>(s.x) + base, n, keys);
      } else {
        s.line.load(s.x, base, step, n, keys);
        special = copy_keys(*s.kernels, keys, n, keys);
      }
      std::int64_t numbers = n;
      if (special) {
        numbers = 0;
        for (std::int64_t i = 0; i < n; ++i)
          if (!(keys[i] != keys[i])) keys[numbers++] = keys[i] + W(0);  // -0 is 0
      }
      sort_numbers(*s.kernels, keys, numbers, scratch);
      if (s.descending) {
        std::reverse(keys, keys + numbers);
        if (numbers < n) std::copy_backward(keys, keys + numbers, keys + n);
      }
      if (!s.in_result) s.line.store(keys, n, s.y, base, step);
      if (special) s.put_special(keys, n, numbers, base, step);
    }
  }
  // The zeros and the NaN of the line in their order, with the bits they had.
  void put_special(const W* keys, std::int64_t n, std::int64_t numbers, std::int64_t base, std::int64_t step) const {
    const std::int64_t first = descending ? n - numbers : 0;
    const W* begin = keys + first;
    std::int64_t zero = first + (descending ? std::lower_bound(begin, begin + numbers, W(0), std::greater<>{}) - begin
                                            : std::lower_bound(begin, begin + numbers, W(0)) - begin);
    std::int64_t nan = descending ? 0 : numbers;
    W block[kGenericBlock];
    for (std::int64_t i = 0; i < n; i += kGenericBlock) {
      const std::int64_t count = std::min<std::int64_t>(kGenericBlock, n - i);
      line.load(x, base + i * step, step, count, block);
      for (std::int64_t k = 0; k < count; ++k) {
        if (block[k] != block[k])
          generic_move_row(bits, x, base + (i + k) * step, y, base + nan++ * step, 1);
        else if (block[k] == W(0))
          generic_move_row(bits, x, base + (i + k) * step, y, base + zero++ * step, 1);
      }
    }
  }
};

// -- keys and other values --

/// order[i] & the mask given back: the place of the i-th key, ascending, equal ones as they lie.
std::int64_t order_keys(const SortKernels& k, const std::int32_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch) {
  // Keys of a byte are counted.
  constexpr std::int64_t kCounted = 256;
  std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = std::numeric_limits<std::int32_t>::min();
  for (std::int64_t i = 0; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  if (n >= kCounted && std::int64_t{high} - low < kCounted) {
    std::int64_t at[kCounted] = {};
    for (std::int64_t i = 0; i < n; ++i) ++at[keys[i] - low];
    std::int64_t sum = 0;
    for (std::int64_t& count : at) sum += std::exchange(count, sum);
    for (std::int64_t i = 0; i < n; ++i) order[at[keys[i] - low]++] = i;
    return 0xFFFFFFFF;
  }
  k.pack_i32(keys, n, order);
  k.sort_i64(order, n, scratch);
  return 0xFFFFFFFF;
}
// As many of the upper bits of keys as places leave room for; keys that have the same are ordered among themselves.
std::int64_t order_keys(const SortKernels& k, const std::int64_t* keys, std::int64_t n, std::int64_t* order,
                        std::int64_t* scratch) {
  if (n == 0) return 0;
  std::int64_t low = keys[0], high = keys[0];
  for (std::int64_t i = 1; i < n; ++i) low = std::min(low, keys[i]), high = std::max(high, keys[i]);
  const std::uint64_t least = static_cast<std::uint64_t>(low), range = static_cast<std::uint64_t>(high) - least;
  const int places = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1))));
  const int lost = std::max(0, static_cast<int>(std::bit_width(range)) + places - 64);
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  for (std::int64_t i = 0; i < n; ++i)
    order[i] = static_cast<std::int64_t>(
        (((static_cast<std::uint64_t>(keys[i]) - least) >> lost) << places | static_cast<std::uint64_t>(i)) ^ kSign);
  k.sort_i64(order, n, scratch);
  const std::int64_t mask = (std::int64_t{1} << places) - 1;
  if (lost == 0) return mask;
  const auto before = [keys, mask](std::int64_t a, std::int64_t b) {
    const std::int64_t ka = keys[a & mask], kb = keys[b & mask];
    return ka != kb ? ka < kb : (a & mask) < (b & mask);
  };
  for (std::int64_t i = 0; i < n;) {
    std::int64_t end = i + 1;
    while (end < n && order[end] >> places == order[i] >> places) ++end;
    if (end - i > 1) std::sort(order + i, order + end, before);
    i = end;
  }
  return mask;
}

void make_keys(const SortKernels& k, const float* x, std::int64_t n, bool descending, std::int32_t* keys) {
  k.keys_f32(x, n, descending, keys);
}
void make_keys(const SortKernels& k, const double* x, std::int64_t n, bool descending, std::int64_t* keys) {
  k.keys_f64(x, n, descending, keys);
}
template <class W>
void make_keys(const SortKernels&, const W* x, std::int64_t n, bool descending, W* keys) {
  for (std::int64_t i = 0; i < n; ++i) keys[i] = descending ? ~x[i] : x[i];
}

template <class W>
using KeyOf = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;

// y[i] = x[order[i] & mask], `step` elements apart.
template <class E>
void move_by(const void* x, void* y, std::int64_t base, std::int64_t step, const std::int64_t* order, std::int64_t mask,
             std::int64_t n) {
  const E* from = static_cast<const E*>(x) + base;
  E* to = static_cast<E*>(y) + base;
  if (step == 1)
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[order[i] & mask];
  else
    for (std::int64_t i = 0; i < n; ++i) to[i * step] = from[(order[i] & mask) * step];
}
struct SixteenBytes {
  std::uint64_t a, b;
};

template <class W>
struct OrderStep : SortedLines {
  struct Operand {
    int bits = 8;
    bool places = false;  // they count along the axis: what is moved is the order itself
    const void* x = nullptr;
    void* y = nullptr;
  };
  KeyLine<W> line{};
  std::vector<Operand> operands;  // the keys first

  static void run(const OrderStep& s, std::int64_t chunk) {
    const std::int64_t n = s.view.extent, step = s.view.inner;
    ScratchParts parts{s.scratch->mine()};
    auto* order = parts.take<std::int64_t>(n);
    auto* scratch = parts.take<std::int64_t>(n);
    W* values = parts.take<W>(n);
    auto* keys = parts.take<KeyOf<W>>(n);
    for (std::int64_t l = chunk * s.per_chunk; l < s.end(chunk); ++l) {
      const std::int64_t base = s.base(l);
      s.line.load(s.operands[0].x, base, step, n, values);
      make_keys(*s.kernels, values, n, s.descending, keys);
      const std::int64_t mask = order_keys(*s.kernels, keys, n, order, scratch);
      for (const Operand& o : s.operands) {
        if (o.y == nullptr) continue;  // nobody reads it
        if (o.places) {
          if (o.bits == 32)
            for (std::int64_t i = 0; i < n; ++i)
              static_cast<std::int32_t*>(o.y)[base + i * step] = static_cast<std::int32_t>(order[i] & mask);
          else
            for (std::int64_t i = 0; i < n; ++i) static_cast<std::int64_t*>(o.y)[base + i * step] = order[i] & mask;
          continue;
        }
        switch (o.bits) {
          case 8: move_by<std::uint8_t>(o.x, o.y, base, step, order, mask, n); break;
          case 16: move_by<std::uint16_t>(o.x, o.y, base, step, order, mask, n); break;
          case 32: move_by<std::uint32_t>(o.x, o.y, base, step, order, mask, n); break;
          case 64: move_by<std::uint64_t>(o.x, o.y, base, step, order, mask, n); break;
          case 128: move_by<SixteenBytes>(o.x, o.y, base, step, order, mask, n); break;
          default:
            for (std::int64_t i = 0; i < n; ++i)
              generic_move_row(o.bits, o.x, base + (order[i] & mask) * step, o.y, base + i * step, 1);
        }
      }
    }
  }
};

void set_lines(LowerContext& c, SortedLines& s, double element_ns, bool shares_bytes) {
  s.kernels = &sort_kernels(c.kernels().isa);
  s.lines = s.view.outer * s.view.inner;
  const double line_ns = 20 + static_cast<double>(s.view.extent) * element_ns;
  s.per_chunk = shares_bytes ? s.lines : c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / line_ns)));
}
template <class S>
void add_sorted_lines(LowerContext& c, S& s, double element_ns) {
  c.step<S::run>(s, (s.lines + s.per_chunk - 1) / s.per_chunk,
                 element_ns * static_cast<double>(s.lines * s.view.extent));
}
double levels_of(std::int64_t n) { return std::max(1.0, std::log2(static_cast<double>(n))); }

// An iota along the axis, in a dtype of places.
bool counts_along(const Graph& g, Value v, std::int64_t axis) {
  const Node& n = g.node(v.node);
  return n.kind() == OpKind::Iota && n.op.as<ops::Iota>().axis == axis && is_index(g.shape(v).dtype());
}

void lower_sort(LowerContext& c) {
  const View keys = c.in(0);
  if (keys.elements() == 0) return;
  const auto& op = c.op<ops::Sort>();
  visit_sorted(keys.dtype, [&]<class W>(W) {
    if (c.num_inputs() == 1) {
      if (!c.is_read(0)) return;
      auto& s = c.keep<KeysStep<W>>();
      s.view = around(keys, op.axis);
      s.descending = op.descending;
      s.line = key_line<W>(keys.dtype);
      s.bits = dtype_bits(keys.dtype);
      s.in_result = s.view.inner == 1 && (keys.dtype == DType::F32 || keys.dtype == DType::F64 ||
                                          keys.dtype == DType::I32 || keys.dtype == DType::I64);
      c.point(s.x, keys);
      c.point(s.y, c.out());
      s.scratch = c.scratch(ScratchParts::bytes<W>(s.view.extent) * (s.in_result ? 1 : 2));
      const double ns = 1 + 0.05 * static_cast<double>(sizeof(W)) * levels_of(s.view.extent);
      set_lines(c, s, ns, false);
      add_sorted_lines(c, s, ns);
      return;
    }
    auto& s = c.keep<OrderStep<W>>();
    s.view = around(keys, op.axis);
    s.descending = op.descending;
    s.line = key_line<W>(keys.dtype);
    s.operands.resize(static_cast<std::size_t>(c.num_inputs()));
    bool shares_bytes = false;
    for (int i = 0; i < c.num_inputs(); ++i) {
      auto& o = s.operands[static_cast<std::size_t>(i)];
      o.bits = dtype_bits(c.in(i).dtype);
      shares_bytes = shares_bytes || o.bits < 8;
      o.places = counts_along(c.graph(), c.node().inputs[static_cast<std::size_t>(i)], op.axis);
      c.point(o.x, c.in(i));
      if (c.is_read(i)) c.point(o.y, c.out(i));
    }
    s.scratch =
        c.scratch(2 * ScratchParts::bytes<std::int64_t>(s.view.extent) + 2 * ScratchParts::bytes<W>(s.view.extent));
    const double ns = 2 + 0.4 * levels_of(s.view.extent) + c.num_inputs();
    set_lines(c, s, ns, shares_bytes);
    add_sorted_lines(c, s, ns);
  });
}
const char* sort_refuses(const Graph& g, NodeId id) {
  const Shape& keys = in_shape(g, id, 0);
  const Dim& n = keys.dim(static_cast<int>(g.node(id).op.as<ops::Sort>().axis));
  return refuse_unless(!n.is_static() || n.value() < std::int64_t{1} << 31, "its axis has 2^31 elements or more");
}

// -- the largest of a line --

std::int64_t above(const SortKernels& k, const float* x, std::int64_t* b, std::int64_t e, float t, std::int64_t room,
                   std::int32_t* at) {
  return k.above_f32(x, b, e, t, room, at);
}
std::int64_t above(const SortKernels& k, const double* x, std::int64_t* b, std::int64_t e, double t, std::int64_t room,
                   std::int32_t* at) {
  return k.above_f64(x, b, e, t, room, at);
}
std::int64_t above(const SortKernels& k, const std::int32_t* x, std::int64_t* b, std::int64_t e, std::int32_t t,
                   std::int64_t room, std::int32_t* at) {
  return k.above_i32(x, b, e, t, room, at);
}
std::int64_t above(const SortKernels& k, const std::int64_t* x, std::int64_t* b, std::int64_t e, std::int64_t t,
                   std::int64_t room, std::int32_t* at) {
  return k.above_i64(x, b, e, t, room, at);
}

// Some elements are ordered and the k best of them kept; then only what beats the last of these is looked at, and
// whenever there is enough of it the best are chosen again. An element that comes later loses to an equal one, so what
// is kept stands in front of what is new.
template <class W>
struct TopKStep {
  std::int64_t n = 0, k = 0, room = 0, lines = 0, per_chunk = 1;
  bool direct = false;  // lines are read where they lie
  int bits = 8;
  KeyLine<W> line{};
  const SortKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  std::int32_t* indices = nullptr;

  /// Places looked at together: `k` that were kept and those that came.
  static std::int64_t room_for(std::int64_t n, std::int64_t k) { return std::min(n, 2 * k + 128); }

  static void run(const TopKStep& s, std::int64_t chunk) {
    ScratchParts parts{s.scratch->mine()};
    auto* at = parts.take<std::int32_t>(s.room);
    auto* kept = parts.take<std::int32_t>(s.room);
    auto* order = parts.take<std::int64_t>(s.room);
    auto* sorting = parts.take<std::int64_t>(s.room);
    W* values = parts.take<W>(s.room);
    W* own = s.direct ? nullptr : parts.take<W>(s.n);
    auto* keys = parts.take<KeyOf<W>>(s.room);
    for (std::int64_t l = chunk * s.per_chunk; l < std::min(s.lines, (chunk + 1) * s.per_chunk); ++l) {
      const W* row = own;
      if (s.direct)
        row = static_cast<const W*>(s.x) + l * s.n;
      else
        s.line.load(s.x, l * s.n, 1, s.n, own);
      std::int64_t count = s.room, next = s.room;
      for (std::int64_t i = 0; i < count; ++i) at[i] = static_cast<std::int32_t>(i);
      while (true) {
        for (std::int64_t i = 0; i < count; ++i) values[i] = row[at[i]];
        make_keys(*s.kernels, values, count, true, keys);
        const std::int64_t mask = order_keys(*s.kernels, keys, count, order, sorting);
        for (std::int64_t i = 0; i < s.k; ++i) kept[i] = at[order[i] & mask];
        const W least = row[kept[s.k - 1]];
        if (next >= s.n || least != least) break;  // nothing is above NaN
        std::swap(at, kept);
        const std::int64_t more = above(*s.kernels, row, &next, s.n, least, s.room - s.k, at + s.k);
        if (more == 0) {
          std::swap(at, kept);
          break;
        }
        count = s.k + more;
      }
      for (std::int64_t i = 0; i < s.k; ++i) {
        generic_move_row(s.bits, s.x, l * s.n + kept[i], s.y, l * s.k + i, 1);
        s.indices[l * s.k + i] = kept[i];
      }
    }
  }
};

void lower_top_k(LowerContext& c) {
  const View x = c.in(0);
  if (c.out().elements() == 0) return;
  visit_sorted(x.dtype, [&]<class W>(W) {
    auto& s = c.keep<TopKStep<W>>();
    s.n = x.dim(-1);
    s.k = c.op<ops::TopK>().k;
    s.room = TopKStep<W>::room_for(s.n, s.k);
    s.lines = x.elements() / s.n;
    s.direct = x.dtype == DType::F32 || x.dtype == DType::F64 || x.dtype == DType::I32 || x.dtype == DType::I64;
    s.bits = dtype_bits(x.dtype);
    s.line = key_line<W>(x.dtype);
    s.kernels = &sort_kernels(c.kernels().isa);
    s.scratch =
        c.scratch(2 * ScratchParts::bytes<std::int32_t>(s.room) + 2 * ScratchParts::bytes<std::int64_t>(s.room) +
                  2 * ScratchParts::bytes<W>(s.room) + (s.direct ? 0 : ScratchParts::bytes<W>(s.n)));
    c.point(s.x, x);
    c.point(s.y, c.out(0));
    c.point(s.indices, c.out(1));
    const double line_ns = 0.3 * static_cast<double>(s.n) + 8.0 * static_cast<double>(s.room);
    s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / line_ns)));
    c.step<TopKStep<W>::run>(s, (s.lines + s.per_chunk - 1) / s.per_chunk, line_ns * static_cast<double>(s.lines));
  });
}

constexpr Row kSortRows[] = {
    {.kind = OpKind::Sort, .kernel = "sort_lines", .refuses = sort_refuses, .lower = lower_sort, .skips_unread = ~0U},
    {OpKind::TopK, "top_k", never_refuses, lower_top_k}};

}  // namespace

std::span<const Row> sort_rows() { return kSortRows; }

}  // namespace rlx::cpu
