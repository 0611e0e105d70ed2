// A testing aid: every step of a run is a barrier of its threads, and the audit records which threads took chunks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rlx {

/// The record of one step of an audited run.
struct AuditedStep {
  std::string kernel;         // "softmax_f32"
  std::string node;           // node_label
  std::int64_t chunks = 0;    // number of chunks of the step
  std::uint64_t threads = 0;  // bit i: thread i of the run (worker_index) took a chunk

  /// The number of threads that took chunks.
  int num_threads() const;
};

/// An audited run: its number of threads (1 when it found the pool busy), and its steps in order.
struct AuditedRun {
  int threads = 1;
  std::vector<AuditedStep> steps;
};

/// Passed to a compile as CompileOptions::chunk_audit. Programs compiled with it run their steps one after the other,
/// each kernel call as a separate step. The first chunk of a thread in a step waits until every thread of the run holds
/// a chunk of it, at most one per chunk. So a run that returns has distributed every step that can be distributed. A
/// run in which a thread waits longer than a minute fails with Error{Internal} naming the step. Safe to use from
/// several threads.
class ChunkAudit {
 public:
  /// The last successful run of any program compiled with this object.
  AuditedRun last_run() const;
  void publish(AuditedRun run);

 private:
  mutable std::mutex mutex_;
  AuditedRun last_;
};

/// The barrier of one step, for backends.
class ChunkWatch {
 public:
  /// Must be called before the work of a chunk. Waits as ChunkAudit describes. `what` names the step in errors.
  void enter(std::int64_t chunks, const std::string& what);
  std::uint64_t threads() const { return seen_.load(std::memory_order_acquire); }
  /// Clears the record of threads, between runs.
  void reset() { seen_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> seen_{0};
};

}  // namespace rlx
