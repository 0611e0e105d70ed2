// Sorts rows by group, and copies rows to that order and back.
#include "rlx/backends/cpu/matmul/grouping.h"

#include <cstring>

namespace rlx::cpu {
namespace {

void run_grouping(const Grouping& g, std::int64_t) {
  std::fill_n(g.starts, g.groups + 2, std::int64_t{0});
  for (std::int64_t r = 0; r < g.rows; ++r) ++g.starts[g.group_of(r) + 1];
  for (std::int64_t e = 0; e <= g.groups; ++e) g.starts[e + 1] += g.starts[e];
  for (std::int64_t r = 0; r < g.rows; ++r) g.order[g.starts[g.group_of(r)]++] = r;
  for (std::int64_t e = g.groups; e-- > 0;) g.starts[e + 1] = g.starts[e];  // the previous line advanced the starts
  g.starts[0] = 0;
  std::int64_t n = 0;
  for (std::int64_t e = 0; e < g.groups; ++e)
    for (std::int64_t at = g.starts[e]; at < g.starts[e + 1]; at += kGroupTileRows) {
      g.tiles[2 * n] = e;
      g.tiles[2 * n + 1] = at;
      ++n;
    }
  *g.num_tiles = n;
}

/// Copies rows to the order of groups, unchanged or transposed ([columns, rows]).
struct GroupRows {
  const Grouping* grouping = nullptr;
  std::int64_t columns = 0, per_chunk = 1;
  bool transposed = false;
  const float* x = nullptr;
  float* sorted = nullptr;
};
void run_group_rows(const GroupRows& s, std::int64_t chunk) {
  const Grouping& g = *s.grouping;
  const std::int64_t begin = chunk * s.per_chunk, end = std::min(g.rows, begin + s.per_chunk);
  for (std::int64_t at = begin; at < end; ++at) {
    const float* from = s.x + g.order[at] * s.columns;
    if (!s.transposed)
      std::copy_n(from, s.columns, s.sorted + at * s.columns);
    else
      for (std::int64_t k = 0; k < s.columns; ++k) s.sorted[k * g.rows + at] = from[k];
  }
}

/// Copies rows back to their positions. Rows of no group become zeros.
struct UngroupRows {
  const Grouping* grouping = nullptr;
  std::int64_t columns = 0, per_chunk = 1;
  const float* sorted = nullptr;
  float* y = nullptr;
};
void run_ungroup(const UngroupRows& s, std::int64_t chunk) {
  const Grouping& g = *s.grouping;
  const std::int64_t begin = chunk * s.per_chunk, end = std::min(g.rows, begin + s.per_chunk);
  for (std::int64_t at = begin; at < end; ++at) {
    float* to = s.y + g.order[at] * s.columns;
    if (at < g.starts[g.groups])
      std::copy_n(s.sorted + at * s.columns, s.columns, to);
    else
      std::fill_n(to, s.columns, 0.0F);
  }
}

/// Without rows or depth all sums are zero, and there may be too many groups to count.
struct Zeros {
  std::size_t bytes = 0;
  void* y = nullptr;
};
void run_zeros(const Zeros& s, std::int64_t) { std::memset(s.y, 0, s.bytes); }

}  // namespace

Grouping& add_grouping(LowerContext& c, std::int64_t groups) {
  auto& g = c.keep<Grouping>();
  const View ids = c.in(2);
  g.wide = ids.dtype == DType::I64;
  g.rows = ids.elements();
  g.groups = groups;
  const auto longs = [&](std::int64_t n) {
    return reinterpret_cast<std::int64_t*>(c.workspace(static_cast<std::size_t>(n) * sizeof(std::int64_t)));
  };
  g.order = longs(std::max<std::int64_t>(g.rows, 1));
  g.starts = longs(groups + 2);
  g.tiles = longs(2 * g.most_tiles() + 1);
  g.num_tiles = longs(1);
  c.point(g.ids, ids);
  c.step<run_grouping>(g, 1, 3.0 * static_cast<double>(g.rows) + 2.0 * static_cast<double>(groups));
  return g;
}

const float* add_group_rows(LowerContext& c, const Grouping& g, const View& x, bool transposed) {
  auto& s = c.keep<GroupRows>();
  s.grouping = &g;
  s.columns = x.dim(1);
  s.transposed = transposed;
  s.per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, s.columns)));
  s.sorted = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(x.elements() + 1) * sizeof(float)));
  c.point(s.x, x);
  c.step<run_group_rows>(s, (g.rows + s.per_chunk - 1) / s.per_chunk, 0.5 * static_cast<double>(x.elements()));
  return s.sorted;
}

void add_ungroup_rows(LowerContext& c, const Grouping& g, const float* sorted, std::int64_t columns) {
  auto& back = c.keep<UngroupRows>();
  back.grouping = &g;
  back.columns = columns;
  back.per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / columns));
  back.sorted = sorted;
  c.point(back.y, c.out());
  c.step<run_ungroup>(back, (g.rows + back.per_chunk - 1) / back.per_chunk,
                      0.3 * static_cast<double>(g.rows * columns));
}

bool add_zeros_for_nothing(LowerContext& c) {
  const View y = c.out();
  if (c.in(0).elements() != 0 && c.in(1).elements() != 0) return false;
  auto& s = c.keep<Zeros>();
  s.bytes = size_bytes(y.dtype, y.elements());
  c.point(s.y, y);
  c.step<run_zeros>(s, 1, 0.1 * static_cast<double>(y.elements()));
  return true;
}

}  // namespace rlx::cpu
