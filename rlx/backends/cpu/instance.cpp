// Lowers each node of the plan in order through its kernel entry, and runs the tasks.
#include "rlx/backends/cpu/instance.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rlx/base/json_writer.h"
#include "rlx/base/trace.h"
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

CpuInstance::CpuInstance(const CpuExecutable& exe, const LirModule& lir, std::span<const BufferView> arenas,
                         bool is_body)
    : exe_(exe), lir_(lir), is_body_(is_body), arenas_(arenas.begin(), arenas.end()) {
  list_.executable = &exe;
  lower_steps();
  if (ranges().empty() || ranges().back().end >= lir_.plan.schedule.size()) final_copies_.make(*this);
  // A body runs inside a step of its parent. With a barrier in every step, its threads would wait for those that are
  // busy in that step.
  if (exe.audit() != nullptr && !is_body)
    audited_.emplace(*this);
  else
    schedules_.emplace(*this);
  take_scratch();
  pointers_ = PointerRelocation(std::move(list_.patches));
}

void CpuInstance::lower_steps() {
  const std::size_t n = lir_.plan.schedule.size();
  first_task_.resize(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    first_task_[i] = list_.tasks.size();
    const NodeId id = lir_.plan.schedule[i].node;
    if (!(is_body_ || exe_.compiled(i)) || makes_nothing(id)) continue;
    LowerContext c = lowering(id);
    row(i).lower(c);
    clear_tails(c);
  }
  first_task_[n] = list_.tasks.size();
  if (const LirValue* first = list_.first_weight)  // the last matmul prefetches it for the next run
    list_.patches.push_back({list_.next_weight, first->place, first->index, first->offset});
}

const KernelEntry& CpuInstance::row(std::size_t step) const {
  if (!is_body_) return exe_.row(step);
  const KernelEntry* found = entry_table().find(lir_.graph, lir_.plan.schedule[step].node);
  return found ? *found : host_entry();  // the kernel entry of the body's node was asked already
}

std::span<const StepRange> CpuInstance::ranges() const {
  if (is_body_) return {};
  return exe_.lir().ranges;
}

// True when every result is empty. A kernel would have nothing to write but could still loop over other extents.
bool CpuInstance::makes_nothing(NodeId id) const {
  const std::vector<Shape>& shapes = lir_.graph.node(id).shapes;
  if (is_ordered(lir_.graph.node(id).op)) return false;
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.num_elements() == 0; });
}

void CpuInstance::take_scratch() {
  if (list_.scratch_bytes > 0) {
    const std::size_t stride = round_up(list_.scratch_bytes) + kAlignment;  // a cache line between the threads' parts
    scratch_ = AlignedBytes(stride * static_cast<std::size_t>(exe_.threads()));
    list_.scratch = {scratch_.data, exe_.threads() == 1 ? 0 : stride};
  }
  if (list_.common_bytes > 0) {
    common_ = AlignedBytes(list_.common_bytes);
    list_.common = {common_.data};
  }
}

Event CpuInstance::submit(const RunArguments& a, Stream&) {
  pointers_.follow(a);
  const std::size_t num_steps = lir_.plan.schedule.size();
  const StepRange range = a.range.of(num_steps);
  Trace* const trace = Trace::current();
  const TaskNames* const names = trace ? &names_for(*trace) : nullptr;
  if (a.times != nullptr) {
    run_timed(*a.times, range);
  } else if (audited_ && range == StepRange{0, num_steps}) {
    audited_->run(exe_.threads(), *exe_.audit());
  } else if (audited_ || schedules_->runs_alone()) {
    const AsWorkerZero alone(1);  // whichever worker of another run makes this call
    run_in_order(tasks(range.begin, range.end), names, first_task(range.begin));
  } else {
    for (Segment& s : schedules_->of(range)) {
      if (s.alone) {
        run_in_order({s.alone, 1}, names, s.first_task);
        continue;
      }
      const StepTrace traced{trace,
                             names ? std::span(names->tasks).subspan(s.first_task) : std::span<const std::uint32_t>()};
      ThreadPool::process().run(s.schedule, exe_.threads(), names ? &traced : nullptr);
    }
  }
  if (range.end == num_steps) final_copies_.run(exe_.kernels());
  return {};
}

// The names of the tasks in a trace.
const TaskNames& CpuInstance::names_for(Trace& trace) {
  if (names_ && names_->serial == trace.serial()) return *names_;
  auto names = std::make_unique<TaskNames>(TaskNames{&trace, trace.serial(), {}});
  for (std::size_t i = 0; i < lir_.plan.schedule.size(); ++i) {
    if (tasks(i, i + 1).empty()) continue;
    const NodeId id = lir_.plan.schedule[i].node;
    JsonWriter args(kHtmlJson);
    args.member("value", id.text()).member("step", i).member("label", lir_.graph.node(id).origin.label);
    args.member("kernel", row(i).kernel).member("device", "cpu");
    names->tasks.resize(first_task(i + 1), trace.name("step", op_text_name(lir_.graph.node(id).op), args.take()));
  }
  names_ = std::move(names);
  return *names_;
}

void CpuInstance::run_timed(std::vector<StepTime>& times, const StepRange& range) {
  using Clock = std::chrono::steady_clock;
  const AsWorkerZero alone(1);
  times.clear();
  times.reserve(range.end - range.begin);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const auto start = Clock::now();
    run_in_order(tasks(i, i + 1));
    times.push_back(
        {lir_.plan.schedule[i].node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
  }
}

}  // namespace rlx::cpu
