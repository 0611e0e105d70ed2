// An executable bound to memory: its tasks, with final pointers except those into callers' buffers, and their
// schedules.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rlx/backends/cpu/aligned_bytes.h"
#include "rlx/backends/cpu/audited_tasks.h"
#include "rlx/backends/cpu/executable.h"
#include "rlx/backends/cpu/final_copies.h"
#include "rlx/backends/cpu/pointer_relocation.h"
#include "rlx/backends/cpu/task_schedules.h"

namespace rlx::cpu {

class CpuInstance final : public Instance {
 public:
  /// Lowers the steps that the executable has code for. `lir` is the executable's LIR, the LIR for the bound extents,
  /// or a body's LIR. `is_body`: it is the body of a node, and the instance with that node runs it.
  CpuInstance(const CpuExecutable& exe, const LirModule& lir, std::span<const BufferView> arenas, bool is_body);
  CpuInstance(const CpuInstance&) = delete;
  CpuInstance& operator=(const CpuInstance&) = delete;

  Event submit(const RunArguments& a, Stream& stream) override;

  const CpuExecutable& executable() const { return exe_; }
  const LirModule& lir() const { return lir_; }
  bool is_body() const { return is_body_; }
  LowerContext lowering(NodeId id) { return {lir_, id, arenas_, exe_.kernels(), exe_.planned_threads(), list_}; }
  void patch(const Patch& p) { list_.patches.push_back(p); }

  const KernelEntry& row(std::size_t step) const;
  /// The ranges of steps that runs are expected to use. Empty for a body: all steps.
  std::span<const StepRange> ranges() const;
  std::span<const Task> tasks() const { return list_.tasks; }
  /// Index of the first task of a step of the plan. For the number of steps it is the number of tasks.
  std::size_t first_task(std::size_t step) const { return first_task_[step]; }
  /// The tasks of steps [begin, end).
  std::span<const Task> tasks(std::size_t begin, std::size_t end) const {
    return tasks().subspan(first_task_[begin], first_task_[end] - first_task_[begin]);
  }

 private:
  void lower_steps();
  bool makes_nothing(NodeId id) const;
  void take_scratch();
  const TaskNames& names_for(Trace& trace);
  void run_timed(std::vector<StepTime>& times, const StepRange& range);

  const CpuExecutable& exe_;
  const LirModule& lir_;
  bool is_body_;
  std::vector<BufferView> arenas_;
  TaskList list_;
  std::vector<std::size_t> first_task_;  // by step of the plan
  FinalCopies final_copies_;
  std::optional<AuditedTasks> audited_;  // exactly one of the two is set
  std::optional<TaskSchedules> schedules_;
  std::unique_ptr<TaskNames> names_;  // for the trace that runs are recorded in
  AlignedBytes scratch_, common_;
  PointerRelocation pointers_;
};

}  // namespace rlx::cpu
