// Scatter for every dtype.
#include <algorithm>
#include <bit>
#include <complex>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/index/indices.h"
#include "rlx/backends/cpu/index/scatter_kernels.h"
#include "rlx/backends/cpu/sort/sort_kernels.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::cpu {
namespace {

// The cost depends on the number of updates. First the offset of each update is computed. Then chunks divide the
// written elements, by ranges of offsets or by columns of blocks, and each chunk goes through all updates. Updates of
// one element are applied in order, however elements are divided. Where an element is rounded once after all its
// updates, updates are sorted by offset.
struct Targets {
  NamedBlocks to;
  std::int64_t per_chunk = 1;
  std::int64_t* at = nullptr;       // [count], -1: nowhere
  std::int64_t* order = nullptr;    // [count], or null: in given order
  std::int64_t* sorting = nullptr;  // scratch of the sort
  const SortKernels* sorts = nullptr;
};
void find_targets(const Targets& t, std::int64_t chunk) {
  const std::int64_t begin = chunk * t.per_chunk;
  find_blocks(t.to, begin, std::min(t.to.count, begin + t.per_chunk), t.at + begin);
}
void order_targets(const Targets& t, std::int64_t) {
  const std::int64_t count = t.to.count;
  const int low = std::bit_width(static_cast<std::uint64_t>(count)),
            high = std::bit_width(static_cast<std::uint64_t>(t.to.span()));
  if (low + high > 62) {
    for (std::int64_t i = 0; i < count; ++i) t.order[i] = i;
    std::sort(t.order, t.order + count, [&t](std::int64_t i, std::int64_t j) {  // a sort that allocates no memory
      return t.at[i] != t.at[j] ? t.at[i] < t.at[j] : i < j;
    });
    return;
  }
  // Offset and number of an update, packed in one integer.
  const std::int64_t factor = std::int64_t{1} << low;
  for (std::int64_t i = 0; i < count; ++i) t.order[i] = t.at[i] * factor + i;
  t.sorts->sort_i64(t.order, count, t.sorting);
  for (std::int64_t i = 0; i < count; ++i) t.order[i] &= factor - 1;
}

// How chunks divide the elements: [outer][ranges of offsets][parts of a block].
struct Shares {
  std::int64_t outer = 1, places = 1, columns = 1, per_chunk = 1;  // per_chunk: of a block
  std::int64_t chunks() const { return outer * places * columns; }
};

struct ScatterStep {
  const Targets* targets = nullptr;
  Updates updates;
  Shares shares;
  std::int64_t span = 1;
  const ScatterKernels* kernels = nullptr;  // null: `put_generic`

  static void run(const ScatterStep& s, std::int64_t chunk) { s.put_share(s.updates, 0, chunk); }
  // For a single chunk: computes the offsets of some updates at a time and applies these.
  static void run_found(const ScatterStep& s, std::int64_t) {
    std::int64_t at[kPlacesTogether];
    Updates some = s.updates;
    some.at = at;
    for (std::int64_t i = 0; i < s.updates.count; i += kPlacesTogether) {
      some.count = std::min(kPlacesTogether, s.updates.count - i);
      find_blocks(s.targets->to, i, i + some.count, at);
      s.put_share(some, i, 0);
    }
  }
  // Applies the updates of chunk `chunk`; `u` has the updates from `first` on.
  void put_share(const Updates& u, std::int64_t first, std::int64_t chunk) const {
    const ScatterStep& s = *this;
    const IndexedBlocks& b = s.targets->to.blocks;
    const std::int64_t size = b.size(), column = chunk % s.shares.columns, rest = chunk / s.shares.columns;
    const std::int64_t part = rest % s.shares.places, outer = rest / s.shares.places;
    const std::int64_t low = s.span * part / s.shares.places, high = s.span * (part + 1) / s.shares.places;
    const std::int64_t end = std::min(size, (column + 1) * s.shares.per_chunk);
    for (std::int64_t at = column * s.shares.per_chunk; at < end;) {
      // Columns of one run.
      const std::int64_t row = at / b.run, col = at % b.run, n = std::min(end - at, b.run - col);
      const std::int64_t to = outer * b.outer_stride + b.rows[static_cast<std::size_t>(row)] + col;
      const std::int64_t from = (outer * s.targets->to.count + first) * size + at;
      if (s.kernels != nullptr)
        s.kernels->put(u, from, to, n, low, high);
      else
        put_generic(u, from, to, n, low, high);
      at += n;
    }
  }
  // Sub-byte elements, which are only moved, and complex sums and products.
  static void put_generic(const Updates& u, std::int64_t from_base, std::int64_t to_base, std::int64_t n,
                          std::int64_t low, std::int64_t high) {
    using A = std::complex<double>;
    for (std::int64_t j = 0; j < u.count; ++j) {
      if (u.at[j] < low || u.at[j] >= high) continue;
      const std::int64_t from = from_base + j * u.size, to = to_base + u.at[j];
      if (u.fn == ScatterKind::Set) {
        generic_move_row(dtype_bits(u.dtype), u.from, from, u.to, to, n);
        continue;
      }
      for (std::int64_t i = 0; i < n; i += kGenericBlock) {
        const int count = static_cast<int>(std::min<std::int64_t>(kGenericBlock, n - i));
        A into[kGenericBlock], values[kGenericBlock];
        const auto load = load_block<A>(u.dtype);
        load(u.to, to + i, 1, count, into);
        load(u.from, from + i, 1, count, values);
        for (int k = 0; k < count; ++k) into[k] = u.fn == ScatterKind::Add ? into[k] + values[k] : into[k] * values[k];
        store_block<A>(u.dtype)(u.to, to + i, 1, count, into);
      }
    }
  }
};

void run_all_shares(const ScatterStep& s, std::int64_t) {
  for (std::int64_t chunk = 0; chunk < s.shares.chunks(); ++chunk) ScatterStep::run(s, chunk);
}

Shares shares_of(const LowerContext& c, std::int64_t outer, std::int64_t count, std::int64_t size, int bits) {
  constexpr std::int64_t kFew = 16384;  // elements up to which one chunk does all
  Shares s;
  s.outer = outer;
  s.per_chunk = size;
  if (bits < 8) return s;
  if (c.finest()) {
    s.places = 3;
    s.per_chunk = 1;
  } else if (count * size > kFew && outer < 2 * c.threads()) {
    // Going through all updates in each range costs as much as applying short ones.
    if (count >= 64)
      s.places = size < 8 ? 1 : std::clamp(c.threads(), 1, 16);
    else
      s.per_chunk = std::max<std::int64_t>(512, kFew / count);
  }
  s.columns = (size + s.per_chunk - 1) / s.per_chunk;
  return s;
}

void lower_scatter(LowerContext& c) {
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  copy_unless_in_place(c, x, y);
  const auto& op = c.op<ops::Scatter>();
  const View updates = c.in(c.num_inputs() - 1);
  if (updates.elements() == 0) return;
  auto& t = c.keep<Targets>();
  point_blocks(c, t.to, y, op.axes, op.mode);
  const Shares shares = shares_of(c, t.to.blocks.outer, t.to.count, t.to.blocks.size(), dtype_bits(x.dtype));
  const bool rounds = rounds_updates(x.dtype, op.fn), together = shares.chunks() == 1 && !rounds;
  auto& s = c.keep<ScatterStep>();
  s.targets = &t;
  s.span = t.to.span();
  s.updates.dtype = x.dtype;
  s.updates.fn = op.fn;
  s.updates.count = t.to.count;
  s.updates.size = t.to.blocks.size();
  if (has_scatter_kernels(x.dtype, op.fn)) s.kernels = &scatter_kernels(c.kernels().isa);
  s.shares = shares;
  c.point(s.updates.from, updates);
  c.point(s.updates.to, y);
  if (together) {
    c.step<ScatterStep::run_found>(s, 1, 1.5 * static_cast<double>(t.to.count + updates.elements()));
    return;
  }
  const auto bytes = static_cast<std::size_t>(t.to.count) * sizeof(std::int64_t);
  t.at = reinterpret_cast<std::int64_t*>(c.workspace(bytes));
  t.per_chunk = c.grain(16384);
  c.step<find_targets>(t, (t.to.count + t.per_chunk - 1) / t.per_chunk, 1.5 * static_cast<double>(t.to.count));
  if (rounds) {
    t.sorts = &sort_kernels(c.kernels().isa);
    t.order = reinterpret_cast<std::int64_t*>(c.workspace(bytes));
    t.sorting = reinterpret_cast<std::int64_t*>(c.workspace(bytes + kSortSlack * sizeof(std::int64_t)));
    c.step<order_targets>(t, 1, 15.0 * static_cast<double>(t.to.count));
  }
  s.updates.at = t.at;
  s.updates.order = t.order;
  // Blocks may share bytes of sub-byte elements, so one chunk writes them all.
  const std::int64_t chunks = s.shares.chunks();
  const double cost =
      static_cast<double>(t.to.count * s.shares.chunks()) * 0.3 + static_cast<double>(updates.elements());
  if (dtype_bits(x.dtype) < 8)
    c.step<run_all_shares>(s, 1, cost);
  else
    c.step<ScatterStep::run>(s, chunks, cost);
}
bool scatter_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand + 1 < static_cast<int>(g.node(id).inputs.size());
}

constexpr KernelEntry kScatterEntries[] = {
    {OpKind::Scatter, "scatter_blocks", index_refuses, lower_scatter, scatter_reads_strided, over_first},
};

}  // namespace

std::span<const KernelEntry> scatter_entries() { return kScatterEntries; }

}  // namespace rlx::cpu
