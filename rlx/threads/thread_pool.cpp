// The CPU thread pool: claimable chunks, per-step done counters, spin then park.
//
// A run works as follows. The caller opens the job word (epoch, open flag, number of workers that joined). Workers that
// see it join by compare-and-swap and execute the same list of steps as the caller. A chunk is claimed by
// compare-and-swap on the step's claim word {run epoch, left in the lower half, left in the upper half}. A finished
// chunk is counted in the step's done word {run epoch, done in the lower half, done in the upper half}.
//
// Odd workers run the upper half of each step, and help with the lower half when their own has nothing to do. Where
// steps split their rows into chunks in the same order, each core then finds the data of the previous step in its own
// cache (two cores that share no cache lose some 10 % of a transformer to the traffic between them). When halves wait
// only for halves, a thread continues with its half of the next steps, and no thread waits for another until a step
// needs both halves.
//
// The first thread that touches a claim or done word in a new run resets it, so starting a run writes one word. A
// worker that was descheduled and arrives late finds newer epochs and claims nothing: the caller waits for claimed
// chunks only, never for a thread. Such a worker may still read the step list after the run, so the list is reference
// counted.
//
// Workers are numbered. A run of n threads opens its job to the first n - 1 workers and wakes those that sleep, so a
// pool that grew for one program does not slow down the runs of another. Only a run that holds the pool starts workers.
#include "rlx/threads/thread_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/base/stop_request.h"
#include "rlx/base/trace.h"
#include "rlx/error.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace rlx {

namespace {

thread_local int t_worker_index = 0;
thread_local int t_run_threads = 1;
thread_local const void* t_purpose = nullptr;

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

constexpr std::int64_t kSpinNs = 100'000;     // a worker spins this long for the next run before it sleeps
constexpr std::int64_t kWaitSpinNs = 50'000;  // a thread inside a run spins this long before it yields its CPU
constexpr int kLookAhead = 16;                // unfinished steps examined after the first
constexpr std::uint32_t kMaxUnits = 1 << 16;  // claims of a step; with more chunks, several are claimed at a time

std::uint64_t pack(std::uint32_t epoch, std::uint32_t count) { return (std::uint64_t{epoch} << 32) | count; }
std::uint32_t epoch_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::uint32_t count_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

// Incremented in the child of a fork: pools made before the fork have no threads there.
std::atomic<std::uint32_t> g_fork_generation{0};

void note_forks() {
#if defined(__linux__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    g_fork_generation.fetch_add(1, std::memory_order_relaxed);
    t_worker_index = 0;
    t_run_threads = 1;
  });
  (void)registered;
#endif
}

/// The CPUs that the control group's quota allows, rounded up; a large number when there is no quota.
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
  constexpr int kNoQuota = 1 << 20;
  int best = kNoQuota;
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
  // If there are more CPUs than cpu_set_t holds, the call fails and the hardware count stays.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
#endif
  return std::max(1, std::min(cpus, cgroup_cpus()));
}

int worker_index() { return t_worker_index; }
int run_threads() { return t_run_threads; }
const void*& thread_purpose() { return t_purpose; }

AsWorkerZero::AsWorkerZero(int threads)
    : outer_index_(std::exchange(t_worker_index, 0)), outer_threads_(std::exchange(t_run_threads, threads)) {}
AsWorkerZero::~AsWorkerZero() {
  t_worker_index = outer_index_;
  t_run_threads = outer_threads_;
}

// -- StepSchedule --

namespace {

std::uint32_t chunks_per_unit(std::uint32_t chunks) {
  return std::max(1U, chunks / kMaxUnits + (chunks % kMaxUnits != 0 ? 1U : 0U));
}
// A step without chunks still orders others, so it counts as one unit.
std::uint32_t units_of(std::uint32_t chunks) { return chunks == 0 ? 1 : (chunks - 1) / chunks_per_unit(chunks) + 1; }

}  // namespace

struct StepSchedule::State {
  struct alignas(64) Counters {
    std::atomic<std::uint64_t> claim{0};  // {epoch, units left in the lower half, in the upper half}
    std::atomic<std::uint64_t> done{0};   // {epoch, units done in the lower half, in the upper half}
  };
  struct Step {
    std::atomic<std::uint32_t> chunks{0};
    std::atomic<std::uint32_t> per_unit{1};  // chunks claimed at a time
    std::atomic<std::uint32_t> units{1};     // number of claims; 1 for a step without chunks, which still orders others
    void (*run)(void*, std::int64_t) = nullptr;
    std::atomic<void*> ctx{nullptr};
    std::uint32_t first_pred = 0, num_preds = 0;
    std::uint32_t first_call = 0, num_calls = 0;  // of a group
    std::uint32_t first_name = 0;                 // in StepTrace::names
  };

  struct Predecessor {
    std::uint32_t step = 0;
    HalfWaits waits = kWaitsForAll;
  };

  explicit State(std::size_t n) : steps(n), counters(n) {}

  void set_chunks(std::size_t s, std::uint32_t n) {
    Step& step = steps[s];
    const std::uint32_t per_unit = chunks_per_unit(n);
    step.chunks.store(n, std::memory_order_relaxed);
    step.per_unit.store(per_unit, std::memory_order_relaxed);
    step.units.store(units_of(n), std::memory_order_relaxed);
  }
  std::uint32_t units(std::size_t s) const { return steps[s].units.load(std::memory_order_relaxed); }
  /// The units of one half of `all`.
  static std::uint32_t half(std::uint32_t all, bool upper) { return upper ? all / 2 : all - all / 2; }
  /// The part of a claim or done count for that half.
  static std::uint32_t part(std::uint32_t count, bool upper) { return upper ? count & 0xffff : count >> 16; }
  static std::uint32_t one(bool upper) { return upper ? 1 : 1U << 16; }

  bool complete(std::size_t s, std::uint32_t run, bool upper) const {
    const std::uint32_t want = half(units(s), upper);
    const std::uint64_t seen = counters[s].done.load(std::memory_order_acquire);
    return want == 0 || (epoch_of(seen) == run && part(count_of(seen), upper) == want);
  }
  bool complete(std::size_t s, std::uint32_t run) const { return complete(s, run, false) && complete(s, run, true); }
  /// True when everything that this half of the step waits for is done.
  bool ready(std::size_t s, std::uint32_t run, bool upper) const {
    const Step& step = steps[s];
    for (std::uint32_t i = 0; i < step.num_preds; ++i) {
      const Predecessor& p = preds[step.first_pred + i];
      if ((p.waits & half_waits(upper, false)) != 0 && !complete(p.step, run, false)) return false;
      if ((p.waits & half_waits(upper, true)) != 0 && !complete(p.step, run, true)) return false;
    }
    return true;
  }

  enum class Claim { Taken, Exhausted, Stale };
  /// Claims a unit of that half of step s for `run`. The caller has seen `ready`.
  Claim claim(std::size_t s, std::uint32_t run, bool upper, std::uint32_t& unit) {
    auto& word = counters[s].claim;
    std::uint64_t seen = word.load(std::memory_order_acquire);
    const std::uint32_t all = units(s);
    for (;;) {
      std::uint32_t left = count_of(seen);
      if (epoch_of(seen) != run) {
        if (static_cast<std::int32_t>(epoch_of(seen) - run) > 0) return Claim::Stale;
        left = half(all, false) << 16 | half(all, true);
      }
      if (part(left, upper) == 0) return Claim::Exhausted;
      unit = (upper ? all : half(all, false)) - part(left, upper);
      if (word.compare_exchange_weak(seen, pack(run, left - one(upper)), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        return Claim::Taken;
    }
  }
  bool exhausted(std::size_t s, std::uint32_t run, bool upper) const {
    const std::uint64_t seen = counters[s].claim.load(std::memory_order_acquire);
    if (epoch_of(seen) == run) return part(count_of(seen), upper) == 0;
    return static_cast<std::int32_t>(epoch_of(seen) - run) > 0 || half(units(s), upper) == 0;
  }
  void finish(std::size_t s, std::uint32_t run, bool upper) {
    auto& word = counters[s].done;
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = epoch_of(seen) == run ? seen + one(upper) : pack(run, one(upper));
    } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  /// Cancels the run, with the exception that is being handled. The first one counts.
  void fail() noexcept {
    if (!failing.exchange(true, std::memory_order_acq_rel)) {
      error = std::current_exception();
      failed.store(true, std::memory_order_release);
    }
  }

  void release(int count = 1) {
    if (refs.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
  }

  std::vector<Step> steps;
  std::vector<Counters> counters;
  std::vector<Predecessor> preds;
  std::vector<ScheduleCall> calls;      // of groups
  std::uint32_t epoch = 0;              // of the last run; written by the caller only
  std::atomic<std::uint32_t> ended{0};  // epoch of the last run that has ended
  std::atomic<bool> busy{false};
  std::atomic<bool> failing{false}, failed{false};  // `failed`: `error` is set
  std::exception_ptr error;
  std::atomic<const void*> purpose{nullptr};      // of the thread that called run
  std::atomic<const StepTrace*> traced{nullptr};  // of the open run
  std::atomic<int> refs{1};
};

StepSchedule::StepSchedule(std::span<const ScheduleStep> steps) {
  auto state = std::make_unique<State>(steps.size());
  std::uint32_t names = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ScheduleStep& in = steps[i];
    auto& step = state->steps[i];
    step.first_name = names;
    names += in.group.empty() ? 1 : static_cast<std::uint32_t>(in.group.size());
    step.first_call = static_cast<std::uint32_t>(state->calls.size());
    step.num_calls = static_cast<std::uint32_t>(in.group.size());
    state->calls.insert(state->calls.end(), in.group.begin(), in.group.end());
    if (in.chunks < 0 || in.chunks > 0x7fffffff) {
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("schedule step ", i, " has ", in.chunks, " chunks; the range is 0 to 2147483647"));
    }
    if (in.run == nullptr && in.chunks > 0) {
      throw Error(ErrorCode::InvalidArgument, concat_text("schedule step ", i, " has no function"));
    }
    state->set_chunks(i, in.group.empty() ? static_cast<std::uint32_t>(in.chunks) : 1);
    step.run = in.run;
    step.ctx = in.ctx;
    step.first_pred = static_cast<std::uint32_t>(state->preds.size());
    step.num_preds = static_cast<std::uint32_t>(in.predecessors.size());
    if (!in.waits.empty() && in.waits.size() != in.predecessors.size()) {
      throw Error(ErrorCode::InvalidArgument, concat_text("schedule step ", i, " has ", in.predecessors.size(),
                                                          " predecessors, but ", in.waits.size(), " waits"));
    }
    for (std::size_t k = 0; k < in.predecessors.size(); ++k) {
      const std::int32_t p = in.predecessors[k];
      if (p < 0 || static_cast<std::size_t>(p) >= i) {
        throw Error(ErrorCode::InvalidArgument, concat_text("schedule step ", i, " names predecessor ", p,
                                                            "; a predecessor must be an earlier step"));
      }
      state->preds.push_back({static_cast<std::uint32_t>(p), in.waits.empty() ? kWaitsForAll : in.waits[k]});
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

std::int64_t StepSchedule::lower_half(std::int64_t chunks) {
  if (chunks < 0 || chunks > 0x7fffffff) {
    throw Error(ErrorCode::InvalidArgument, concat_text("a step of ", chunks, " chunks; the range is 0 to 2147483647"));
  }
  const auto n = static_cast<std::uint32_t>(chunks);
  return std::min<std::int64_t>(chunks, std::int64_t{State::half(units_of(n), false)} * chunks_per_unit(n));
}

namespace {

// Records the work of one thread in a traced run. Consecutive chunks of a step are one event. It reads the trace only
// between a claim and its end, while the caller waits, because a late worker claims nothing.
class Stretches {
 public:
  explicit Stretches(const StepTrace& to) : to_(to) {}
  /// Before and after a call of these names.
  void begin() {
    if (!scope_) {
      scope_.emplace(to_.trace);
      if (t_worker_index > 0) to_.trace->name_thread(concat_text("rlx worker ", t_worker_index));
    }
    begin_ = Trace::now_ns();
  }
  void end(std::uint32_t name) {
    const std::int64_t end = Trace::now_ns();
    if (name == name_ && end_)
      end_->store(end, std::memory_order_relaxed);
    else
      end_ = to_.trace->record(to_.names[name], begin_, end);
    name_ = name;
  }
  void close() { end_ = nullptr; }

 private:
  const StepTrace& to_;
  std::optional<TraceScope> scope_;
  std::int64_t begin_ = 0;
  std::uint32_t name_ = 0;
  std::atomic<std::int64_t>* end_ = nullptr;
};

}  // namespace

// -- ThreadPool --

struct ThreadPool::Impl {
  // The job word: epoch in the high 32 bits, then the open flag, then the number of workers that joined (low 16 bits).
  static constexpr std::uint64_t kOpen = 1ULL << 16;
  static constexpr std::uint64_t kJoined = kOpen - 1;

  /// Worker i serves the runs with more than i helpers, as thread i + 1. In other runs it sleeps.
  struct alignas(64) Worker {
    std::atomic<std::uint32_t> wake{0};  // incremented to end its sleep
    std::atomic<bool> sleeping{false};
    std::thread thread;
  };

  alignas(64) std::atomic<std::uint64_t> job{0};
  std::atomic<bool> stop{false};
  std::atomic<int> helpers{0};  // of the open run
  std::atomic<StepSchedule::State*> state{nullptr};
  std::atomic<std::uint32_t> run_epoch{0};  // the schedule's own epoch of the open run
  alignas(64) std::atomic<bool> busy{false};
  int started = 0;  // number of workers; only the thread that holds `busy` starts more
  std::array<Worker, kMaxThreads - 1> workers;
  StepSchedule single;  // for parallel_for
  std::uint32_t generation = g_fork_generation.load(std::memory_order_relaxed);

  Impl() {
    const ScheduleStep step{1, [](void*, std::int64_t) {}, nullptr, {}};
    single = StepSchedule(std::span<const ScheduleStep>(&step, 1));
  }

  ~Impl() {
    stop.store(true);
    for (int i = 0; i < started; ++i) wake(workers[static_cast<std::size_t>(i)]);
    for (int i = 0; i < started; ++i) workers[static_cast<std::size_t>(i)].thread.join();
  }

  static void wake(Worker& w) {
    w.wake.fetch_add(1, std::memory_order_seq_cst);
    w.wake.notify_one();
  }

  /// Starts workers up to `wanted`. Returns how many of them exist.
  int start(int wanted) {
    try {
      for (; started < wanted; ++started)
        workers[static_cast<std::size_t>(started)].thread = std::thread([this, i = started] { worker_loop(i); });
    } catch (const std::exception&) {
      // The system has no more threads, or no memory for one. The run uses the existing workers.
    }
    return std::min(started, wanted);
  }

  /// The search of one thread for work in a run.
  struct Search {
    StepSchedule::State& s;
    std::uint32_t run;
    bool own = t_worker_index % 2 != 0;  // the half that it prefers
    std::size_t first[2] = {0, 0};       // by half: exhausted in all steps before it
    std::size_t completed = 0;           // all steps before it are complete

    struct Unit {
      std::size_t step = 0;
      std::uint32_t number = 0;
      bool upper = false;
    };
    enum class Found { Unit, Nothing, Stale };
    /// Claims a unit of a step that is ready.
    Found claim(Unit& u) {
      for (const bool upper : {own, !own}) {
        std::size_t& begin = first[upper ? 1 : 0];
        const std::size_t n = s.steps.size();
        while (begin < n && s.exhausted(begin, run, upper)) ++begin;
        int looked = 0;
        for (std::size_t i = begin; i < n && looked < kLookAhead; ++i) {
          if (i != begin && s.exhausted(i, run, upper)) continue;
          ++looked;
          if (!s.ready(i, run, upper)) continue;
          const auto claim = s.claim(i, run, upper, u.number);
          if (claim == StepSchedule::State::Claim::Stale) return Found::Stale;
          if (claim == StepSchedule::State::Claim::Exhausted) continue;
          u.step = i;
          u.upper = upper;
          return Found::Unit;
        }
      }
      return Found::Nothing;
    }
    /// True when every unit is claimed.
    bool all_claimed() const { return first[0] == s.steps.size() && first[1] == s.steps.size(); }
    bool all_complete() {
      while (completed < s.steps.size() && s.complete(completed, run)) ++completed;
      return completed == s.steps.size();
    }
  };

  /// Executes the steps. Returns when no step has unclaimed chunks (worker), or when all steps are complete (caller).
  static void work(StepSchedule::State& s, std::uint32_t run, bool caller) {
    Search search{s, run};
    std::int64_t idle_since = 0;
    std::optional<Stretches> record;
    if (const StepTrace* to = s.traced.load(std::memory_order_relaxed)) record.emplace(*to);
    // The caller was asked to stop by whoever asked. A worker stops when the run has failed, also inside of a loop.
    std::optional<StopRequest> with_run;
    if (!caller) with_run.emplace(s.failed);
    const StopRequest::Asked& stop = StopRequest::current();
    for (;;) {
      Search::Unit u;
      const auto found = search.claim(u);
      if (found == Search::Found::Stale) return;
      if (found == Search::Found::Unit) {
        const StepSchedule::State::Step& step = s.steps[u.step];
        const auto cancelled = [&] { return s.failed.load(std::memory_order_relaxed); };
        try {
          if (step.num_calls > 0) {
            for (std::uint32_t k = 0; k < step.num_calls; ++k) {
              const ScheduleCall& call = s.calls[step.first_call + k];
              if (record) record->begin();
              for (std::int64_t c = 0; c < call.chunks && !cancelled(); ++c) {
                stop.check();
                call.run(call.ctx, c);
              }
              if (record) record->end(step.first_name + k);
            }
          } else {
            const std::uint64_t per_unit = step.per_unit.load(std::memory_order_relaxed);
            const std::uint64_t end =
                std::min<std::uint64_t>(step.chunks.load(std::memory_order_relaxed), (u.number + 1) * per_unit);
            if (record) record->begin();
            for (std::uint64_t c = u.number * per_unit; c < end && !cancelled(); ++c) {
              stop.check();
              step.run(step.ctx.load(std::memory_order_relaxed), static_cast<std::int64_t>(c));
            }
            if (record) record->end(step.first_name);
          }
        } catch (...) {
          s.fail();
        }
        s.finish(u.step, run, u.upper);
        idle_since = 0;
        continue;
      }
      if (record) record->close();
      if (search.all_claimed() && (!caller || search.all_complete())) return;
      if (!caller && s.ended.load(std::memory_order_acquire) == run) return;
      if (caller && !s.failed.load(std::memory_order_relaxed)) {
        try {
          stop.check();  // while workers are inside long chunks
        } catch (...) {
          s.fail();
        }
      }
      const std::int64_t now = now_ns();
      if (idle_since == 0) idle_since = now;
      if (now - idle_since > kWaitSpinNs) {
        std::this_thread::yield();
      } else {
        for (int i = 0; i < 8; ++i) cpu_pause();
      }
    }
  }

  /// Runs all steps on the calling thread, without the counters.
  static void work_alone(StepSchedule::State& s, const StepTrace* to) {
    const AsWorkerZero alone(1);
    const StopRequest::Asked& stop = StopRequest::current();
    for (const StepSchedule::State::Step& step : s.steps) {
      const ScheduleCall own{step.chunks.load(std::memory_order_relaxed), step.run,
                             step.ctx.load(std::memory_order_relaxed)};
      std::span<const ScheduleCall> calls(&own, 1);
      if (step.num_calls > 0) calls = std::span(s.calls).subspan(step.first_call, step.num_calls);
      for (std::size_t k = 0; k < calls.size(); ++k) {
        const TraceSpan span(to ? to->trace : nullptr, to ? to->names[step.first_name + k] : 0);
        for (std::int64_t c = 0; c < calls[k].chunks; ++c) {
          stop.check();
          calls[k].run(calls[k].ctx, c);
        }
      }
    }
  }

  /// Joins the job of `word` as worker `index`. Returns its schedule, or null when the job is closed or does not need
  /// this worker.
  StepSchedule::State* join(int index, std::uint64_t word, std::uint32_t& run) {
    const std::uint32_t epoch = epoch_of(word);
    while ((word & kOpen) != 0 && epoch_of(word) == epoch && index < helpers.load(std::memory_order_relaxed)) {
      // Read before the swap. If the swap succeeds, the job was still this one, so these are its values.
      StepSchedule::State* s = state.load(std::memory_order_relaxed);
      run = run_epoch.load(std::memory_order_relaxed);
      const int threads = helpers.load(std::memory_order_relaxed) + 1;
      if (job.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        t_run_threads = threads;
        return s;
      }
    }
    return nullptr;
  }

  void worker_loop(int index) {
    Worker& self = workers[static_cast<std::size_t>(index)];
    std::uint32_t last = 0;  // epoch of the last job examined
    std::int64_t since = now_ns();
    const auto is_new = [&](std::uint64_t word) { return (word & kOpen) != 0 && epoch_of(word) != last; };
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t word = job.load(std::memory_order_acquire);
      if (is_new(word)) {
        last = epoch_of(word);
        std::uint32_t run = 0;
        if (StepSchedule::State* s = join(index, word, run)) {
          // The state is alive: the caller holds one reference per possible worker until the job is closed, and closing
          // leaves one reference to each worker that joined.
          t_worker_index = index + 1;
          t_purpose = s->purpose.load(std::memory_order_relaxed);
          work(*s, run, false);
          t_purpose = nullptr;
          t_worker_index = 0;
          t_run_threads = 1;
          s->release();
          since = now_ns();
        }
        continue;
      }
      if (now_ns() - since < kSpinNs) {
        for (int i = 0; i < 16; ++i) cpu_pause();
        continue;
      }
      const std::uint32_t ticket = self.wake.load(std::memory_order_seq_cst);
      self.sleeping.store(true, std::memory_order_seq_cst);
      // Either a caller sees `sleeping`, or this load sees its job.
      if (!is_new(job.load(std::memory_order_seq_cst)) && !stop.load()) {
        self.wake.wait(ticket, std::memory_order_seq_cst);
        since = now_ns();
      }
      self.sleeping.store(false, std::memory_order_seq_cst);
    }
  }

  /// A run that is open to `count` workers.
  class OpenJob {
   public:
    OpenJob(Impl& pool, StepSchedule::State& s, int count)
        : pool_(pool), s_(s), count_(count), run_(++s.epoch), caller_(count + 1) {
      s.refs.fetch_add(count, std::memory_order_relaxed);
      if (s.failing.load(std::memory_order_relaxed)) {
        s.failing.store(false, std::memory_order_relaxed);
        s.failed.store(false, std::memory_order_relaxed);
        s.error = nullptr;
      }
      s.purpose.store(t_purpose, std::memory_order_relaxed);
      pool.state.store(&s, std::memory_order_relaxed);
      pool.run_epoch.store(run_, std::memory_order_relaxed);
      pool.helpers.store(count, std::memory_order_relaxed);
      const std::uint32_t epoch = epoch_of(pool.job.load(std::memory_order_relaxed)) + 1;
      pool.job.store(pack(epoch, kOpen), std::memory_order_seq_cst);
      for (int i = 0; i < count; ++i) {
        Worker& w = pool.workers[static_cast<std::size_t>(i)];
        if (w.sleeping.load(std::memory_order_seq_cst)) wake(w);
      }
    }
    OpenJob(const OpenJob&) = delete;
    OpenJob& operator=(const OpenJob&) = delete;
    ~OpenJob() {
      s_.ended.store(run_, std::memory_order_release);
      const std::uint64_t word = pool_.job.fetch_and(~kOpen, std::memory_order_acq_rel);
      const int absent = count_ - static_cast<int>(word & kJoined);
      if (absent > 0) s_.release(absent);
    }
    std::uint32_t run() const { return run_; }

   private:
    Impl& pool_;
    StepSchedule::State& s_;
    int count_;
    std::uint32_t run_;
    AsWorkerZero caller_;
  };
};

int checked_thread_count(int threads, std::string_view what, std::string_view hint) {
  if (threads < 0 || threads > kMaxThreads)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(what, " = ", threads, ": a run has 1 to ", kMaxThreads, " threads"), std::string(hint));
  return threads > 0 ? threads : std::min(available_cpus(), kMaxThreads);
}

ThreadPool::ThreadPool(int threads) : threads_(checked_thread_count(threads, "threads")) {
  note_forks();
  impl_.store(new Impl, std::memory_order_release);
}

ThreadPool::~ThreadPool() {
  Impl* p = impl_.load(std::memory_order_acquire);
  if (p->generation == g_fork_generation.load(std::memory_order_relaxed)) {
    delete p;
  }  // else: the child of a fork. The threads do not exist here and cannot be joined, so their record is leaked
}

ThreadPool& ThreadPool::process() {
  // Never destroyed: a run in a static destructor or in a detached thread stays valid.
  static ThreadPool* const pool = new ThreadPool;
  return *pool;
}

int ThreadPool::threads() const { return threads_; }

ThreadPool::Impl* ThreadPool::impl() {
  Impl* p = impl_.load(std::memory_order_acquire);
  if (p->generation == g_fork_generation.load(std::memory_order_relaxed)) return p;
  // See ~ThreadPool. When several threads of the child arrive first, the record of one stays.
  auto mine = std::make_unique<Impl>();
  if (impl_.compare_exchange_strong(p, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire))
    return mine.release();
  return p;
}

void ThreadPool::run(StepSchedule& schedule, int max_threads, const StepTrace* traced) {
  StepSchedule::State* s = schedule.state_;
  if (s == nullptr || s->steps.empty()) return;
  if (s->busy.exchange(true, std::memory_order_acquire)) {
    throw Error(ErrorCode::InvalidArgument, "a schedule was run by two threads at the same time",
                "give each thread its own clone of the executable");
  }
  struct Idle {
    std::atomic<bool>& flag;
    ~Idle() { flag.store(false, std::memory_order_release); }
  } idle{s->busy};
  const int threads = max_threads > 0 ? std::min(max_threads, kMaxThreads) : threads_;
  Impl* p = threads > 1 ? impl() : nullptr;
  if (p == nullptr || p->busy.exchange(true, std::memory_order_acquire)) {
    Impl::work_alone(*s, traced);
    return;
  }
  s->traced.store(traced, std::memory_order_relaxed);
  {
    Idle pool_idle{p->busy};
    const Impl::OpenJob job(*p, *s, p->start(threads - 1));
    Impl::work(*s, job.run(), true);
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
  const int threads = max_threads > 0 ? std::min(max_threads, kMaxThreads) : threads_;
  Impl* p = threads > 1 && chunks > 1 && chunks <= 0x7fffffff ? impl() : nullptr;
  if (p == nullptr || p->busy.exchange(true, std::memory_order_acquire)) {
    const AsWorkerZero alone(1);
    const StopRequest::Asked& stop = StopRequest::current();
    for (std::int64_t c = 0; c < chunks; ++c) {
      stop.check();
      fn(ctx, c);
    }
    return;
  }
  StepSchedule::State* s = p->single.state_;
  std::exception_ptr error;
  {
    struct Idle {
      std::atomic<bool>& flag;
      ~Idle() { flag.store(false, std::memory_order_release); }
    } pool_idle{p->busy};
    const int helpers = p->start(threads - 1);
    s->set_chunks(0, static_cast<std::uint32_t>(chunks));
    s->steps[0].ctx.store(ctx, std::memory_order_relaxed);
    s->steps[0].run = fn;
    {
      const Impl::OpenJob job(*p, *s, helpers);
      Impl::work(*s, job.run(), true);
    }
    if (!s->failed.load(std::memory_order_acquire)) return;
    error = s->error;  // while this thread still owns the pool
  }
  std::rethrow_exception(error);
}

}  // namespace rlx
