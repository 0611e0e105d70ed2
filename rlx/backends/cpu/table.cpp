// The table of kernel entries, and helpers shared by entries.
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic.h"

namespace rlx::cpu {

const EntryTable<KernelEntry>& entry_table() {
#define RLX_ENTRIES(family) family##_entries(),
  // Never destroyed: threads may compile while the process ends.
  static const EntryTable<KernelEntry>& table = *new EntryTable<KernelEntry>({RLX_FOR_EACH_ENTRY_FAMILY(RLX_ENTRIES)});
#undef RLX_ENTRIES
  return table;
}

bool every_dtype(const Graph& g, NodeId id, DType t) {
  bool all = true;
  for (Value v : g.node(id).inputs) all = all && g.shape(v).dtype() == t;
  for (const Shape& s : g.node(id).shapes) all = all && s.dtype() == t;
  return all;
}

const char* refuse_unless_f32(const Graph& g, NodeId id) {
  return refuse_unless(every_dtype(g, id, DType::F32), "its operands and results are not all f32");
}

const char* refuse_high_rank(const Shape& s) {
  return refuse_unless(s.rank() <= kGenericMaxRank, "it has more axes than the kernel supports");
}

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

std::vector<std::int64_t> broadcast_strides(const View& v, std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size(), 0);
  const std::size_t shift = dims.size() - v.dims.size();
  for (std::size_t i = 0; i < v.dims.size(); ++i)
    if (v.dims[i] != 1) strides[shift + i] = v.strides[i];
  return strides;
}

std::optional<std::int64_t> fold_stride(const View& v, int first, int last) {
  std::optional<std::int64_t> stride;
  std::int64_t extent = 1;  // product of the folded extents
  for (int a = last - 1; a >= first; --a) {
    if (v.dim(a) == 1) continue;
    if (!stride)
      stride = v.stride(a);
    else if (v.stride(a) != *stride * extent)
      return std::nullopt;
    extent *= v.dim(a);
  }
  return stride ? stride : 0;
}

std::optional<RowView> as_rows(const View& v) {
  if (v.rank() == 0) return RowView{1, 1, 1};
  if (v.dim(-1) > 1 && v.stride(-1) != 1) return std::nullopt;
  auto ld = fold_stride(v, 0, v.rank() - 1);
  if (!ld) return std::nullopt;
  return RowView{product(std::span(v.dims).first(v.dims.size() - 1)), v.dim(-1), *ld};
}

cpu::ReduceKind kernel_kind(rlx::ReduceKind fn) {
  switch (fn) {
    case rlx::ReduceKind::Sum: return cpu::ReduceKind::Sum;
    case rlx::ReduceKind::Mean: return cpu::ReduceKind::Mean;
    case rlx::ReduceKind::Max: return cpu::ReduceKind::Max;
    case rlx::ReduceKind::Min: return cpu::ReduceKind::Min;
    case rlx::ReduceKind::Prod: break;
  }
  return cpu::ReduceKind::Prod;
}

double gemm_flops_per_ns(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return 150;
    case Isa::Avx2: return 80;
    default: return 20;
  }
}

}  // namespace rlx::cpu
