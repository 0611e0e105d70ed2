// Schedules over all threads, made from the tasks of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rlx/backends/cpu/lowered_program.h"
#include "rlx/base/trace.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

/// Runs tasks in order on the calling thread.
void run_in_order(std::span<const Task> tasks);

/// Steps for all threads, or one task (`alone`) for the calling thread only.
struct Segment {
  StepSchedule schedule;
  const Task* alone = nullptr;
  std::vector<std::uint32_t> tasks{};  // by schedule step: its task; kGroup: several
};
inline constexpr std::uint32_t kGroup = ~std::uint32_t{0};

/// The names of a program's tasks in a trace.
struct TaskNames {
  Trace* trace = nullptr;
  std::uint64_t serial = 0;          // Trace::serial of `trace`
  std::vector<std::uint32_t> tasks;  // by task: its number from Trace::name
};

/// The schedules of a program's ranges.
class TaskSchedules {
 public:
  /// Makes the schedules of LoweredProgram::ranges. The schedule of another range is made when a run first uses it.
  explicit TaskSchedules(LoweredProgram& program);
  /// True when the thread that runs the program runs all tasks in order by itself.
  bool runs_alone() const { return runs_alone_; }
  std::vector<Segment>& of(const StepRange& range);
  /// Runs a segment on all threads. With `names` it records the steps in the trace.
  void run(Segment& segment, const TaskNames* names);

 private:
  struct RangeSchedule {
    StepRange range;
    std::vector<Segment> segments;
  };
  class WaitLists;
  bool joins_others(const Task& p) const;
  std::vector<Segment> make_segments(const StepRange& range);
  // Small tasks that one step runs in order.
  struct Group {
    const TaskSchedules& owner;
    std::span<const Task> tasks;
  };
  static void run_group(void* group, std::int64_t);
  Segment make_segment(std::size_t from, std::size_t to);
  void serialize_common(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of, WaitLists& waits);
  void let_tiles_run_ahead(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                           const std::vector<ScheduleStep>& steps, WaitLists& waits);

  LoweredProgram& program_;
  bool runs_alone_ = false;
  std::vector<std::unique_ptr<Group>> groups_;
  const TaskNames* names_ = nullptr;       // of the traced run
  std::vector<std::uint32_t> step_names_;  // of the running segment
  std::vector<std::unique_ptr<RangeSchedule>> stretches_;
};

}  // namespace rlx::cpu
