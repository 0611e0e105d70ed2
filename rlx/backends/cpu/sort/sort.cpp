// Sort along an axis, for every dtype.
#include <algorithm>
#include <cmath>
#include <functional>

#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/sort/sorted_keys.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/shape.h"

namespace rlx::cpu {
namespace {

// Copies keys and returns whether there is a NaN or -0.
bool copy_keys(const SortKernels& k, const float* x, std::int64_t n, float* y) { return k.copy_f32(x, n, y); }
bool copy_keys(const SortKernels& k, const double* x, std::int64_t n, double* y) { return k.copy_f64(x, n, y); }
template <class W>
bool copy_keys(const SortKernels&, const W* x, std::int64_t n, W* y) {
  if (x != y) std::copy(x, x + n, y);
  return false;
}

// Shared by the sorts of lines.
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

// -- keys only --

template <class W>
struct KeysStep : SortedLines {
  KeyLine<W> line{};
  bool in_result = false;    // sort in place in the result's line
  std::int64_t counted = 0;  // number of distinct values for counting sort
  int bits = 8;
  const void* x = nullptr;
  void* y = nullptr;

  static void run(const KeysStep& s, std::int64_t chunk) {
    const std::int64_t n = s.view.extent, step = s.view.inner;
    ScratchParts parts{s.scratch->mine()};
    W* scratch = parts.take<W>(n);
    W* own = s.in_result ? nullptr : parts.take<W>(n);
    auto* counts = parts.take<std::int32_t>(2 * s.counted);
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
          if (!(keys[i] != keys[i])) keys[numbers++] = keys[i] + W(0);  // -0 becomes 0
      }
      if constexpr (std::is_same_v<W, std::int32_t>) {
        if (s.counted != 0)
          count_numbers(keys, n, s.counted, counts);
        else
          sort_numbers(*s.kernels, keys, n, scratch);
      } else {
        sort_numbers(*s.kernels, keys, numbers, scratch);
      }
      if (s.descending) {
        std::reverse(keys, keys + numbers);
        if (numbers < n) std::copy_backward(keys, keys + numbers, keys + n);
      }
      if (!s.in_result) s.line.store(keys, n, s.y, base, step);
      if (special) s.put_special(keys, n, numbers, base, step);
    }
  }
  // Stores the zeros and NaN of the line in order, with their original bits.
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

// -- keys with other operands --

template <class W>
struct OrderStep : SortedLines {
  struct Operand {
    int bits = 8;
    bool places = false;  // the operand is an iota along the axis, so the sorted indices themselves are stored
    const void* x = nullptr;
    void* y = nullptr;
  };
  KeyLine<W> line{};
  std::vector<Operand> operands;  // the keys first
  std::size_t only_places = 0;    // index of the iota operand when no other is read, else 0

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
      if constexpr (sizeof(W) == 4)
        if (s.only_places != 0) {
          const Operand& o = s.operands[s.only_places];
          if (put_counted_places(keys, n, o.bits, o.y, base, step)) continue;
        }
      const SortedSlice line{base, step, n, order, order_keys(*s.kernels, keys, n, order, scratch)};
      for (const Operand& o : s.operands) {
        if (o.y == nullptr) continue;  // nobody reads it
        if (o.places)
          put_places(line, o.bits, o.y);
        else
          move_ordered(line, o.bits, o.x, o.y);
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

// An iota along the axis, in an index dtype.
bool counts_along(const Graph& g, Value v, std::int64_t axis) {
  const Node& n = g.node(v.node);
  return n.kind() == OpKind::Iota && n.op.as<ops::Iota>().axis == axis && is_index(g.shape(v).dtype());
}

void lower_sort(LowerContext& c) {
  const View keys = c.in(0);
  if (keys.elements() == 0) return;
  const auto& op = c.op<ops::Sort>();
  if (c.num_inputs() == 1) {
    if (!c.is_read(0)) return;
    visit_sorted(keys.dtype, [&]<class W>(W) {
      auto& s = c.keep<KeysStep<W>>();
      s.view = around(keys, op.axis);
      s.descending = op.descending;
      s.line = key_line<W>(keys.dtype, c.kernels().isa);
      s.bits = dtype_bits(keys.dtype);
      s.in_result = s.view.inner == 1 && (keys.dtype == DType::F32 || keys.dtype == DType::F64 ||
                                          keys.dtype == DType::I32 || keys.dtype == DType::I64);
      c.point(s.x, keys);
      c.point(s.y, c.out());
      s.counted = counted_numbers(keys.dtype, s.view.extent);
      s.scratch = c.scratch(ScratchParts::bytes<W>(s.view.extent) * (s.in_result ? 1 : 2) +
                            ScratchParts::bytes<std::int32_t>(2 * s.counted));
      const double ns = 1 + 0.05 * static_cast<double>(sizeof(W)) * levels_of(s.view.extent);
      set_lines(c, s, ns, false);
      add_sorted_lines(c, s, ns);
    });
    return;
  }
  visit_ordered(keys.dtype, [&]<class W>(W) {
    auto& s = c.keep<OrderStep<W>>();
    s.view = around(keys, op.axis);
    s.descending = op.descending;
    s.line = key_line<W>(keys.dtype, c.kernels().isa);
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
    for (int i = 1; i < c.num_inputs() && !c.is_read(0); ++i) {
      if (!c.is_read(i)) continue;
      const bool alone = s.only_places == 0 && s.operands[static_cast<std::size_t>(i)].places;
      s.only_places = alone ? static_cast<std::size_t>(i) : 0;
      if (!alone) break;
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

constexpr KernelEntry kSortEntries[] = {
    {.kind = OpKind::Sort, .kernel = "sort_lines", .refuses = sort_refuses, .lower = lower_sort, .skips_unread = ~0U},
    {OpKind::TopK, "top_k", never_refuses, lower_top_k}};

}  // namespace

std::span<const KernelEntry> sort_entries() { return kSortEntries; }

}  // namespace rlx::cpu
