// Packs matrices that are computed by a run or are inputs, for matmuls that read them in every iteration of a loop.
#include <algorithm>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/matmul/packed_b.h"

namespace rlx::cpu {
namespace {

const char* prepack_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Relayout>();
  for (int i = 0; i < static_cast<int>(g.node(id).inputs.size()); ++i)
    if (const DType from = in_dtype(g, id, i); from != DType::F32 && from != DType::BF16 && from != DType::F16)
      return "a source is not f32, bf16 or f16";
  return refuse_unless(panels_of(op.form).has_value() && op.form.count == 1,
                       "its packed layout is not packed B tiles of one matrix");
}

struct PrepackStep {
  const KernelTable* kernels = nullptr;
  ops::Relayout op{};
  ops::PackedSource source{};
  std::int64_t first = 0;  // column of the matrix that the source begins with
  DType from = DType::F32;
  const std::byte* values = nullptr;
  std::byte* panels = nullptr;
  std::int64_t columns = 0;      // columns of a chunk, counted from the matrix's first column
  std::int64_t first_chunk = 0;  // the first chunk that the source overlaps
};
void run_prepack(const PrepackStep& s, std::int64_t chunk) {
  const std::int64_t at = (s.first_chunk + chunk) * s.columns - s.first;
  const std::int64_t begin = std::max<std::int64_t>(0, at), end = std::min(s.source.columns, at + s.columns);
  encode_packed_b(*s.kernels, {s.op, s.source, s.first, begin, end}, s.from, s.values, s.panels);
}

void lower_prepack(LowerContext& c) {
  const auto& op = c.op<ops::Relayout>();
  check(reads_packed_b(c.kernels(), op.form, op.k, op.n), "a matrix is packed for another instruction set");
  const Panels panels = *panels_of(op.form);
  const std::int64_t columns = c.finest() ? panels.width : panel_chunk(panels, op.k);
  std::int64_t first = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ops::PackedSource source = op.source(static_cast<std::size_t>(i));
    if (source.columns == 0) continue;
    const View x = c.in(i);
    check(x.dense(), "a matrix to pack is not row-major");
    auto& s = c.keep<PrepackStep>();
    s.kernels = &c.kernels();
    s.op = op;
    s.source = source;
    s.first = first;
    s.from = x.dtype;
    s.columns = columns;
    s.first_chunk = first / columns;
    c.point(s.values, x);
    c.point(s.panels, c.out());
    first += source.columns;
    c.step<run_prepack>(s, (first + columns - 1) / columns - s.first_chunk,
                        0.4 * static_cast<double>(source.columns * op.k));
  }
}

constexpr KernelEntry kPrepackEntries[] = {{OpKind::Relayout, "pack_panels", prepack_refuses, lower_prepack}};

}  // namespace

std::span<const KernelEntry> prepack_entries() { return kPrepackEntries; }

}  // namespace rlx::cpu
