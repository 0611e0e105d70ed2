// Lowering of one node: the places of its operands and results, and the objects that its tasks keep.
#include <algorithm>

#include "rlx/backends/cpu/aligned_bytes.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/instance.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::cpu {
namespace {

struct Workspace final : Kept {
  AlignedBytes bytes;
};

}  // namespace

std::int64_t View::elements() const { return product(dims); }

bool View::dense() const {
  std::int64_t expected = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

View LowerContext::value(Value v) const {
  const Shape& shape = lir_.graph.shape(v);
  View out;
  out.dtype = shape.dtype();
  out.dims = shape.static_dims();
  out.where = &lir_.plan.at(v);
  out.strides = out.where->strides.empty() ? row_major_strides(out.dims) : out.where->strides;
  check(out.strides.size() == out.dims.size(), "a planned value has another number of strides than axes");
  return out;
}

void* LowerContext::resolve(void* field, const View& v, std::int64_t element) {
  const LirValue& w = *v.where;
  const std::size_t offset =
      w.offset + static_cast<std::size_t>(element * static_cast<std::int64_t>(dtype_bits(v.dtype)) / 8);
  switch (w.place) {
    case Place::Arena:
      check(w.index < arenas_.size(), "a value is in an arena that is not bound");
      return arenas_[w.index].host + offset;
    case Place::Constant:
      return const_cast<std::byte*>(lir_.graph.node(NodeId{w.index}).op.as<ops::Constant>().value.data()) + offset;
    case Place::Input:
    case Place::Output:
    case Place::Prepared:
    case Place::State: list_.patches.push_back({field, w.place, w.index, offset}); return nullptr;
    case Place::None: break;
  }
  check(false, "a dequantized value that its readers decode themselves has no address");
  return nullptr;
}

void LowerContext::tile_rows(std::int64_t rows, std::int64_t group_rows, std::int64_t chunks_per_group,
                             std::initializer_list<int> operands, std::initializer_list<int> results) {
  if (list_.tasks.size() == first_task_ || rows <= 0) return;  // `step` adds no task for 0 chunks
  Task& p = list_.tasks.back();
  const std::int64_t lower = StepSchedule::lower_half(p.chunks);
  p.halves.rows = rows;
  p.halves.lower_end = std::min(rows, (lower + chunks_per_group - 1) / chunks_per_group * group_rows);
  p.halves.upper_begin = std::min(rows, lower / chunks_per_group * group_rows);
  for (int i : operands)
    if (i >= 0 && i < 32) p.halves.operands |= 1U << i;
  for (int r : results) p.halves.results |= 1U << r;
}

std::byte* LowerContext::workspace(std::size_t bytes) {
  auto kept = std::make_unique<Workspace>();
  kept->bytes = AlignedBytes(bytes);
  std::byte* data = kept->bytes.data;
  list_.kept.push_back(std::move(kept));
  return data;
}

std::unique_ptr<Instance> LowerContext::bind_body(std::size_t body) const {
  std::vector<BufferView> arenas;
  for (std::uint32_t range : bodies().arenas[body]) arenas.push_back(body_range(range));
  return std::make_unique<CpuInstance>(*list_.executable, bodies().modules[body], arenas, true);
}

}  // namespace rlx::cpu
