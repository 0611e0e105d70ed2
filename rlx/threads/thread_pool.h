// The CPU thread pool. It runs whole schedules with one wake-up per run. The steps of a schedule are split into chunks,
// which threads claim.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace rlx {

class Trace;

/// A bit set of which half of a step waits for which half of another. The lower half are the first
/// `StepSchedule::lower_half(chunks)` chunks, the upper half the others (none when there is one chunk).
using HalfWaits = std::uint8_t;
/// The bit that makes the half `upper` of the step wait for the half `for_upper` of its predecessor.
constexpr HalfWaits half_waits(bool upper, bool for_upper) {
  return static_cast<HalfWaits>(1U << ((upper ? 2U : 0U) + (for_upper ? 1U : 0U)));
}
inline constexpr HalfWaits kWaitsForAll = 0xF;

/// A call of `run(ctx, chunk)` for each chunk in [0, chunks).
struct ScheduleCall {
  std::int64_t chunks = 0;
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
};

/// One step of a schedule. It calls `run(ctx, chunk)` for each chunk in [0, chunks), in any order, on any thread. A
/// chunk runs after every step in `predecessors` (indices of earlier steps) is complete, or after the halves that
/// `waits` names (one entry per predecessor; empty: everything waits for everything). A step of 0 chunks only orders
/// others.
struct ScheduleStep {
  std::int64_t chunks = 0;
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::span<const std::int32_t> predecessors;
  std::span<const HalfWaits> waits = {};
  /// If not empty, one thread makes these calls in order, and `chunks`, `run` and `ctx` are not used.
  std::span<const ScheduleCall> group = {};
};

/// A fixed list of steps with the counters of their runs. Build once, run many times, one run at a time. All lists are
/// copied. `ctx` must outlive all runs.
class StepSchedule {
 public:
  StepSchedule() = default;
  /// Throws Error{InvalidArgument} when a predecessor is not an earlier step, or when a chunk count is negative or
  /// above 2^31-1.
  explicit StepSchedule(std::span<const ScheduleStep> steps);
  StepSchedule(StepSchedule&& other) noexcept;
  StepSchedule& operator=(StepSchedule&& other) noexcept;
  StepSchedule(const StepSchedule&) = delete;
  StepSchedule& operator=(const StepSchedule&) = delete;
  ~StepSchedule();

  std::int64_t size() const;
  /// The number of `chunks` in the lower half.
  static std::int64_t lower_half(std::int64_t chunks);

 private:
  friend class ThreadPool;
  struct State;
  State* state_ = nullptr;
};

/// What a run records: each sequence of chunks of a step that a thread runs without a pause, and each call of a group.
struct StepTrace {
  Trace* trace = nullptr;
  std::span<const std::uint32_t> names;  // from Trace::name, by call: of each step one, of a group as many as it has
};

/// The largest number of threads of a run.
inline constexpr int kMaxThreads = 64;

/// min(CPUs that this process may run on, CPU quota of its control group rounded up), at least 1.
int available_cpus();

/// `threads`, or for 0 the machine's: available_cpus(), at most kMaxThreads. Throws InvalidArgument naming `what`, with
/// `hint`, when it is negative or above kMaxThreads.
int checked_thread_count(int threads, std::string_view what,
                         std::string_view hint = "0 means the processors of this machine, up to that limit");

/// The index of the calling thread within its run: 0 for the thread that called run, 1.. for workers. It is below
/// `run_threads()`, so it can select per-thread scratch memory.
int worker_index();

/// The number of threads of the calling thread's run; 1 outside of runs, and in a run that found the pool busy.
int run_threads();

/// While this object lives, the calling thread is thread 0 of a run with that many threads.
class AsWorkerZero {
 public:
  explicit AsWorkerZero(int threads);
  ~AsWorkerZero();
  AsWorkerZero(const AsWorkerZero&) = delete;
  AsWorkerZero& operator=(const AsWorkerZero&) = delete;

 private:
  int outer_index_, outer_threads_;
};

/// What the calling thread is doing, as its caller defines it. Workers have the value of the thread whose run they work
/// for. Null on other threads.
const void*& thread_purpose();

/// A set of worker threads that grows to the largest run. Workers start at the first run that needs them, spin briefly
/// after a run, then sleep. A run does not wake workers that it does not need. After a fork the child starts its own
/// workers. A run that finds the pool busy executes on the calling thread alone.
class ThreadPool {
 public:
  /// `threads`: the default number of threads of `run`, the calling thread included; 0 means the machine's.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool of the process. Programs run only on it.
  static ThreadPool& process();

  /// The default number of threads of `run`, the calling thread included.
  int threads() const;

  /// Runs all steps on at most `max_threads` threads (0: `threads()`; at most kMaxThreads; fewer when the system has no
  /// more threads). Returns when every chunk is done. An exception from a chunk cancels the chunks that have not begun
  /// and is rethrown here. So does a StopRequest of the calling thread, which is checked before each chunk. Allocates
  /// nothing once the workers are started.
  void run(StepSchedule& schedule, int max_threads = 0, const StepTrace* traced = nullptr);

  /// Runs `fn(ctx, chunk)` for each chunk in [0, chunks), with the rules of `run`.
  void parallel_for(std::int64_t chunks, void (*fn)(void* ctx, std::int64_t chunk), void* ctx, int max_threads = 0);

  /// The same for a callable `f(std::int64_t chunk)`.
  template <class F>
  void parallel_for(std::int64_t chunks, F&& f, int max_threads = 0) {
    parallel_for(
        chunks, [](void* ctx, std::int64_t chunk) { (*static_cast<std::remove_reference_t<F>*>(ctx))(chunk); },
        const_cast<void*>(static_cast<const void*>(&f)), max_threads);
  }

 private:
  struct Impl;
  Impl* impl();  // the workers of this process; replaced after a fork
  std::atomic<Impl*> impl_{nullptr};
  int threads_ = 1;
};

}  // namespace rlx
