// Binds an LIR to memory and runs it. All pointers are final except those into callers' buffers.
#include "rlx/backends/cpu/bound_program.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/backends/cpu/aligned_bytes.h"
#include "rlx/backends/cpu/audited_tasks.h"
#include "rlx/backends/cpu/final_copies.h"
#include "rlx/backends/cpu/pointer_relocation.h"
#include "rlx/backends/cpu/task_schedules.h"
#include "rlx/base/json_writer.h"
#include "rlx/base/trace.h"

namespace rlx::cpu {
namespace {

class Bound final : public BoundGraph {
 public:
  Bound(const Executable& exe, const LirModule& lir, std::span<const BufferView> arenas, bool is_body)
      : exe_(exe), program_(exe, lir, arenas, is_body), num_steps_(lir.plan.schedule.size()) {
    if (program_.ranges().empty() || program_.ranges().back().end >= num_steps_) final_copies_.make(program_);
    // A body runs inside a step of its parent. With a barrier in every step, its threads would wait for those that are
    // busy in that step.
    if (exe.audit() != nullptr && !is_body)
      audited_.emplace(program_);
    else
      schedules_.emplace(program_);
    Program& p = program_.program();
    if (p.scratch_bytes > 0) {
      const std::size_t stride = round_up(p.scratch_bytes) + kAlignment;  // a cache line between the threads' parts
      scratch_ = AlignedBytes(stride * static_cast<std::size_t>(exe.threads()));
      p.scratch = {scratch_.data, exe.threads() == 1 ? 0 : stride};
    }
    if (p.common_bytes > 0) {
      common_ = AlignedBytes(p.common_bytes);
      p.common = {common_.data};
    }
    pointers_ = PointerRelocation(std::move(p.patches));
  }

  Event submit(const RunArguments& a, Stream&) override {
    pointers_.follow(a);
    const StepRange range = a.range.of(num_steps_);
    if (a.times != nullptr)
      run_timed(*a.times, range);
    else if (audited_ && range == StepRange{0, num_steps_})
      audited_->run(exe_.threads(), *exe_.audit());
    else if (audited_ || schedules_->runs_alone())
      run_alone(range);
    else
      run_by_all(range);
    if (range.end == num_steps_) final_copies_.run(exe_.kernels());
    return {};
  }

 private:
  void run_alone(const StepRange& range) {
    const AsWorkerZero alone(1);  // whichever worker of another run makes this call
    Trace* const trace = Trace::current();
    if (!trace) return run_in_order(program_.tasks(range.begin, range.end));
    const TaskNames& names = *names_for(trace);
    for (std::size_t k = program_.first_task(range.begin); k < program_.first_task(range.end); ++k) {
      const TraceSpan span(trace, names.tasks[k]);
      run_in_order(program_.tasks().subspan(k, 1));
    }
  }

  void run_by_all(const StepRange& range) {
    const TaskNames* const names = names_for(Trace::current());
    for (Segment& s : schedules_->of(range)) {
      if (!s.alone) {
        schedules_->run(s, names);
        continue;
      }
      const TraceSpan span(names ? names->trace : nullptr, names ? names->tasks[s.tasks[0]] : 0);
      s.alone->run(s.alone->ctx, 0);
    }
  }

  // The names of the tasks in a trace; null without a trace.
  const TaskNames* names_for(Trace* trace) {
    if (!trace) return nullptr;
    if (names_ && names_->serial == trace->serial()) return names_.get();
    const LirModule& lir = program_.lir();
    auto names = std::make_unique<TaskNames>(TaskNames{trace, trace->serial(), {}});
    for (std::size_t i = 0; i < num_steps_; ++i) {
      const std::size_t tasks = program_.first_task(i + 1) - program_.first_task(i);
      if (tasks == 0) continue;
      const NodeId id = lir.plan.schedule[i].node;
      JsonWriter args(kHtmlJson);
      args.member("value", id.text()).member("step", i).member("label", lir.graph.node(id).origin.label);
      args.member("kernel", program_.row(i).kernel).member("device", "cpu");
      names->tasks.resize(program_.first_task(i + 1),
                          trace->name("step", op_text_name(lir.graph.node(id).op), args.take()));
    }
    names_ = std::move(names);
    return names_.get();
  }

  void run_timed(std::vector<StepTime>& times, const StepRange& range) {
    using Clock = std::chrono::steady_clock;
    const AsWorkerZero alone(1);
    const auto& steps = program_.lir().plan.schedule;
    times.clear();
    times.reserve(range.end - range.begin);
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto start = Clock::now();
      run_in_order(program_.tasks(i, i + 1));
      times.push_back({steps[i].node, std::chrono::duration<double, std::nano>(Clock::now() - start).count()});
    }
  }

  const Executable& exe_;
  LoweredProgram program_;
  std::size_t num_steps_;
  FinalCopies final_copies_;
  std::optional<AuditedTasks> audited_;  // exactly one of the two is set
  std::optional<TaskSchedules> schedules_;
  std::unique_ptr<TaskNames> names_;  // for the trace that runs are recorded in
  AlignedBytes scratch_, common_;
  PointerRelocation pointers_;
};

}  // namespace

std::unique_ptr<BoundGraph> bind_program(const Executable& exe, const LirModule& lir,
                                         std::span<const BufferView> arenas, bool is_body) {
  return std::make_unique<Bound>(exe, lir, arenas, is_body);
}

}  // namespace rlx::cpu
