// The CPU thread pool: runs whole schedules of steps cut into claimable chunks; one wake-up per run.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace rlx {

class Trace;

/// Which half of a step waits for which half of another, as a set of bits. The lower half are the first
/// `StepSchedule::lower_half(chunks)` chunks, the upper half the others (none when there is one chunk).
using HalfWaits = std::uint8_t;
/// The bit for: that half of the step waits for that half of its predecessor.
constexpr HalfWaits half_waits(bool upper, bool for_upper) {
  return static_cast<HalfWaits>(1U << ((upper ? 2U : 0U) + (for_upper ? 1U : 0U)));
}
inline constexpr HalfWaits kWaitsForAll = 0xF;

/// One step of a schedule: `run(ctx, chunk)` for each chunk in [0, chunks), in any order, on any thread, after every
/// step listed in `predecessors` (indices of earlier steps) is complete, or as far as `waits` (one entry a predecessor;
/// empty: all of them wait for all) says. A step of 0 chunks only orders others.
struct ScheduleStep {
  std::int64_t chunks = 0;
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::span<const std::int32_t> predecessors;
  std::span<const HalfWaits> waits = {};
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
  /// How many of `chunks` are the lower half.
  static std::int64_t lower_half(std::int64_t chunks);
  /// Changes the chunk count of a step between runs (a size that is known at run time only); where halves wait for
  /// halves, the caller sees to it that they still are what they were.
  void set_chunks(std::int64_t step, std::int64_t chunks);

 private:
  friend class ThreadPool;
  struct State;
  State* state_ = nullptr;
};

/// What a run records: each stretch of chunks of a step that a thread runs without a pause, under the step's name (0:
/// the step itself records).
struct StepTrace {
  Trace* trace = nullptr;
  std::span<const std::uint32_t> names;  // by step
};

/// The most threads that a run may have.
inline constexpr int kMaxThreads = 64;

/// min(CPUs this process may run on, CPU quota of its control group rounded up), at least 1.
int available_cpus();

/// `threads`, or for 0 the machine's: available_cpus(), at most kMaxThreads. Throws InvalidArgument naming `what` when
/// it is negative or above kMaxThreads, with `hint` as the way out.
int checked_thread_count(int threads, std::string_view what,
                         std::string_view hint = "0 means the machine's, as far as that many");

/// Index of the calling thread within the run it executes: 0 for the thread that called run, 1.. for workers. Below
/// `run_threads()`, so it selects per-thread scratch memory.
int worker_index();

/// Threads of the run that the calling thread executes; 1 outside of runs, and in one that found the pool busy.
int run_threads();

/// While it lives, the calling thread is thread 0 of a run of that many.
class AsWorkerZero {
 public:
  explicit AsWorkerZero(int threads);
  ~AsWorkerZero();
  AsWorkerZero(const AsWorkerZero&) = delete;
  AsWorkerZero& operator=(const AsWorkerZero&) = delete;

 private:
  int outer_index_, outer_threads_;
};

/// A set of worker threads that grows to the largest run. Workers start at the first run that wants them, spin shortly
/// after a run, then sleep; a run leaves those alone that it does not want. After a fork the child starts its own. A
/// run that finds the pool busy executes on its caller's thread alone.
class ThreadPool {
 public:
  /// `threads` is for runs that name no number: it counts the caller too; 0 means the machine's.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool of the process, the only one that programs run on.
  static ThreadPool& process();

  /// Threads of a run that names no number.
  int threads() const;

  /// Runs all steps on at most `max_threads` threads (0: `threads()`; no more than kMaxThreads; fewer when the system
  /// gives no more). Returns when every chunk is done; an exception thrown by a chunk cancels the chunks not begun and
  /// is rethrown here. Allocates nothing once the workers are started.
  void run(StepSchedule& schedule, int max_threads = 0, const StepTrace* traced = nullptr);

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
  std::atomic<Impl*> impl_{nullptr};
  int threads_ = 1;
};

}  // namespace rlx
