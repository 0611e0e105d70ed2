// Grouped matmul: rows are sorted by group, and each group is a matmul of its own. The work depends on the number of
// rows, not on the number of groups.
#include <algorithm>

#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/backends/cpu/matmul/driver.h"
#include "rlx/backends/cpu/matmul/grouping.h"
#include "rlx/backends/cpu/matmul/packed_b.h"
#include "rlx/backends/cpu/quant/interleaved_layout.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::cpu {
namespace {

// -- f32 --

struct GroupMatmuls {
  const Grouping* grouping = nullptr;
  const MatmulKernel* kernel = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t k = 0, n = 0, columns = 1, column_chunks = 1;  // columns of a chunk
  const float* a = nullptr;                                   // sorted rows [M, K]; run_sums: [K, M]
  const float* b = nullptr;                                   // w; run_sums: sorted rows [M, N]
  std::int64_t b_group = 0, b_k = 0, b_n = 1;
  float* c = nullptr;  // [M, N] in the order of groups; run_sums: the result [E, K, N]
};
MatmulOperands column_part(const GroupMatmuls& s, std::int64_t part) {
  MatmulOperands gemm;
  gemm.a_type = gemm.b_type = gemm.c_type = DType::F32;
  gemm.n = std::min(s.columns, s.n - part * s.columns);
  gemm.ldc = s.n;
  gemm.num_contracted = 1;
  return gemm;
}
void run_grouped_rows(const GroupMatmuls& s, std::int64_t chunk) {
  const std::int64_t tile = chunk / s.column_chunks, part = chunk % s.column_chunks;
  if (tile >= *s.grouping->num_tiles) return;
  const std::int64_t e = s.grouping->tiles[2 * tile], first = s.grouping->tiles[2 * tile + 1];
  MatmulOperands gemm = column_part(s, part);
  gemm.m = std::min(kGroupTileRows, s.grouping->starts[e + 1] - first);
  gemm.a = s.a + first * s.k;
  gemm.a_m_stride = s.k;
  gemm.b = s.b + e * s.b_group + part * s.columns * s.b_n;
  gemm.b_n_stride = s.b_n;
  gemm.c = s.c + first * s.n + part * s.columns;
  gemm.contracted[0] = {s.k, 1, s.b_k, 0};
  run_whole_matmul(s.kernel, gemm, s.scratch->mine());
}
void run_sums(const GroupMatmuls& s, std::int64_t chunk) {
  const std::int64_t e = chunk / s.column_chunks, part = chunk % s.column_chunks;
  const std::int64_t first = s.grouping->starts[e], count = s.grouping->starts[e + 1] - first;
  MatmulOperands gemm = column_part(s, part);
  gemm.m = s.k;
  gemm.a = s.a + first;
  gemm.a_m_stride = s.grouping->rows;
  gemm.b = s.b + first * s.n + part * s.columns;
  gemm.b_n_stride = 1;
  float* const c = s.c + e * s.k * s.n + part * s.columns;
  gemm.c = c;
  gemm.contracted[0] = {count, 1, s.n, 0};
  if (count > 0) return run_whole_matmul(s.kernel, gemm, s.scratch->mine());
  for (std::int64_t r = 0; r < s.k; ++r) std::fill_n(c + r * s.n, gemm.n, 0.0F);
}

void lower_f32(LowerContext& c) {
  const View x = c.in(0), other = c.in(1), y = c.out();
  if (y.elements() == 0 || add_zeros_for_nothing(c)) return;
  const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
  const std::int64_t groups = rows ? other.dim(0) : y.dim(0);
  const Grouping& g = add_grouping(c, groups);
  auto& s = c.keep<GroupMatmuls>();
  s.grouping = &g;
  s.kernel = &matmul_kernel(c.kernels(), MatmulSums::F32);
  s.k = x.dim(1);
  s.n = y.dim(-1);
  s.a = add_group_rows(c, g, x, !rows);
  // Columns of a chunk: about a million operations per tile.
  const std::int64_t depth = std::max<std::int64_t>(1, rows ? s.k : g.rows / std::max<std::int64_t>(1, groups));
  s.columns = std::min(s.n, c.finest() ? 32 : std::max<std::int64_t>(64, (8192 / depth + 63) / 64 * 64));
  s.column_chunks = (s.n + s.columns - 1) / s.columns;
  // Tiles of rows have up to kGroupTileRows rows; sums have up to all of them as steps of k.
  std::size_t scratch = 0;
  for (std::int64_t m = rows ? 1 : s.k; m <= (rows ? kGroupTileRows : s.k); ++m) {
    MatmulOperands largest = column_part(s, 0);
    largest.m = m;
    largest.contracted[0] = {std::max<std::int64_t>(1, rows ? s.k : g.rows), 1, rows ? other.stride(1) : s.n, 0};
    largest.b_n_stride = rows ? other.stride(2) : 1;
    scratch = std::max(scratch, plan_matmul(s.kernel, largest, 1).scratch_bytes);
  }
  s.scratch = c.scratch(scratch);
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
  c.step<run_grouped_rows>(s, g.most_tiles() * s.column_chunks, ns);
  add_ungroup_rows(c, g, s.c, s.n);
}

// -- packed matrices --

struct PackedGroups {
  const Grouping* grouping = nullptr;
  const MatmulKernel* kernel = nullptr;
  const InterleavedKernels* blocks = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t k = 0, n = 0, columns = 1, column_chunks = 1;  // columns of a chunk
  std::optional<InterleavedPanels> interleaved{};             // else packed B panels
  std::int64_t matrix_bytes = 0, unit_bytes = 0, piece = 1;   // of columns that are packed together
  std::int64_t scales_at = 0;                                 // packed I8: offset in a matrix
  const float* a = nullptr;                                   // sorted rows [M, K]
  const std::byte* b = nullptr;
  float* c = nullptr;  // [M, N] in the order of groups
};
void run_packed_groups(const PackedGroups& s, std::int64_t chunk) {
  const std::int64_t tile = chunk / s.column_chunks, first_column = chunk % s.column_chunks * s.columns;
  if (tile >= *s.grouping->num_tiles) return;
  const std::int64_t e = s.grouping->tiles[2 * tile], first = s.grouping->tiles[2 * tile + 1];
  const std::int64_t m = std::min(kGroupTileRows, s.grouping->starts[e + 1] - first);
  const std::int64_t n = std::min(s.columns, s.n - first_column);
  const float* const a = s.a + first * s.k;
  const std::byte* const matrix = s.b + e * s.matrix_bytes;
  const std::byte* const b = matrix + first_column / s.piece * s.unit_bytes;
  float* const out = s.c + first * s.n + first_column;
  if (s.interleaved && s.interleaved->int8) {
    MatmulOperands gemm = packed_b_operands(m, n, s.k);
    gemm.b_blocks = s.interleaved->kind;
    gemm.a = a, gemm.b = b, gemm.c = out, gemm.ldc = s.n;
    return run_whole_matmul(&s.blocks->matmul, gemm, nullptr, s.scratch->mine());
  }
  const auto run = [&](std::int64_t columns, const void* packed, float* to) {
    MatmulOperands gemm = packed_b_operands(m, columns, s.k);
    gemm.a = a, gemm.b = packed, gemm.c = to, gemm.ldc = s.n;
    if (s.scales_at > 0) gemm.b_scale = reinterpret_cast<const float*>(matrix + s.scales_at) + first_column;
    run_whole_matmul(s.kernel, gemm, nullptr);
  };
  if (!s.interleaved) return run(n, b, out);
  const std::int64_t width = s.kernel->width(), lanes = s.interleaved->lanes;
  for (std::int64_t at = 0; at < n; at += width) {
    const std::int64_t columns = std::min(width, n - at);
    auto* panel = reinterpret_cast<float*>(s.scratch->mine());
    s.blocks->decode(s.interleaved->kind, s.k, b + at / lanes * s.unit_bytes, (columns + lanes - 1) / lanes, panel);
    run(columns, panel, out + at);
  }
}
void lower_packed_groups(LowerContext& c) {
  const PackedLayout& layout = packed_layout_of(c.graph(), c.node().inputs[1]);
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0 || add_zeros_for_nothing(c)) return;
  const Grouping& g = add_grouping(c, c.in(1).dim(0));
  auto& s = c.keep<PackedGroups>();
  s.grouping = &g;
  s.blocks = c.kernels().interleaved;
  s.k = x.dim(1), s.n = y.dim(1);
  s.interleaved = interleaved_panels_of(layout);
  s.matrix_bytes = layout_of_one_matrix(layout).bytes;
  const std::int64_t width = c.kernels().packed_nr_f32(s.n);
  PackedBType type = PackedBType::F32;
  std::int64_t scratch = 0;
  if (s.interleaved) {
    check(reads_interleaved(c.kernels(), layout, s.k, s.n), "the weights are packed for another instruction set");
    s.piece = s.interleaved->lanes;
    s.unit_bytes = interleaved_traits(s.interleaved->kind).panel_bytes(s.k / kInterleavedGroup, s.interleaved->lanes);
    MatmulOperands most = packed_b_operands(kGroupTileRows, s.n, s.k);
    most.b_blocks = s.interleaved->kind;
    scratch = s.interleaved->int8 ? plan_matmul(&s.blocks->matmul, most, 1).pack_bytes
                                  : s.k * width * static_cast<std::int64_t>(sizeof(float));
  } else {
    check(reads_packed_b(c.kernels(), layout, s.k, s.n), "the weights are packed for another instruction set");
    const Panels panels = *panels_of(layout);
    type = panels.type;
    if (type == PackedBType::I8) s.scales_at = packed_scales_at(panels, s.k, s.n);
    s.piece = panels.width;
    s.unit_bytes = s.k * panels.width * panel_element_bytes(panels.type);
  }
  s.kernel = &packed_b_kernel(c.kernels(), type);
  s.scratch = c.scratch(static_cast<std::size_t>(std::max<std::int64_t>(scratch, 64)));
  // Columns of a chunk: whole panels, some 64 K elements of the matrix.
  const std::int64_t unit = s.interleaved ? std::max(width, s.piece) : s.piece;
  s.columns = c.finest() ? unit : std::max<std::int64_t>(1, (65536 / s.k + unit - 1) / unit) * unit;
  s.column_chunks = (s.n + s.columns - 1) / s.columns;
  s.a = add_group_rows(c, g, x, false);
  c.point(s.b, c.in(1));
  s.c = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(y.elements()) * sizeof(float)));
  const double ns =
      2.0 * static_cast<double>(x.elements()) * static_cast<double>(s.n) / gemm_flops_per_ns(c.kernels().isa);
  c.step<run_packed_groups>(s, g.most_tiles() * s.column_chunks, ns);
  add_ungroup_rows(c, g, s.c, s.n);
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
    for (int i = 0; i < n; ++i) sum[i] = add_vd(sum[i], mul_vd(scale, values[i]));
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
  if (y.elements() == 0 || add_zeros_for_nothing(c)) return;
  const bool rows = c.op<ops::GroupedDot>().fn == GroupedKind::Rows;
  const Grouping& g = add_grouping(c, rows ? other.dim(0) : y.dim(0));
  visit_f64(x.dtype, [&]<class A>(A) {
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

// Panels of a record; bf16 pairs have a record of another kind.
bool is_packed_b(const PackedLayout& layout) {
  const std::optional<Panels> panels = panels_of(layout);
  return panels && panels->type != PackedBType::BF16Pairs;
}
bool is_packed(const Graph& g, NodeId id) { return !packed_layout_of(g, g.node(id).inputs[1]).empty(); }
const char* packed_groups_refuse(const Graph& g, NodeId id, bool interleaved) {
  const PackedLayout& layout = packed_layout_of(g, g.node(id).inputs[1]);
  if (interleaved ? !interleaved_panels_of(layout) : !is_packed_b(layout))
    return interleaved ? "its weights are not in the interleaved block-quantized layout"
                       : "its weights are not packed B tiles";
  return refuse_unless(in_dtype(g, id, 0) == DType::F32, "its operands and results are not all f32");
}
const char* interleaved_refuses_groups(const Graph& g, NodeId id) { return packed_groups_refuse(g, id, true); }
const char* panels_refuse_groups(const Graph& g, NodeId id) { return packed_groups_refuse(g, id, false); }
const char* generic_refuses_groups(const Graph& g, NodeId id) {
  return refuse_unless(!is_packed(g, id), "its weights are prepacked");
}
std::optional<PackedLayout> groups_packed_layout(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                                 const ConstantMatrix& m) {
  if (operand != 1 || m.dtype != DType::F32 || in_dtype(g, id, 0) != DType::F32 || m.k < 1 || m.n < 1)
    return std::nullopt;
  return is_block_scheme(m.scheme) ? interleaved_layout(kernels, m) : std::optional(packed_b_layout(kernels, m));
}
bool groups_read_packed(const Graph& g, NodeId id, int operand, const PackedLayout& layout) {
  return operand == 1 && g.node(id).op.as<ops::GroupedDot>().fn == GroupedKind::Rows &&
         (is_packed_b(layout) || interleaved_panels_of(layout));
}

const char* f32_refuses(const Graph& g, NodeId id) {
  if (is_packed(g, id)) return "its weights are prepacked";
  return refuse_unless(in_dtype(g, id, 0) == DType::F32, "its operands and results are not all f32");
}
bool reads_strided_weights(const Graph& g, NodeId id, int operand) {
  return operand == 1 && g.node(id).op.as<ops::GroupedDot>().fn == GroupedKind::Rows;
}

constexpr KernelEntry kGroupedEntries[] = {
    {OpKind::GroupedDot, "grouped_interleaved", interleaved_refuses_groups, lower_packed_groups},
    {OpKind::GroupedDot, "grouped_packed", panels_refuse_groups, lower_packed_groups},
    {.kind = OpKind::GroupedDot,
     .kernel = "grouped_gemm_f32",
     .refuses = f32_refuses,
     .lower = lower_f32,
     .reads_strided = reads_strided_weights,
     .packed_layout = groups_packed_layout,
     .reads_packed = groups_read_packed},
    {OpKind::GroupedDot, "generic_groups", generic_refuses_groups, lower_generic, reads_strided_weights},
};

}  // namespace

std::span<const KernelEntry> grouped_entries() { return kGroupedEntries; }

}  // namespace rlx::cpu
