// Products by group: rows are brought together by group, and each group is a product of its own, so that the work is
// that of the rows, however many groups there are.
#include <algorithm>

#include "rlx/backends/cpu/kernels/generic_blocks.h"
#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kTileRows = 64;

/// The rows in the order of their groups: those of group e are order[starts[e] .. starts[e + 1]), those of none come
/// last, behind starts[groups].
struct Grouping {
  const void* ids = nullptr;
  bool wide = false;
  std::int64_t rows = 0, groups = 0;
  std::int64_t *order = nullptr, *starts = nullptr;
  // Tiles of at most kTileRows rows of one group: {group, first place}, as many as `num_tiles` says.
  std::int64_t *tiles = nullptr, *num_tiles = nullptr;

  std::int64_t group_of(std::int64_t row) const {
    const std::int64_t id =
        wide ? static_cast<const std::int64_t*>(ids)[row] : static_cast<const std::int32_t*>(ids)[row];
    return id < 0 || id >= groups ? groups : id;
  }
};
std::int64_t most_tiles(const Grouping& g) { return g.rows / kTileRows + std::min(g.rows, g.groups); }

void run_grouping(const Grouping& g, std::int64_t) {
  std::fill_n(g.starts, g.groups + 2, std::int64_t{0});
  for (std::int64_t r = 0; r < g.rows; ++r) ++g.starts[g.group_of(r) + 1];
  for (std::int64_t e = 0; e <= g.groups; ++e) g.starts[e + 1] += g.starts[e];
  for (std::int64_t r = 0; r < g.rows; ++r) g.order[g.starts[g.group_of(r)]++] = r;
  for (std::int64_t e = g.groups; e-- > 0;) g.starts[e + 1] = g.starts[e];  // moved by the line before
  g.starts[0] = 0;
  std::int64_t n = 0;
  for (std::int64_t e = 0; e < g.groups; ++e)
    for (std::int64_t at = g.starts[e]; at < g.starts[e + 1]; at += kTileRows) {
      g.tiles[2 * n] = e;
      g.tiles[2 * n + 1] = at;
      ++n;
    }
  *g.num_tiles = n;
}
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
  g.tiles = longs(2 * most_tiles(g) + 1);
  g.num_tiles = longs(1);
  c.point(g.ids, ids);
  c.step<run_grouping>(g, 1, 3.0 * static_cast<double>(g.rows) + 2.0 * static_cast<double>(groups));
  return g;
}

// -- f32 --

/// Rows copied into the order of groups, as they are or transposed ([columns, rows]).
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

void multiply(const KernelTable& kernels, const GemmStridedF32& gemm, void* scratch) {
  const GemmStridedPlan plan = kernels.gemm_strided_plan_f32(gemm, 1);
  for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk)
    kernels.gemm_strided_f32(gemm, plan, chunk, nullptr, scratch);
}

struct GroupProducts {
  const Grouping* grouping = nullptr;
  const KernelTable* kernels = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t k = 0, n = 0, columns = 1, column_chunks = 1;  // columns of a chunk
  const float* a = nullptr;                                   // sorted rows: [M, K]; of sums [K, M]
  const float* b = nullptr;                                   // w; of sums the sorted y [M, N]
  std::int64_t b_group = 0, b_k = 0, b_n = 1;
  float* c = nullptr;  // [M, N] in the order of groups; of sums the result [E, K, N]
};
GemmStridedF32 column_part(const GroupProducts& s, std::int64_t part) {
  GemmStridedF32 gemm;
  gemm.n = std::min(s.columns, s.n - part * s.columns);
  gemm.ldc = s.n;
  gemm.num_contracted = 1;
  return gemm;
}
void run_rows(const GroupProducts& s, std::int64_t chunk) {
  const std::int64_t tile = chunk / s.column_chunks, part = chunk % s.column_chunks;
  if (tile >= *s.grouping->num_tiles) return;
  const std::int64_t e = s.grouping->tiles[2 * tile], first = s.grouping->tiles[2 * tile + 1];
  GemmStridedF32 gemm = column_part(s, part);
  gemm.m = std::min(kTileRows, s.grouping->starts[e + 1] - first);
  gemm.a = s.a + first * s.k;
  gemm.a_m_stride = s.k;
  gemm.b = s.b + e * s.b_group + part * s.columns * s.b_n;
  gemm.b_n_stride = s.b_n;
  gemm.c = s.c + first * s.n + part * s.columns;
  gemm.contracted[0] = {s.k, 1, s.b_k, 0};
  multiply(*s.kernels, gemm, s.scratch->mine());
}
void run_sums(const GroupProducts& s, std::int64_t chunk) {
  const std::int64_t e = chunk / s.column_chunks, part = chunk % s.column_chunks;
  const std::int64_t first = s.grouping->starts[e], count = s.grouping->starts[e + 1] - first;
  GemmStridedF32 gemm = column_part(s, part);
  gemm.m = s.k;
  gemm.a = s.a + first;
  gemm.a_m_stride = s.grouping->rows;
  gemm.b = s.b + first * s.n + part * s.columns;
  gemm.b_n_stride = 1;
  gemm.c = s.c + e * s.k * s.n + part * s.columns;
  gemm.contracted[0] = {count, 1, s.n, 0};
  if (count > 0) return multiply(*s.kernels, gemm, s.scratch->mine());
  for (std::int64_t r = 0; r < s.k; ++r) std::fill_n(gemm.c + r * s.n, gemm.n, 0.0F);
}

/// Rows back to their places; zeros for those of no group.
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

/// Without rows or a depth there is nothing to add up, and groups may be too many to count.
struct Zeros {
  std::size_t bytes = 0;
  void* y = nullptr;
};
void run_zeros(const Zeros& s, std::int64_t) { std::memset(s.y, 0, s.bytes); }
bool all_zeros(LowerContext& c) {
  const View y = c.out();
  if (c.in(0).elements() != 0 && c.in(1).elements() != 0) return false;
  auto& s = c.keep<Zeros>();
  s.bytes = size_bytes(y.dtype, y.elements());
  c.point(s.y, y);
  c.step<run_zeros>(s, 1, 0.1 * static_cast<double>(y.elements()));
  return true;
}

void lower_f32(LowerContext& c) {
  const View x = c.in(0), other = c.in(1), y = c.out();
  if (y.elements() == 0 || all_zeros(c)) return;
  const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
  const std::int64_t groups = rows ? other.dim(0) : y.dim(0);
  const Grouping& g = add_grouping(c, groups);
  auto& s = c.keep<GroupProducts>();
  s.grouping = &g;
  s.kernels = &c.kernels();
  s.k = x.dim(1);
  s.n = y.dim(-1);
  s.a = add_group_rows(c, g, x, !rows);
  // Columns of a chunk: about a million operations a tile.
  const std::int64_t depth = std::max<std::int64_t>(1, rows ? s.k : g.rows / std::max<std::int64_t>(1, groups));
  s.columns = std::min(s.n, c.finest() ? 32 : std::max<std::int64_t>(64, (8192 / depth + 63) / 64 * 64));
  s.column_chunks = (s.n + s.columns - 1) / s.columns;
  GemmStridedF32 largest = column_part(s, 0);
  largest.m = 1;
  largest.contracted[0] = {std::max<std::int64_t>(1, rows ? s.k : g.rows), 1, 1, 0};
  s.scratch = c.scratch(c.kernels().gemm_strided_plan_f32(largest, 1).scratch_bytes);
  const double ns =
      2.6 * static_cast<double>(x.elements()) * static_cast<double>(s.n) / gemm_flops_per_ns(c.kernels().isa);
  if (!rows) {
    s.b = add_group_rows(c, g, other, false);
    c.point(s.c, y);
    c.step<run_sums>(s, groups * s.column_chunks, ns + 0.2 * static_cast<double>(y.elements()));
    return;
  }
  s.b_group = other.stride(0);
  s.b_k = other.stride(1);
  s.b_n = other.stride(2);
  c.point(s.b, other);
  s.c = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(y.elements()) * sizeof(float)));
  c.step<run_rows>(s, most_tiles(g) * s.column_chunks, ns);
  auto& back = c.keep<UngroupRows>();
  back.grouping = &g;
  back.columns = s.n;
  back.per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / s.n));
  back.sorted = s.c;
  c.point(back.y, y);
  c.step<run_ungroup>(back, (g.rows + back.per_chunk - 1) / back.per_chunk, 0.3 * static_cast<double>(y.elements()));
}

// -- other dtypes --

template <class A>
struct GenericGroups {
  const Grouping* grouping = nullptr;
  bool rows = true;
  std::int64_t k = 0, width = 0, blocks = 1, units = 0, per_chunk = 1;
  const void *x = nullptr, *other = nullptr;
  void* y = nullptr;
  std::int64_t w_strides[3] = {};
  LoadBlock<A> load = nullptr;
  StoreBlock<A> store = nullptr;

  static void run(const GenericGroups& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
    for (std::int64_t u = chunk * s.per_chunk; u < end; ++u) {
      const std::int64_t line = u / s.blocks, first = u % s.blocks * kGenericBlock;
      const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, s.width - first));
      A sum[kGenericBlock] = {};
      s.rows ? s.row_of(line, first, n, sum) : s.sum_of(line, first, n, sum);
      s.store(s.y, line * s.width + first, 1, n, sum);
    }
  }
  void add(std::int64_t x_at, std::int64_t other_at, std::int64_t step, int n, A* sum) const {
    A scale, values[kGenericBlock];
    load(x, x_at, 0, 1, &scale);
    load(other, other_at, step, n, values);
    for (int i = 0; i < n; ++i) sum[i] = wide_add(sum[i], wide_mul(scale, values[i]));
  }
  void row_of(std::int64_t row, std::int64_t first, int n, A* sum) const {
    const std::int64_t e = grouping->group_of(row);
    for (std::int64_t i = 0; e < grouping->groups && i < k; ++i)
      add(row * k + i, e * w_strides[0] + i * w_strides[1] + first * w_strides[2], w_strides[2], n, sum);
  }
  void sum_of(std::int64_t line, std::int64_t first, int n, A* sum) const {  // line = group and row of K
    const std::int64_t e = line / k, i = line % k;
    for (std::int64_t at = grouping->starts[e]; at < grouping->starts[e + 1]; ++at) {
      const std::int64_t row = grouping->order[at];
      add(row * k + i, row * width + first, 1, n, sum);
    }
  }
};
void lower_generic(LowerContext& c) {
  const View x = c.in(0), other = c.in(1), y = c.out();
  if (y.elements() == 0 || all_zeros(c)) return;
  const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
  const Grouping& g = add_grouping(c, rows ? other.dim(0) : y.dim(0));
  visit_wide(x.dtype, [&]<class A>(A) {
    auto& s = c.keep<GenericGroups<A>>();
    s.grouping = &g;
    s.rows = rows;
    s.k = x.dim(1);
    s.width = y.dim(-1);
    s.blocks = (s.width + kGenericBlock - 1) / kGenericBlock;
    s.units = y.elements() / s.width * s.blocks;
    s.per_chunk = c.grain(std::max<std::int64_t>(
        1, 16384 / std::max<std::int64_t>(1, s.k * std::min<std::int64_t>(s.width, kGenericBlock))));
    for (int a = 0; rows && a < 3; ++a) s.w_strides[a] = other.stride(a);
    s.load = load_block<A>(x.dtype);
    s.store = store_block<A>(y.dtype);
    c.point(s.x, x);
    c.point(s.other, other);
    c.point(s.y, y);
    c.step<GenericGroups<A>::run>(
        s, (s.units + s.per_chunk - 1) / s.per_chunk,
        1.5 * static_cast<double>(x.elements()) * static_cast<double>(s.width) + static_cast<double>(y.elements()));
  });
}

const char* f32_refuses(const Graph& g, NodeId id) {
  return refuse_unless(in_dtype(g, id, 0) == DType::F32, "its operands and results are not all f32");
}
bool reads_strided_weights(const Graph& g, NodeId id, int operand) {
  return operand == 1 && g.node(id).op.as<ops::GroupedDot>().fn == GroupedKind::Rows;
}

constexpr Row kGroupedRows[] = {
    {OpKind::GroupedDot, "grouped_gemm_f32", f32_refuses, lower_f32, reads_strided_weights},
    {OpKind::GroupedDot, "generic_groups", never_refuses, lower_generic, reads_strided_weights},
};

}  // namespace

std::span<const Row> grouped_rows() { return kGroupedRows; }

}  // namespace rlx::cpu
