// Tasks as schedule steps that all threads enter together.
#include "rlx/backends/cpu/audited_tasks.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "rlx/backends/cpu/instance.h"

namespace rlx::cpu {

/// A task as a step of an audited run.
struct AuditedTask {
  AuditedTask(const Task& p, std::string kernel_name, std::string label)
      : task(p), kernel(std::move(kernel_name)), node(std::move(label)) {}
  static void run(void* ctx, std::int64_t chunk) {
    AuditedTask& a = *static_cast<AuditedTask*>(ctx);
    a.threads.store(run_threads(), std::memory_order_relaxed);
    a.watch.enter(a.task.chunks, a.node);
    a.task.run(a.task.ctx, chunk);
  }
  const Task& task;
  std::string kernel, node;
  ChunkWatch watch;
  std::atomic<int> threads{1};  // threads of the run
};

AuditedTasks::~AuditedTasks() = default;

// Each task is a step that waits for the previous one. Threads wait for each other within a step, so two steps must not
// run at once.
AuditedTasks::AuditedTasks(const CpuInstance& of) {
  std::vector<ScheduleStep> out;
  const std::size_t n = of.tasks().size();
  tasks_.reserve(n);
  std::vector<std::int32_t> before(n);
  for (std::size_t i = 0; i < of.lir().plan.schedule.size(); ++i)
    for (std::size_t k = of.first_task(i); k < of.first_task(i + 1); ++k) {
      const Task& p = of.tasks()[k];
      tasks_.push_back(std::make_unique<AuditedTask>(p, of.row(i).kernel,
                                                     node_label(of.lir().graph, of.lir().plan.schedule[i].node)));
      before[k] = static_cast<std::int32_t>(k) - 1;
      out.push_back({p.chunks, AuditedTask::run, tasks_.back().get(), std::span(before).subspan(k, k == 0 ? 0 : 1)});
    }
  schedule_ = StepSchedule(out);
}

void AuditedTasks::run(int threads, ChunkAudit& audit) {
  for (const auto& a : tasks_) a->watch.reset();
  ThreadPool::process().run(schedule_, threads);
  AuditedRun run;
  for (const auto& a : tasks_) {
    run.threads = std::max(run.threads, a->threads.load(std::memory_order_relaxed));
    run.steps.push_back({a->kernel, a->node, a->task.chunks, a->watch.threads()});
  }
  audit.publish(std::move(run));
}

}  // namespace rlx::cpu
