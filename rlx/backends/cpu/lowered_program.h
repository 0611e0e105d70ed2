// A program lowered to pieces: the kernel calls of each step of its plan.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rlx/backends/cpu/executable.h"

namespace rlx::cpu {

/// The pieces of a program, which stay where they are once it is made.
class LoweredProgram {
 public:
  /// Lowers the steps that the executable has code for. `is_body`: the program is a body of a node of another one,
  /// which runs it; `lir` is the executable's, or that of the extents it is bound for, or a body's.
  LoweredProgram(const Executable& exe, const LirModule& lir, std::span<const BufferView> arenas, bool is_body);
  LoweredProgram(const LoweredProgram&) = delete;
  LoweredProgram& operator=(const LoweredProgram&) = delete;

  const Executable& executable() const { return exe_; }
  const LirModule& lir() const { return lir_; }
  bool is_body() const { return is_body_; }
  Program& program() { return program_; }
  LowerContext lowering(NodeId id) { return {lir_, id, arenas_, exe_.kernels(), exe_.planned_threads(), program_}; }

  const KernelEntry& row(std::size_t step) const;
  /// The ranges that runs will name, as far as that is known: what the executable was given to compile, of a body none.
  std::span<const StepRange> ranges() const;
  std::span<const Task> tasks() const { return program_.tasks; }
  /// The first piece of a step of the plan, or for the number of steps the number of pieces.
  std::size_t first_task(std::size_t step) const { return first_task_[step]; }
  /// The pieces of steps [begin, end).
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
  std::vector<std::size_t> first_task_;  // LIR step -> first piece
};

}  // namespace rlx::cpu
