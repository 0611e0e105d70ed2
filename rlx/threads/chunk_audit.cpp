// Makes threads wait for each other in each step of a run, for tests.
#include "rlx/threads/chunk_audit.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

#include "rlx/error.h"
#include "rlx/threads/thread_pool.h"

namespace rlx {

static_assert(kMaxThreads <= 64, "a bit per thread");

int AuditedStep::num_threads() const { return std::popcount(threads); }

AuditedRun ChunkAudit::last_run() const {
  std::lock_guard lock(mutex_);
  return last_;
}

void ChunkAudit::publish(AuditedRun run) {
  std::lock_guard lock(mutex_);
  last_ = std::move(run);
}

void ChunkWatch::enter(std::int64_t chunks, const std::string& what) {
  const std::uint64_t self = std::uint64_t{1} << worker_index();
  if ((seen_.fetch_or(self, std::memory_order_acq_rel) & self) != 0) return;
  const auto wanted = static_cast<int>(std::min<std::int64_t>(chunks, run_threads()));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::popcount(threads()) < wanted) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(ErrorCode::Internal, concat_text("audited run: only ", std::popcount(threads()), " of ", wanted,
                                                   " threads took one of the ", chunks, " chunks of ", what));
    std::this_thread::yield();
  }
}

}  // namespace rlx
