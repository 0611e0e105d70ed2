// Lowers each node of the plan in order through its kernel entry.
#include "rlx/backends/cpu/lowered_program.h"

#include <algorithm>

#include "rlx/ir/rewrite/roots.h"

namespace rlx::cpu {
namespace {

struct Tail {
  std::uint8_t* byte = nullptr;
  static void clear(const Tail& t, std::int64_t) { *t.byte &= 0x0f; }
};
// The unused half byte after an odd number of 4-bit elements must be zero.
void clear_tails(LowerContext& c) {
  for (std::uint32_t r = 0; r < c.node().num_results(); ++r) {
    const View y = c.out(static_cast<int>(r));
    if (dtype_bits(y.dtype) != 4 || y.elements() % 2 == 0) continue;
    if (!c.is_read(static_cast<int>(r))) continue;  // it has no bytes
    auto& tail = c.keep<Tail>();
    c.point(tail.byte, y, y.elements() - 1);
    c.step<Tail::clear>(tail, 1, 1);
  }
}

}  // namespace

LoweredProgram::LoweredProgram(const Executable& exe, const LirModule& lir, std::span<const BufferView> arenas,
                               bool is_body)
    : exe_(exe), lir_(lir), is_body_(is_body), arenas_(arenas.begin(), arenas.end()) {
  program_.executable = &exe;
  const std::size_t n = lir_.plan.schedule.size();
  first_task_.resize(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    first_task_[i] = program_.tasks.size();
    if (!compiled(i) || makes_nothing(lir_.plan.schedule[i].node)) continue;
    LowerContext c = lowering(lir_.plan.schedule[i].node);
    row(i).lower(c);
    clear_tails(c);
  }
  first_task_[n] = program_.tasks.size();
  if (const LirValue* first = program_.first_weight)  // the last matmul prefetches it for the next run
    program_.patches.push_back({program_.next_weight, first->place, first->index, first->offset});
}

const KernelEntry& LoweredProgram::row(std::size_t step) const {
  if (!is_body_) return exe_.row(step);
  const NodeId id = lir_.plan.schedule[step].node;
  const KernelEntry* found = entry_table().find(lir_.graph, id);
  return found ? *found : host_entry();  // the kernel entry of the body's node was asked already
}

std::span<const StepRange> LoweredProgram::ranges() const {
  if (is_body_) return {};
  return exe_.lir().ranges;
}

// True when every result is empty. A kernel would have nothing to write but could still loop over other extents.
bool LoweredProgram::makes_nothing(NodeId id) const {
  const std::vector<Shape>& shapes = lir_.graph.node(id).shapes;
  if (is_ordered(lir_.graph.node(id).op)) return false;
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.num_elements() == 0; });
}

}  // namespace rlx::cpu
