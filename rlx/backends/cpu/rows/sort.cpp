// Sorting along an axis, for every dtype: keys as integers in the same order, with where they were.
#include <algorithm>
#include <bit>

#include "rlx/backends/cpu/kernels/generic.h"
#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::cpu {
namespace {

struct Entry {
  std::uint64_t key;
  std::int64_t at;
};

// An integer that grows with the number: -0 is 0, NaN above all.
std::uint64_t ordered(double v) {
  if (v != v) return ~std::uint64_t{0};
  const auto bits = std::bit_cast<std::uint64_t>(v + 0.0);
  return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}
std::uint64_t ordered(std::int64_t v) { return static_cast<std::uint64_t>(v) ^ std::uint64_t{1} << 63; }
std::uint64_t ordered(std::uint64_t v) { return v; }
std::uint64_t ordered(std::complex<double>) { return 0; }  // refused

template <class A>
struct SortStep {
  struct Operand {
    int bits = 8;
    const void* x = nullptr;
    void* y = nullptr;
  };
  AxisView view;
  bool descending = false;
  std::int64_t lines = 0, per_chunk = 1;
  std::vector<Operand> operands;  // the keys first
  LoadBlock<A> load = nullptr;
  const Scratch* scratch = nullptr;

  static void run(const SortStep& s, std::int64_t chunk) {
    auto* entries = reinterpret_cast<Entry*>(s.scratch->mine());
    const std::int64_t n = s.view.extent, step = s.view.inner, end = std::min(s.lines, (chunk + 1) * s.per_chunk);
    for (std::int64_t line = chunk * s.per_chunk; line < end; ++line) {
      const std::int64_t base = line / step * n * step + line % step;
      A keys[kGenericBlock];
      for (std::int64_t i = 0; i < n; i += kGenericBlock) {
        const int count = static_cast<int>(std::min<std::int64_t>(kGenericBlock, n - i));
        s.load(s.operands[0].x, base + i * step, step, count, keys);
        for (int k = 0; k < count; ++k) {
          const std::uint64_t key = ordered(keys[k]);
          entries[i + k] = {s.descending ? ~key : key, i + k};
        }
      }
      // Equal keys by place: as a stable sort, without its memory.
      std::sort(entries, entries + n,
                [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.at < b.at; });
      for (const Operand& o : s.operands)
        for (std::int64_t i = 0; i < n; ++i)
          generic_move_row(o.bits, o.x, base + entries[i].at * step, o.y, base + i * step, 1);
    }
  }
};

void lower_sort(LowerContext& c) {
  const View keys = c.in(0);
  if (keys.elements() == 0) return;
  const auto& op = c.op<ops::Sort>();
  visit_wide(keys.dtype, [&]<class A>(A) {
    auto& s = c.keep<SortStep<A>>();
    s.view = around(keys, op.axis);
    s.descending = op.descending;
    s.lines = s.view.outer * s.view.inner;
    s.operands.resize(static_cast<std::size_t>(c.num_inputs()));
    bool shares_bytes = false;
    for (int i = 0; i < c.num_inputs(); ++i) {
      auto& o = s.operands[static_cast<std::size_t>(i)];
      o.bits = dtype_bits(c.in(i).dtype);
      shares_bytes = shares_bytes || o.bits < 8;
      c.point(o.x, c.in(i));
      c.point(o.y, c.out(i));
    }
    s.load = load_block<A>(keys.dtype);
    s.scratch = c.scratch(static_cast<std::size_t>(s.view.extent) * sizeof(Entry));
    const double n = static_cast<double>(s.view.extent);
    const double line_ns = n * (4.0 * std::max(1.0, std::log2(n)) + 3.0 * c.num_inputs());
    s.per_chunk =
        shares_bytes ? s.lines : c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / line_ns)));
    c.step<SortStep<A>::run>(s, (s.lines + s.per_chunk - 1) / s.per_chunk, line_ns * static_cast<double>(s.lines));
  });
}

constexpr Row kSortRows[] = {{OpKind::Sort, "sort_lines", never_refuses, lower_sort}};

}  // namespace

std::span<const Row> sort_rows() { return kSortRows; }

}  // namespace rlx::cpu
