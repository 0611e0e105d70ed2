// The CPU thread pool: claimable chunks, per-step done counters, spin then park.
//
// How a run works. The caller opens the job word (epoch, open flag, number of workers that joined); workers that see it
// join by compare-and-swap and walk the same list of steps as the caller. A chunk is claimed by compare-and-swap on the
// step's claim word {run epoch, left in the lower half, left in the upper half}, a finished chunk is counted in the step's
// done word {run epoch, chunks done}. Every other thread begins with the upper half of each step and helps in the other
// when its own is empty: steps cut into rows in the same order then find in a core's own cache what the step before left
// there (two cores that share no cache lose some 10 % of a transformer to the traffic between them). Both words are brought to a new run lazily by whoever first touches them, so starting a run writes one word. A
// worker that was descheduled and comes late finds newer epochs and takes nothing: the caller waits for claimed chunks
// only, never for a thread. Such a worker may still read the step list after the run, so the list is reference counted.
#include "rlx/driver/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/error.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace rlx {

namespace {

thread_local int t_worker_index = 0;

/// While it lives, this thread counts as the only worker.
struct AsWorkerZero {
  const int outer = std::exchange(t_worker_index, 0);
  AsWorkerZero() = default;
  ~AsWorkerZero() { t_worker_index = outer; }
  AsWorkerZero(const AsWorkerZero&) = delete;
  AsWorkerZero& operator=(const AsWorkerZero&) = delete;
};

void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::int64_t kSpinNs = 100'000;     // a worker looks this long for the next run before it sleeps
constexpr std::int64_t kWaitSpinNs = 50'000;  // a thread inside a run looks this long before it yields its CPU
constexpr int kLookAhead = 16;                // unfinished steps examined beyond the first
constexpr std::uint32_t kMaxUnits = 1 << 16;  // claims of a step; more chunks than that are claimed several at a time

std::uint64_t pack(std::uint32_t epoch, std::uint32_t count) { return (std::uint64_t{epoch} << 32) | count; }
std::uint32_t epoch_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::uint32_t count_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

// Bumped in the child of a fork: pools made before it have no threads there.
std::atomic<std::uint32_t> g_fork_generation{0};

void note_forks() {
#if defined(__linux__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    g_fork_generation.fetch_add(1, std::memory_order_relaxed);
    t_worker_index = 0;
  });
  (void)registered;
#endif
}

/// CPUs allowed by the control group's quota, rounded up; a large number when there is none.
int cgroup_cpus() {
  const auto read_text = [](const std::string& path) {
    std::string text;
    if (std::FILE* f = std::fopen(path.c_str(), "r")) {
      char buffer[4096];
      const std::size_t n = std::fread(buffer, 1, sizeof buffer, f);
      text.assign(buffer, n);
      std::fclose(f);
    }
    return text;
  };
  constexpr int kNone = 1 << 20;
  int best = kNone;
  const auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0) {
      const double cpus = quota / period;
      int n = static_cast<int>(cpus);
      if (n < cpus) ++n;
      best = std::min(best, std::max(1, n));
    }
  };
  // Version 2: the quota of our group and of every group above it.
  const std::string groups = read_text("/proc/self/cgroup");
  std::string path;
  if (const auto at = groups.find("0::/"); at != std::string::npos) {
    path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  }
  for (;;) {
    const std::string text = read_text("/sys/fs/cgroup" + path + "/cpu.max");
    double quota = 0, period = 0;
    if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2) take(quota, period);
    if (path.empty()) break;
    const auto slash = path.rfind('/');
    path = slash == std::string::npos ? std::string() : path.substr(0, slash);
  }
  // Version 1.
  const std::string quota = read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!quota.empty() && !period.empty()) take(std::atof(quota.c_str()), std::atof(period.c_str()));
  return best;
}

}  // namespace

int available_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  // More CPUs than cpu_set_t holds: the call fails and the hardware count stays.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
#endif
  return std::max(1, std::min(cpus, cgroup_cpus()));
}

int worker_index() { return t_worker_index; }

// ------------------------------------------------------------------------------------------------------- StepSchedule

struct StepSchedule::State {
  struct alignas(64) Counters {
    std::atomic<std::uint64_t> claim{0};  // {epoch, units left of the lower half, of the upper half}
    std::atomic<std::uint64_t> done{0};   // {epoch, units done}
  };
  struct Step {
    std::atomic<std::uint32_t> chunks{0};
    std::atomic<std::uint32_t> per_unit{1};  // chunks claimed at a time
    std::atomic<std::uint32_t> units{1};     // claims; a step of no chunks still orders others: it counts as one
    void (*run)(void*, std::int64_t) = nullptr;
    std::atomic<void*> ctx{nullptr};
    std::uint32_t first_pred = 0, num_preds = 0;
  };

  explicit State(std::size_t n) : steps(n), counters(n) {}

  void set_chunks(std::size_t s, std::uint32_t n) {
    Step& step = steps[s];
    const std::uint32_t per_unit = std::max(1U, n / kMaxUnits + (n % kMaxUnits != 0 ? 1U : 0U));
    step.chunks.store(n, std::memory_order_relaxed);
    step.per_unit.store(per_unit, std::memory_order_relaxed);
    step.units.store(n == 0 ? 1 : (n - 1) / per_unit + 1, std::memory_order_relaxed);
  }
  std::uint32_t units(std::size_t s) const { return steps[s].units.load(std::memory_order_relaxed); }
  bool complete(std::size_t s, std::uint32_t run) const {
    return counters[s].done.load(std::memory_order_acquire) == pack(run, units(s));
  }
  bool ready(std::size_t s, std::uint32_t run) const {
    const Step& step = steps[s];
    for (std::uint32_t i = 0; i < step.num_preds; ++i) {
      if (!complete(preds[step.first_pred + i], run)) return false;
    }
    return true;
  }

  enum class Claim { Taken, Exhausted, Stale };
  /// Takes a unit of step s for `run`, from the upper half first when `upper`; the caller has seen `ready`.
  Claim claim(std::size_t s, std::uint32_t run, bool upper, std::uint32_t& unit) {
    auto& word = counters[s].claim;
    std::uint64_t seen = word.load(std::memory_order_acquire);
    const std::uint32_t all = units(s);
    for (;;) {
      std::uint32_t low_left = count_of(seen) >> 16, high_left = count_of(seen) & 0xffff;
      if (epoch_of(seen) != run) {
        if (static_cast<std::int32_t>(epoch_of(seen) - run) > 0) return Claim::Stale;
        high_left = all / 2;
        low_left = all - high_left;
      } else if (low_left + high_left == 0) {
        return Claim::Exhausted;
      }
      if (upper ? high_left != 0 : low_left == 0) {
        unit = all - high_left--;
      } else {
        unit = all - all / 2 - low_left--;
      }
      if (word.compare_exchange_weak(seen, pack(run, low_left << 16 | high_left), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        return Claim::Taken;
    }
  }
  bool exhausted(std::size_t s, std::uint32_t run) const {
    const std::uint64_t seen = counters[s].claim.load(std::memory_order_acquire);
    return epoch_of(seen) == run ? count_of(seen) == 0 : static_cast<std::int32_t>(epoch_of(seen) - run) > 0;
  }
  void finish(std::size_t s, std::uint32_t run) {
    auto& word = counters[s].done;
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = epoch_of(seen) == run ? seen + 1 : pack(run, 1);
    } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  void execute(std::size_t s, std::uint32_t unit) {
    Step& step = steps[s];
    const std::uint64_t per_unit = step.per_unit.load(std::memory_order_relaxed);
    const std::uint64_t end = std::min<std::uint64_t>(step.chunks.load(std::memory_order_relaxed), (unit + 1) * per_unit);
    try {
      for (std::uint64_t c = unit * per_unit; c < end && !failed.load(std::memory_order_relaxed); ++c)
        step.run(step.ctx.load(std::memory_order_relaxed), static_cast<std::int64_t>(c));
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_acq_rel)) error = std::current_exception();
    }
  }

  void release(int count = 1) {
    if (refs.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
  }

  /// Runs everything on this thread, without the counters.
  void run_alone() {
    const AsWorkerZero alone;
    for (Step& step : steps) {
      const std::uint32_t n = step.chunks.load(std::memory_order_relaxed);
      void* ctx = step.ctx.load(std::memory_order_relaxed);
      for (std::uint32_t c = 0; c < n; ++c) step.run(ctx, c);
    }
  }

  std::vector<Step> steps;
  std::vector<Counters> counters;
  std::vector<std::uint32_t> preds;
  std::uint32_t epoch = 0;              // of the last run; written by the caller only
  std::atomic<std::uint32_t> ended{0};  // epoch of the last run that is over
  std::atomic<bool> busy{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::atomic<int> refs{1};
};

StepSchedule::StepSchedule(std::span<const ScheduleStep> steps) {
  auto state = std::make_unique<State>(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ScheduleStep& in = steps[i];
    if (in.chunks < 0 || in.chunks > 0x7fffffff) {
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("schedule step ", i, " has ", in.chunks, " chunks; 0 to 2147483647 are possible"));
    }
    if (in.run == nullptr && in.chunks > 0) {
      throw Error(ErrorCode::InvalidArgument, concat_text("schedule step ", i, " has no function"));
    }
    auto& step = state->steps[i];
    state->set_chunks(i, static_cast<std::uint32_t>(in.chunks));
    step.run = in.run;
    step.ctx = in.ctx;
    step.first_pred = static_cast<std::uint32_t>(state->preds.size());
    step.num_preds = static_cast<std::uint32_t>(in.predecessors.size());
    for (const std::int32_t p : in.predecessors) {
      if (p < 0 || static_cast<std::size_t>(p) >= i) {
        throw Error(ErrorCode::InvalidArgument, concat_text("schedule step ", i, " names predecessor ", p,
                                                            "; predecessors come before their step"));
      }
      state->preds.push_back(static_cast<std::uint32_t>(p));
    }
  }
  state_ = state.release();
}

StepSchedule::StepSchedule(StepSchedule&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
StepSchedule& StepSchedule::operator=(StepSchedule&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
StepSchedule::~StepSchedule() {
  if (state_ != nullptr) state_->release();
}
std::int64_t StepSchedule::size() const {
  return state_ == nullptr ? 0 : static_cast<std::int64_t>(state_->steps.size());
}

void StepSchedule::set_chunks(std::int64_t step, std::int64_t chunks) {
  if (step < 0 || step >= size() || chunks < 0 || chunks > 0x7fffffff) {
    throw Error(ErrorCode::InvalidArgument, concat_text("set_chunks(", step, ", ", chunks, ") on ", size(), " steps"));
  }
  state_->set_chunks(static_cast<std::size_t>(step), static_cast<std::uint32_t>(chunks));
}

void StepSchedule::set_ctx(std::int64_t step, void* ctx) {
  if (step < 0 || step >= size()) {
    throw Error(ErrorCode::InvalidArgument, concat_text("set_ctx(", step, ") on ", size(), " steps"));
  }
  state_->steps[static_cast<std::size_t>(step)].ctx.store(ctx, std::memory_order_relaxed);
}

// --------------------------------------------------------------------------------------------------------- ThreadPool

struct ThreadPool::Impl {
  // Job word: epoch in the high 32 bits, then the open flag, then the number of workers that joined (low 16 bits).
  static constexpr std::uint64_t kOpen = 1ULL << 16;
  static constexpr std::uint64_t kJoined = kOpen - 1;

  alignas(64) std::atomic<std::uint64_t> job{0};
  alignas(64) std::atomic<std::uint32_t> wake{0};  // bumped when a run starts; sleepers wait on it
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<int> limit{0};  // workers that may join the open run
  std::atomic<StepSchedule::State*> state{nullptr};
  std::atomic<std::uint32_t> run_epoch{0};  // the schedule's own epoch of the open run
  alignas(64) std::atomic<bool> busy{false};
  std::vector<std::thread> workers;
  StepSchedule single;  // for parallel_for
  std::uint32_t generation = g_fork_generation.load(std::memory_order_relaxed);

  Impl() {
    const ScheduleStep step{1, [](void*, std::int64_t) {}, nullptr, {}};
    single = StepSchedule(std::span<const ScheduleStep>(&step, 1));
  }

  ~Impl() {
    stop.store(true);
    wake.fetch_add(1);
    wake.notify_all();
    for (auto& w : workers) w.join();
  }

  void start(int count) {
    try {
      while (static_cast<int>(workers.size()) < count) workers.emplace_back([this] { worker_loop(); });
    } catch (const std::system_error&) {
      // The system has no more threads to give: the run works with those there are.
    }
  }

  /// Walks the steps; returns when none has unclaimed chunks (worker) or when all are complete (caller).
  static void walk(StepSchedule::State& s, std::uint32_t run, bool caller) {
    const std::size_t n = s.steps.size();
    std::size_t first = 0;      // all steps before it are exhausted
    std::size_t completed = 0;  // all steps before it are complete
    std::int64_t idle_since = 0;
    const bool upper = t_worker_index % 2 != 0;
    for (;;) {
      while (first < n && s.exhausted(first, run)) ++first;
      bool worked = false;
      int looked = 0;
      for (std::size_t i = first; i < n && looked < kLookAhead; ++i) {
        if (i != first && s.exhausted(i, run)) continue;
        ++looked;
        if (!s.ready(i, run)) continue;
        std::uint32_t unit = 0;
        const auto claim = s.claim(i, run, upper, unit);
        if (claim == StepSchedule::State::Claim::Stale) return;
        if (claim == StepSchedule::State::Claim::Exhausted) continue;
        s.execute(i, unit);
        s.finish(i, run);
        worked = true;
        break;
      }
      if (worked) {
        idle_since = 0;
        continue;
      }
      if (first == n) {
        if (!caller) return;
        while (completed < n && s.complete(completed, run)) ++completed;
        if (completed == n) return;
      }
      if (!caller && s.ended.load(std::memory_order_acquire) == run) return;
      const std::int64_t now = now_ns();
      if (idle_since == 0) idle_since = now;
      if (now - idle_since > kWaitSpinNs) {
        std::this_thread::yield();
      } else {
        for (int i = 0; i < 8; ++i) cpu_pause();
      }
    }
  }

  void worker_loop() {
    std::uint32_t last = 0;  // epoch of the last job seen
    for (;;) {
      // look for a new open job
      std::uint64_t word = 0;
      std::int64_t since = now_ns();
      for (;;) {
        word = job.load(std::memory_order_acquire);
        if ((word & kOpen) != 0 && static_cast<std::uint32_t>(word >> 32) != last) break;
        if (stop.load(std::memory_order_relaxed)) return;
        if (now_ns() - since < kSpinNs) {
          for (int i = 0; i < 16; ++i) cpu_pause();
          continue;
        }
        const std::uint32_t ticket = wake.load(std::memory_order_seq_cst);
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        word = job.load(std::memory_order_seq_cst);
        const bool nothing = (word & kOpen) == 0 || static_cast<std::uint32_t>(word >> 32) == last;
        if (nothing && !stop.load()) wake.wait(ticket, std::memory_order_seq_cst);
        sleepers.fetch_sub(1, std::memory_order_seq_cst);
        since = now_ns();
      }
      last = static_cast<std::uint32_t>(word >> 32);
      // join while it is open and has room
      bool joined = false;
      int index = 0;
      StepSchedule::State* s = nullptr;
      std::uint32_t run = 0;
      while ((word & kOpen) != 0 && static_cast<std::uint32_t>(word >> 32) == last &&
             static_cast<int>(word & kJoined) < limit.load(std::memory_order_relaxed)) {
        // Read before the swap: when it succeeds the job was still this one, so these are its values.
        s = state.load(std::memory_order_relaxed);
        run = run_epoch.load(std::memory_order_relaxed);
        if (job.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          joined = true;
          index = static_cast<int>(word & kJoined) + 1;
          break;
        }
      }
      if (!joined) continue;
      // The state is alive: the caller holds a reference per possible worker until the job is closed, and closing
      // leaves one to each that joined.
      t_worker_index = index;
      walk(*s, run, false);
      t_worker_index = 0;
      s->release();
    }
  }

  void run(StepSchedule::State& s, int threads) {
    const int helpers = threads - 1;
    s.refs.fetch_add(helpers, std::memory_order_relaxed);
    const std::uint32_t run = ++s.epoch;
    if (s.failed.load(std::memory_order_relaxed)) {
      s.failed.store(false, std::memory_order_relaxed);
      s.error = nullptr;
    }
    state.store(&s, std::memory_order_relaxed);
    run_epoch.store(run, std::memory_order_relaxed);
    limit.store(helpers, std::memory_order_relaxed);
    const auto epoch = static_cast<std::uint32_t>(job.load(std::memory_order_relaxed) >> 32) + 1;
    job.store((std::uint64_t{epoch} << 32) | kOpen, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0) {
      wake.fetch_add(1, std::memory_order_seq_cst);
      wake.notify_all();
    }
    const int outer = t_worker_index;
    t_worker_index = 0;
    walk(s, run, true);
    t_worker_index = outer;
    s.ended.store(run, std::memory_order_release);
    const std::uint64_t word = job.fetch_and(~kOpen, std::memory_order_acq_rel);
    const int absent = helpers - static_cast<int>(word & kJoined);
    if (absent > 0) s.release(absent);
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads > 0 ? threads : available_cpus()) {
  note_forks();
  threads_ = std::min(threads_, 4096);
  impl_ = new Impl;
}

ThreadPool::~ThreadPool() {
  if (impl_->generation == g_fork_generation.load(std::memory_order_relaxed)) {
    delete impl_;
  }  // else: the child of a fork; the threads do not exist here and cannot be joined, so their record is left alone
}

ThreadPool& ThreadPool::process() {
  // Never destroyed: a run in a static destructor or a detached thread stays valid.
  static ThreadPool* const pool = new ThreadPool;
  return *pool;
}

int ThreadPool::threads() const { return threads_; }

ThreadPool::Impl* ThreadPool::impl() {
  if (impl_->generation != g_fork_generation.load(std::memory_order_relaxed)) impl_ = new Impl;  // see ~ThreadPool
  return impl_;
}

void ThreadPool::run(StepSchedule& schedule, int max_threads) {
  StepSchedule::State* s = schedule.state_;
  if (s == nullptr || s->steps.empty()) return;
  if (s->busy.exchange(true, std::memory_order_acquire)) {
    throw Error(ErrorCode::InvalidArgument, "a schedule runs one call at a time",
                "give each thread its own clone of the executable");
  }
  struct Idle {
    std::atomic<bool>& flag;
    ~Idle() { flag.store(false, std::memory_order_release); }
  } idle{s->busy};
  const int threads = max_threads > 0 ? std::min(max_threads, threads_) : threads_;
  Impl* p = impl();
  if (threads <= 1 || p->busy.exchange(true, std::memory_order_acquire)) {
    s->run_alone();
    return;
  }
  {
    Idle pool_idle{p->busy};
    p->start(threads - 1);
    p->run(*s, threads);
  }
  if (s->failed.load(std::memory_order_acquire)) {
    std::exception_ptr error = std::move(s->error);
    s->error = nullptr;
    std::rethrow_exception(error);
  }
}

void ThreadPool::parallel_for(std::int64_t chunks, void (*fn)(void* ctx, std::int64_t chunk), void* ctx,
                              int max_threads) {
  if (chunks <= 0) return;
  const int threads = max_threads > 0 ? std::min(max_threads, threads_) : threads_;
  Impl* p = impl();
  if (threads <= 1 || chunks == 1 || chunks > 0x7fffffff || p->busy.exchange(true, std::memory_order_acquire)) {
    const AsWorkerZero alone;
    for (std::int64_t c = 0; c < chunks; ++c) fn(ctx, c);
    return;
  }
  StepSchedule::State* s = p->single.state_;
  std::exception_ptr error;
  {
    struct Idle {
      std::atomic<bool>& flag;
      ~Idle() { flag.store(false, std::memory_order_release); }
    } pool_idle{p->busy};
    p->start(threads - 1);
    s->set_chunks(0, static_cast<std::uint32_t>(chunks));
    s->steps[0].ctx.store(ctx, std::memory_order_relaxed);
    s->steps[0].run = fn;
    p->run(*s, threads);
    if (!s->failed.load(std::memory_order_acquire)) return;
    error = s->error;  // while this thread still owns the pool
  }
  std::rethrow_exception(error);
}

}  // namespace rlx
