// Audited runs for a ChunkAudit: every task is a barrier of all threads.
#pragma once

#include <memory>
#include <vector>

#include "rlx/threads/chunk_audit.h"
#include "rlx/threads/thread_pool.h"

namespace rlx::cpu {

struct AuditedTask;
class CpuInstance;

/// The schedule of an audited run.
class AuditedTasks {
 public:
  explicit AuditedTasks(const CpuInstance& of);
  ~AuditedTasks();
  AuditedTasks(const AuditedTasks&) = delete;
  AuditedTasks& operator=(const AuditedTasks&) = delete;
  void run(int threads, ChunkAudit& audit);

 private:
  std::vector<std::unique_ptr<AuditedTask>> tasks_;
  StepSchedule schedule_;
};

}  // namespace rlx::cpu
