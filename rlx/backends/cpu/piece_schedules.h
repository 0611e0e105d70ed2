// Schedules for all threads, made of the pieces of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rlx/backends/cpu/lowered_program.h"
#include "rlx/driver/thread_pool.h"

namespace rlx::cpu {

/// Runs pieces one after the other, on the calling thread.
void run_in_order(std::span<const Piece> pieces);

/// Steps for all threads, or one that the thread which runs the program runs itself.
struct Segment {
  StepSchedule schedule;
  const Piece* alone = nullptr;
};

/// The schedules of a program's ranges.
class PieceSchedules {
 public:
  /// Makes those of the ranges that runs will name; a run of another one makes its own when it comes.
  explicit PieceSchedules(LoweredProgram& program);
  /// True when all pieces are run one after the other, by the thread that runs the program.
  bool runs_alone() const { return runs_alone_; }
  std::vector<Segment>& of(const StepRange& range);

 private:
  struct Stretch {
    StepRange range;
    std::vector<Segment> segments;
  };
  class WaitLists;
  std::vector<Segment> make_segments(const StepRange& range);
  StepSchedule make_schedule(std::size_t from, std::size_t to);
  void let_halves_run_ahead(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                            const std::vector<ScheduleStep>& steps, WaitLists& waits);

  LoweredProgram& program_;
  bool runs_alone_ = false;
  std::vector<std::unique_ptr<std::span<const Piece>>> groups_;  // what small steps run
  std::vector<std::unique_ptr<Stretch>> stretches_;
};

}  // namespace rlx::cpu
