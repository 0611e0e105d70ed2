// The CPU thread pool: runs whole schedules of steps cut into claimable chunks; one wake-up per run.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace rlx {

/// One step of a schedule: `run(ctx, chunk)` for each chunk in [0, chunks), in any order, on any thread, after every
/// step listed in `predecessors` (indices of earlier steps) is complete. A step of 0 chunks only orders others.
struct ScheduleStep {
  std::int64_t chunks = 0;
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::span<const std::int32_t> predecessors;
};

/// A fixed list of steps with the counters of their runs. Build once, run many times, one run at a time. The
/// predecessor lists are copied; `ctx` must live as long as runs happen.
class StepSchedule {
 public:
  StepSchedule() = default;
  /// Throws Error{InvalidArgument} when a predecessor is not an earlier step or a chunk count is negative or above
  /// 2^31-1.
  explicit StepSchedule(std::span<const ScheduleStep> steps);
  StepSchedule(StepSchedule&& other) noexcept;
  StepSchedule& operator=(StepSchedule&& other) noexcept;
  StepSchedule(const StepSchedule&) = delete;
  StepSchedule& operator=(const StepSchedule&) = delete;
  ~StepSchedule();

  std::int64_t size() const;
  /// Changes the chunk count of a step between runs (a size that is known at run time only).
  void set_chunks(std::int64_t step, std::int64_t chunks);
  /// Changes the context of a step between runs.
  void set_ctx(std::int64_t step, void* ctx);

 private:
  friend class ThreadPool;
  struct State;
  State* state_ = nullptr;
};

/// min(CPUs this process may run on, CPU quota of its control group rounded up), at least 1.
int available_cpus();

/// Index of the calling thread within the run it executes: 0 for the thread that called run, 1.. for workers. Below the
/// number of threads of that run, so it selects per-thread scratch memory.
int worker_index();

/// A set of worker threads. Workers start at the first parallel run, spin shortly after a run, then sleep; after a fork
/// the child starts its own. A run that finds the pool busy executes on its caller's thread alone.
class ThreadPool {
 public:
  /// `threads` counts the caller too; 0 means `available_cpus()`.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool of the process, made for `available_cpus()` threads at the first call.
  static ThreadPool& process();

  int threads() const;

  /// Runs all steps, at most `max_threads` threads at a time (0 = all of the pool). Returns when every chunk is done;
  /// an exception thrown by a chunk cancels the chunks not begun and is rethrown here. Allocates nothing once the
  /// workers are started.
  void run(StepSchedule& schedule, int max_threads = 0);

  /// Runs `fn(ctx, chunk)` for each chunk in [0, chunks); same rules as `run`.
  void parallel_for(std::int64_t chunks, void (*fn)(void* ctx, std::int64_t chunk), void* ctx, int max_threads = 0);

  /// Same for a callable `f(std::int64_t chunk)`.
  template <class F>
  void parallel_for(std::int64_t chunks, F&& f, int max_threads = 0) {
    parallel_for(
        chunks, [](void* ctx, std::int64_t chunk) { (*static_cast<std::remove_reference_t<F>*>(ctx))(chunk); },
        const_cast<void*>(static_cast<const void*>(&f)), max_threads);
  }

 private:
  struct Impl;
  Impl* impl();  // this process's workers; replaced after a fork
  Impl* impl_ = nullptr;
  int threads_ = 1;
};

}  // namespace rlx
