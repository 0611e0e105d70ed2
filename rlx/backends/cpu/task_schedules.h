// Schedules over all threads, made from the tasks of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/base/trace.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

class CpuInstance;

/// The names of an instance's tasks in a trace.
struct TaskNames {
  Trace* trace = nullptr;
  std::uint64_t serial = 0;          // Trace::serial of `trace`
  std::vector<std::uint32_t> tasks;  // by task: its number from Trace::name
};

/// Runs tasks in order on the calling thread. With `names` it records them in the trace; the first has number `first`.
void run_in_order(std::span<const Task> tasks, const TaskNames* names = nullptr, std::size_t first = 0);

/// Steps for all threads, or one task (`alone`) for the calling thread only.
struct Segment {
  StepSchedule schedule;
  const Task* alone = nullptr;
  std::size_t first_task = 0;  // the calls of the schedule are the tasks from this one on, in order
};

/// The schedules of an instance's ranges.
class TaskSchedules {
 public:
  /// Makes the schedules of CpuInstance::ranges. The schedule of another range is made when a run first uses it.
  explicit TaskSchedules(CpuInstance& of);
  /// True when the thread that runs the instance runs all tasks in order by itself.
  bool runs_alone() const { return runs_alone_; }
  std::vector<Segment>& of(const StepRange& range);

 private:
  struct RangeSchedule {
    StepRange range;
    std::vector<Segment> segments;
  };
  class WaitLists;
  bool joins_others(const Task& p) const;
  std::vector<Segment> make_segments(const StepRange& range);
  Segment make_segment(std::size_t from, std::size_t to);
  void serialize_common(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of, WaitLists& waits);
  void let_tiles_run_ahead(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                           const std::vector<ScheduleStep>& steps, WaitLists& waits);

  CpuInstance& instance_;
  bool runs_alone_ = false;
  std::vector<std::unique_ptr<RangeSchedule>> stretches_;
};

}  // namespace rlx::cpu
