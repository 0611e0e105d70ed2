// Maps tasks to schedule steps and computes what each step waits for.
#include "rlx/backends/cpu/task_schedules.h"

#include <algorithm>

#include "rlx/backends/cpu/access_map.h"
#include "rlx/backends/cpu/instance.h"
#include "rlx/base/stop_request.h"

namespace rlx::cpu {
namespace {

constexpr double kTinyNs = 5'000;    // a cheaper task is not worth a second thread
constexpr double kGroupNs = 30'000;  // cheap tasks are grouped up to this much work

}  // namespace

void run_in_order(std::span<const Task> tasks, const TaskNames* names, std::size_t first) {
  const StopRequest::Asked& stop = StopRequest::current();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& p = tasks[i];
    const TraceSpan span(names ? names->trace : nullptr, names ? names->tasks[first + i] : 0);
    for (std::int64_t c = 0; c < p.chunks; ++c) {
      stop.check();
      p.run(p.ctx, c);
    }
  }
}

/// Collects what each schedule step waits for, in any order.
class TaskSchedules::WaitLists {
 public:
  void add(std::int32_t step, Wait wait) {
    if (lists_.size() <= static_cast<std::size_t>(step)) lists_.resize(static_cast<std::size_t>(step) + 1);
    if (wait.step != step) lists_[static_cast<std::size_t>(step)].push_back(wait);
  }
  /// Sets how `step` waits for the steps in `found`. It waits for all of every other step in its list.
  void refine(std::int32_t step, const std::vector<Wait>& found) {
    refined_.resize(std::max(refined_.size(), static_cast<std::size_t>(step) + 1));
    auto& list = refined_[static_cast<std::size_t>(step)];
    list.insert(list.end(), found.begin(), found.end());
  }
  /// Writes the lists into the steps. The lists must live until the schedule is made.
  void give_to(std::vector<ScheduleStep>& steps) {
    lists_.resize(steps.size());
    refined_.resize(steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      merge_waits(lists_[s]);
      merge_waits(refined_[s]);
      auto refined = refined_[s].begin();
      const auto give = [&](const Wait& w) {
        predecessors_.push_back(w.step);
        waits_.push_back(w.waits);
      };
      for (const Wait& w : lists_[s]) {
        while (refined != refined_[s].end() && refined->step < w.step) give(*refined++);
        give(refined != refined_[s].end() && refined->step == w.step ? *refined++ : w);
      }
      while (refined != refined_[s].end()) give(*refined++);
      ends_.push_back(predecessors_.size());
    }
    std::size_t begin = 0;
    for (std::size_t s = 0; s < steps.size(); begin = ends_[s++]) {
      steps[s].predecessors = std::span(predecessors_).subspan(begin, ends_[s] - begin);
      steps[s].waits = std::span(waits_).subspan(begin, ends_[s] - begin);
    }
  }

 private:
  std::vector<std::vector<Wait>> lists_, refined_;  // by step
  std::vector<std::int32_t> predecessors_;
  std::vector<HalfWaits> waits_;
  std::vector<std::size_t> ends_;
};

TaskSchedules::TaskSchedules(CpuInstance& of) : instance_(of) {
  double cost_ns = 0;
  bool one_group = true;  // no task has work for a second thread
  for (const Task& p : instance_.tasks()) {
    cost_ns += p.cost_ns;
    one_group = one_group && !p.alone && joins_others(p);
  }
  const CpuExecutable& exe = instance_.executable();
  one_group = one_group && cost_ns <= kGroupNs && !exe.finest_grain();
  // A small body is not worth waking other threads for in each iteration.
  runs_alone_ = exe.threads() == 1 || one_group || (instance_.is_body() && cost_ns < kGroupNs && !exe.finest_grain());
  if (runs_alone_) return;
  const std::size_t n = instance_.lir().plan.schedule.size();
  if (instance_.ranges().empty()) (void)this->of({0, n});
  for (const StepRange& r : instance_.ranges()) (void)this->of(r.of(n));
}

// True when the task is too cheap for a second thread, or has only one chunk.
bool TaskSchedules::joins_others(const Task& p) const {
  return (p.cost_ns < kTinyNs && !instance_.executable().finest_grain()) || p.chunks == 1;
}

std::vector<Segment>& TaskSchedules::of(const StepRange& range) {
  for (const auto& s : stretches_)
    if (s->range == range) return s->segments;
  auto made = std::make_unique<RangeSchedule>(RangeSchedule{range, make_segments(range)});
  stretches_.push_back(std::move(made));
  return stretches_.back()->segments;
}

// Segments between the tasks that run alone.
std::vector<Segment> TaskSchedules::make_segments(const StepRange& range) {
  std::vector<Segment> segments;
  std::size_t from = range.begin;
  const auto close = [&](std::size_t to) {
    if (!instance_.tasks(from, to).empty() || segments.empty()) segments.push_back(make_segment(from, to));
  };
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const std::span<const Task> own = instance_.tasks(i, i + 1);
    if (own.empty() || !own.front().alone) continue;
    close(i);
    segments.push_back({StepSchedule(), own.data(), instance_.first_task(i)});
    from = i + 1;
  }
  close(range.end);
  return segments;
}

// Maps the tasks of LIR steps [from, to) to schedule steps. A big task is a step of its own with its chunks.
// Neighbouring small tasks form one step, which one thread runs and which waits for everything that any of them waits
// for.
Segment TaskSchedules::make_segment(std::size_t from, std::size_t to) {
  const auto& steps = instance_.lir().plan.schedule;
  std::vector<ScheduleStep> out;
  Segment segment;
  std::vector<ScheduleCall> calls;  // of all tasks
  struct Group {
    std::size_t step, begin, end = 0;  // its calls
  };
  std::vector<Group> groups;
  WaitLists waits;                                         // by schedule step
  std::vector<std::vector<std::int32_t>> done(to - from);  // the schedule steps that complete LIR step from + i
  const std::size_t first = instance_.first_task(from);
  std::vector<std::int32_t> step_of(instance_.first_task(to) - first);  // by task, from `first` on
  bool open = false;                                                    // the last step accepts more small tasks
  double group_ns = 0;
  for (std::size_t i = from; i < to; ++i) {
    std::vector<std::int32_t> before;
    for (std::int32_t p : steps[i].predecessors)
      if (const auto j = static_cast<std::size_t>(p); j >= from)  // earlier segments are complete
        before.insert(before.end(), done[j - from].begin(), done[j - from].end());
    for (std::size_t k = instance_.first_task(i); k < instance_.first_task(i + 1); ++k) {
      const Task& p = instance_.tasks()[k];
      const bool tiny = joins_others(p);
      const bool joins = tiny && open && group_ns + p.cost_ns <= kGroupNs;
      if (!joins) {
        out.push_back({tiny ? 1 : p.chunks, p.run, p.ctx, {}});
        if (tiny) groups.push_back({out.size() - 1, calls.size()});
        open = tiny;
        group_ns = 0;
      }
      calls.push_back({p.chunks, p.run, p.ctx});
      if (tiny) groups.back().end = calls.size();
      group_ns += p.cost_ns;
      const auto self = static_cast<std::int32_t>(out.size()) - 1;
      step_of[k - first] = self;
      for (std::int32_t s : before) waits.add(self, {s, kWaitsForAll});
      before = {self};
    }
    done[i - from] = std::move(before);
  }
  let_tiles_run_ahead(from, to, step_of, out, waits);
  serialize_common(from, to, step_of, waits);
  waits.give_to(out);
  for (const Group& g : groups) out[g.step].group = std::span(calls).subspan(g.begin, g.end - g.begin);
  segment.first_task = first;
  segment.schedule = StepSchedule(out);
  return segment;
}

// A node that uses the common memory waits for the whole node that used it before. The wait is added to the refined
// waits, because a refined wait for halves replaces the step's other wait.
void TaskSchedules::serialize_common(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                                     WaitLists& waits) {
  const std::size_t first = instance_.first_task(from);
  std::vector<Wait> before, own;
  for (std::size_t i = from; i < to; ++i) {
    own.clear();
    for (std::size_t k = instance_.first_task(i); k < instance_.first_task(i + 1); ++k)
      if (instance_.tasks()[k].common) own.push_back({step_of[k - first], kWaitsForAll});
    if (own.empty()) continue;
    for (const Wait& mine : own) {
      std::vector<Wait> others;
      for (const Wait& w : before)
        if (w.step != mine.step) others.push_back(w);
      waits.refine(mine.step, others);
    }
    before.swap(own);
  }
}

// With producer-consumer tiling a half waits for the halves that touch its bytes, not for whole steps. Each thread then
// runs its sequences through many steps before it waits for another thread. The plan may order two steps only through a
// step between them, whose halves now run separately. Then a direct dependency must be added; AccessMap finds all of
// them.
void TaskSchedules::let_tiles_run_ahead(std::size_t from, std::size_t to, const std::vector<std::int32_t>& step_of,
                                        const std::vector<ScheduleStep>& steps, WaitLists& waits) {
  const std::size_t first = instance_.first_task(from);
  const std::span<const Task> tasks = instance_.tasks(from, to);
  if (std::count_if(tasks.begin(), tasks.end(), [](const Task& p) { return p.halves.rows > 0; }) < 2) return;
  std::vector<Access> accesses;
  std::vector<std::size_t> ends;  // end of the accesses of each task
  for (std::size_t i = from; i < to; ++i)
    for (std::size_t k = instance_.first_task(i) - first; k < instance_.first_task(i + 1) - first; ++k) {
      const bool divided = steps[static_cast<std::size_t>(step_of[k])].chunks > 1;
      const bool alone =
          instance_.first_task(i + 1) - instance_.first_task(i) == 1;  // more tasks share other memory too
      const LowerContext c = instance_.lowering(instance_.lir().plan.schedule[i].node);
      const std::vector<Access> own =
          node_accesses(c, divided && alone ? tasks[k].halves : RowTiling{}, divided ? kBothHalves : kLower);
      accesses.insert(accesses.end(), own.begin(), own.end());
      ends.push_back(accesses.size());
    }
  AccessMap map(instance_.lir().plan, accesses);
  for (std::size_t k = 0, begin = 0; k < ends.size(); begin = ends[k++])
    waits.refine(step_of[k], map.add(step_of[k], std::span(accesses).subspan(begin, ends[k] - begin)));
}

}  // namespace rlx::cpu
