// A testing aid: the threads of a run meet in every step, and who took chunks of it is noted.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rlx {

/// What happened to one step of an audited run.
struct AuditedStep {
  std::string kernel;         // "softmax_f32"
  std::string node;           // node_label
  std::int64_t chunks = 0;    // the step was cut into
  std::uint64_t threads = 0;  // bit i: thread i of the run (worker_index) took a chunk

  /// How many threads took chunks.
  int num_threads() const;
};

/// An audited run: threads it had (1 when it found the pool busy), and its steps in order.
struct AuditedRun {
  int threads = 1;
  std::vector<AuditedStep> steps;
};

/// Given to a compile as CompileOptions::chunk_audit. Programs compiled with it run their steps one after the other,
/// each kernel call as a step of its own, and a thread's first chunk of a step waits until as many threads hold one as
/// the run has, at most one per chunk: so a run that returns has shared out every step that can be shared. A run whose
/// threads do not meet within a minute fails with Error{Internal} naming the step. May be used from several threads.
class ChunkAudit {
 public:
  /// The last run that ended well, of any program compiled with this object.
  AuditedRun last_run() const;
  void publish(AuditedRun run);

 private:
  mutable std::mutex mutex_;
  AuditedRun last_;
};

/// Meeting point of the threads in one step, for backends.
class ChunkWatch {
 public:
  /// To be called before a chunk's work; waits as ChunkAudit describes. `what` names the step in errors.
  void enter(std::int64_t chunks, const std::string& what);
  std::uint64_t threads() const { return seen_.load(std::memory_order_acquire); }
  /// Forgets who came; between runs.
  void reset() { seen_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> seen_{0};
};

}  // namespace rlx
