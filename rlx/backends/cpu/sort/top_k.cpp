// TopK of lines, for every dtype.
#include <algorithm>
#include <cmath>
#include <optional>

#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/sort/sorted_keys.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::cpu {
namespace {

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

void highest(const SortKernels& k, const float* x, std::int64_t rows, std::int64_t chains, float* out) {
  k.highest_f32(x, rows, chains, out);
}
void highest(const SortKernels& k, const double* x, std::int64_t rows, std::int64_t chains, double* out) {
  k.highest_f64(x, rows, chains, out);
}
void highest(const SortKernels& k, const std::int32_t* x, std::int64_t rows, std::int64_t chains, std::int32_t* out) {
  k.highest_i32(x, rows, chains, out);
}
void highest(const SortKernels& k, const std::int64_t* x, std::int64_t rows, std::int64_t chains, std::int64_t* out) {
  k.highest_i64(x, rows, chains, out);
}

// The k best elements of a first block are kept. Then only elements that beat the last of these are collected, and
// whenever there are enough, the best are selected again. A later element ranks after an equal one, so kept elements
// stand before new ones.
template <class W>
struct TopKStep {
  std::int64_t n = 0, k = 0, room = 0, lines = 0, per_chunk = 1;
  bool direct = false;  // lines are read in place
  int bits = 8;
  KeyLine<W> line{};
  const SortKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  std::int32_t* indices = nullptr;

  std::int64_t chains = 0;  // 0: lines are too short, or k too large

  /// The number of chains for the k best of n, or 0; and the most rows of chains that are read of a line.
  static std::int64_t chains_for(std::int64_t n, std::int64_t k) {
    const std::int64_t chains = (4 * k + 63) / 64 * 64;
    return chains <= 512 && n >= 4 * chains ? chains : 0;
  }
  static constexpr std::int64_t kChainRows = 16;
  /// A value that at least k elements of the line are above; nullopt where the lowest value is among the k best.
  std::optional<W> bar(const W* row, W* best, W* sorting) const {
    if (chains == 0) return std::nullopt;
    highest(*kernels, row, std::min(kChainRows, n / chains), chains, best);
    sort_numbers(*kernels, best, chains, sorting);
    const W kth = best[chains - k];
    if constexpr (std::is_floating_point_v<W>) {
      if (kth == -std::numeric_limits<W>::infinity()) return std::nullopt;
      return std::nextafter(kth, -std::numeric_limits<W>::infinity());
    } else {
      if (kth == std::numeric_limits<W>::min()) return std::nullopt;
      return kth - 1;
    }
  }

  /// Elements that are selected from together: the `k` kept ones and new ones.
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
    W* best = parts.take<W>(s.chains);
    W* best_sorting = parts.take<W>(s.chains);
    for (std::int64_t l = chunk * s.per_chunk; l < std::min(s.lines, (chunk + 1) * s.per_chunk); ++l) {
      const W* row = own;
      if (s.direct)
        row = static_cast<const W*>(s.x) + l * s.n;
      else
        s.line.load(s.x, l * s.n, 1, s.n, own);
      std::int64_t count = s.room, next = s.room;
      if (const std::optional<W> bar = s.bar(row, best, best_sorting)) {
        next = 0;
        count = above(*s.kernels, row, &next, s.n, *bar, s.room, at);
      } else {
        for (std::int64_t i = 0; i < count; ++i) at[i] = static_cast<std::int32_t>(i);
      }
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
        if (s.direct)
          static_cast<W*>(s.y)[l * s.k + i] = row[kept[i]];
        else
          generic_move_row(s.bits, s.x, l * s.n + kept[i], s.y, l * s.k + i, 1);
        s.indices[l * s.k + i] = kept[i];
      }
    }
  }
};

}  // namespace

void lower_top_k(LowerContext& c) {
  const View x = c.in(0);
  if (c.out().elements() == 0) return;
  visit_sorted(x.dtype, [&]<class W>(W) {
    auto& s = c.keep<TopKStep<W>>();
    s.n = x.dim(-1);
    s.k = c.op<ops::TopK>().k;
    s.room = TopKStep<W>::room_for(s.n, s.k);
    s.chains = TopKStep<W>::chains_for(s.n, s.k);
    s.lines = x.elements() / s.n;
    s.direct = x.dtype == DType::F32 || x.dtype == DType::F64 || x.dtype == DType::I32 || x.dtype == DType::I64;
    s.bits = dtype_bits(x.dtype);
    s.line = key_line<W>(x.dtype, c.kernels().isa);
    s.kernels = &sort_kernels(c.kernels().isa);
    s.scratch = c.scratch(2 * ScratchParts::bytes<std::int32_t>(s.room) +
                          2 * ScratchParts::bytes<std::int64_t>(s.room) + 2 * ScratchParts::bytes<W>(s.room) +
                          2 * ScratchParts::bytes<W>(s.chains) + (s.direct ? 0 : ScratchParts::bytes<W>(s.n)));
    c.point(s.x, x);
    c.point(s.y, c.out(0));
    c.point(s.indices, c.out(1));
    const double line_ns = 0.3 * static_cast<double>(s.n) + 8.0 * static_cast<double>(s.room);
    s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / line_ns)));
    c.step<TopKStep<W>::run>(s, (s.lines + s.per_chunk - 1) / s.per_chunk, line_ns * static_cast<double>(s.lines));
  });
}

}  // namespace rlx::cpu
