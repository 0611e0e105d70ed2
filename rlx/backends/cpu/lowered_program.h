// A program lowered to tasks: the kernel calls of each step of its plan.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rlx/backends/cpu/executable.h"

namespace rlx::cpu {

/// The tasks of a program. Their addresses do not change after construction.
class LoweredProgram {
 public:
  /// Lowers the steps that the executable has code for. `is_body`: the program is a body of a node, and the program of
  /// that node runs it. `lir` is the executable's LIR, the LIR for the bound extents, or a body's LIR.
  LoweredProgram(const Executable& exe, const LirModule& lir, std::span<const BufferView> arenas, bool is_body);
  LoweredProgram(const LoweredProgram&) = delete;
  LoweredProgram& operator=(const LoweredProgram&) = delete;

  const Executable& executable() const { return exe_; }
  const LirModule& lir() const { return lir_; }
  bool is_body() const { return is_body_; }
  Program& program() { return program_; }
  LowerContext lowering(NodeId id) { return {lir_, id, arenas_, exe_.kernels(), exe_.planned_threads(), program_}; }

  const KernelEntry& row(std::size_t step) const;
  /// The ranges of steps that the executable was compiled for, which runs are expected to use. Empty for a body.
  std::span<const StepRange> ranges() const;
  std::span<const Task> tasks() const { return program_.tasks; }
  /// Index of the first task of a step of the plan. For the number of steps it is the number of tasks.
  std::size_t first_task(std::size_t step) const { return first_task_[step]; }
  /// The tasks of steps [begin, end).
  std::span<const Task> tasks(std::size_t begin, std::size_t end) const {
    return tasks().subspan(first_task_[begin], first_task_[end] - first_task_[begin]);
  }

 private:
  bool compiled(std::size_t step) const { return is_body_ || exe_.compiled(step); }
  bool makes_nothing(NodeId id) const;
  const Executable& exe_;
  const LirModule& lir_;
  bool is_body_;
  std::vector<BufferView> arenas_;
  Program program_;
  std::vector<std::size_t> first_task_;  // LIR step -> first task
};

}  // namespace rlx::cpu
