// The thread pool: order of steps, every chunk once, exceptions, concurrent and nested runs, forks.
#include "rlx/threads/thread_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/error.h"
#include "tests/support/needs.h"

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace rlx {
namespace {

struct StepData {
  std::vector<std::atomic<int>>* counts = nullptr;  // runs of each chunk
  std::atomic<int> done{0};
  std::vector<StepData*> preds;
  std::int64_t chunks = 0;
  std::atomic<bool>* order_broken = nullptr;
  std::atomic<int>* max_worker = nullptr;
};

void run_step(void* ctx, std::int64_t chunk) {
  auto& s = *static_cast<StepData*>(ctx);
  for (StepData* p : s.preds) {
    if (p->done.load() != p->chunks) s.order_broken->store(true);
  }
  int seen = s.max_worker->load();
  while (worker_index() > seen && !s.max_worker->compare_exchange_weak(seen, worker_index())) {
  }
  (*s.counts)[static_cast<std::size_t>(chunk)].fetch_add(1);
  s.done.fetch_add(1);
}

TEST_CASE("schedule: a half goes on while the other half of the step before is still at work") {
  struct Shared {
    std::atomic<bool> ahead{false}, held{false};
  } shared;
  const auto first = [](void* ctx, std::int64_t chunk) {
    auto& s = *static_cast<Shared*>(ctx);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (chunk == 1 && !s.ahead.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (chunk == 1) s.held.store(s.ahead.load());
  };
  const auto second = [](void* ctx, std::int64_t chunk) {
    if (chunk == 0) static_cast<Shared*>(ctx)->ahead.store(true);
  };
  const std::int32_t before[] = {0};
  const HalfWaits same[] = {static_cast<HalfWaits>(half_waits(false, false) | half_waits(true, true))};
  const ScheduleStep steps[] = {{2, first, &shared, {}, {}}, {2, second, &shared, before, same}};
  StepSchedule schedule(steps);
  ThreadPool pool(2);
  pool.run(schedule, 2);
  CHECK(shared.held.load());
}

TEST_CASE("schedule: halves run after the halves they wait for, whatever the cut and the threads") {
  constexpr int kSteps = 30;
  struct Step {
    std::int64_t chunks = 0;
    std::atomic<std::int64_t> done[2] = {0, 0};
    std::vector<std::pair<Step*, HalfWaits>> before;
    std::atomic<bool>* broken = nullptr;
    std::int64_t size(int half) const {
      const std::int64_t lower = StepSchedule::lower_half(chunks);
      return half == 0 ? lower : chunks - lower;
    }
    static void run(void* ctx, std::int64_t chunk) {
      Step& s = *static_cast<Step*>(ctx);
      const int half = chunk >= StepSchedule::lower_half(s.chunks) ? 1 : 0;
      for (const auto& [step, waits] : s.before)
        for (int other = 0; other < 2; ++other)
          if ((waits & half_waits(half == 1, other == 1)) != 0 && step->done[other].load() != step->size(other))
            s.broken->store(true);
      s.done[half].fetch_add(1);
    }
  };
  unsigned rng = 99;
  const auto next = [&rng] { return (rng = rng * 1664525U + 1013904223U) >> 16; };
  for (const int threads : {1, 2, 3, 7}) {
    std::atomic<bool> broken{false};
    std::vector<std::unique_ptr<Step>> data;
    std::vector<std::vector<std::int32_t>> predecessors(kSteps);
    std::vector<std::vector<HalfWaits>> waits(kSteps);
    std::vector<ScheduleStep> steps;
    for (std::size_t i = 0; i < kSteps; ++i) {
      data.push_back(std::make_unique<Step>());
      data[i]->chunks = i % 7 == 6 ? 70000 : 1 + next() % 9;
      data[i]->broken = &broken;
      for (std::size_t p = 0; p < i; ++p) {
        if (next() % 4 != 0) continue;
        const auto mask = static_cast<HalfWaits>(1 + next() % 15);
        predecessors[i].push_back(static_cast<std::int32_t>(p));
        waits[i].push_back(mask);
        data[i]->before.emplace_back(data[p].get(), mask);
      }
      steps.push_back({data[i]->chunks, Step::run, data[i].get(), predecessors[i], waits[i]});
    }
    StepSchedule schedule(steps);
    ThreadPool pool(threads);
    for (int run = 0; run < test::repetitions(20); ++run) {
      for (const auto& step : data) step->done[0] = step->done[1] = 0;
      pool.run(schedule, threads);
      for (const auto& step : data)
        for (int half = 0; half < 2; ++half) CHECK(step->done[half].load() == step->size(half));
    }
    CHECK_FALSE(broken.load());
  }
}

TEST_CASE("schedule: every chunk once, after its predecessors, over many runs") {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    constexpr int kSteps = 40;
    std::vector<std::unique_ptr<StepData>> data;
    std::vector<std::unique_ptr<std::vector<std::atomic<int>>>> counts;
    std::vector<std::vector<std::int32_t>> preds(kSteps);
    std::vector<ScheduleStep> steps;
    std::atomic<bool> broken{false};
    std::atomic<int> max_worker{0};
    unsigned rng = 12345;
    const auto next = [&rng] { return (rng = rng * 1664525U + 1013904223U) >> 16; };
    for (int i = 0; i < kSteps; ++i) {
      data.push_back(std::make_unique<StepData>());
      StepData& d = *data.back();
      d.chunks = 1 + next() % 7;
      counts.push_back(std::make_unique<std::vector<std::atomic<int>>>(7));
      d.counts = counts.back().get();
      d.order_broken = &broken;
      d.max_worker = &max_worker;
      for (int k = 0; k < 2 && i > 0; ++k) {
        const auto p = static_cast<std::int32_t>(next() % static_cast<unsigned>(i));
        preds[static_cast<std::size_t>(i)].push_back(p);
        d.preds.push_back(data[static_cast<std::size_t>(p)].get());
      }
    }
    for (int i = 0; i < kSteps; ++i) {
      steps.push_back({data[static_cast<std::size_t>(i)]->chunks, run_step, data[static_cast<std::size_t>(i)].get(),
                       preds[static_cast<std::size_t>(i)]});
    }
    StepSchedule schedule(steps);
    constexpr int kRuns = 300;
    for (int run = 0; run < kRuns; ++run) {
      for (auto& d : data) d->done = 0;
      if (run % 50 == 49) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lets the workers sleep
      pool.run(schedule);
    }
    CHECK_FALSE(broken.load());
    CHECK(max_worker.load() < threads);
    for (int i = 0; i < kSteps; ++i) {
      for (std::int64_t c = 0; c < data[static_cast<std::size_t>(i)]->chunks; ++c)
        CHECK((*counts[static_cast<std::size_t>(i)])[static_cast<std::size_t>(c)].load() == kRuns);
    }
  }
}

TEST_CASE("schedule: chunk counts change between runs; a step of no chunks still orders") {
  ThreadPool pool(3);
  std::atomic<int> first{0}, last{0};
  std::atomic<bool> early{false};
  struct Ctx {
    std::atomic<int>*first, *last;
    std::atomic<bool>* early;
  } ctx{&first, &last, &early};
  const std::int32_t p0[] = {0}, p1[] = {1};
  const auto slow = [](void* c, std::int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    static_cast<Ctx*>(c)->first->fetch_add(1);
  };
  const auto after = [](void* c, std::int64_t) {
    auto* x = static_cast<Ctx*>(c);
    if (x->first->load() < 3) x->early->store(true);
    x->last->fetch_add(1);
  };
  const ScheduleStep steps[] = {{3, slow, &ctx, {}}, {0, nullptr, nullptr, p0}, {2, after, &ctx, p1}};
  StepSchedule schedule(steps);
  pool.run(schedule);
  CHECK_FALSE(early.load());
  CHECK(last.load() == 2);
  pool.run(schedule);
  CHECK(last.load() == 4);
  CHECK_THROWS_AS(StepSchedule(std::vector<ScheduleStep>{{1, slow, nullptr, p0}}), Error);
}

TEST_CASE("a group of calls runs in order on one thread, between its predecessors and its successors") {
  struct Made {
    std::vector<std::int64_t> order;  // unguarded: the schedule says that nothing runs beside anything
    std::vector<std::thread::id> by;
    bool fails = false;
  } made;
  const auto note = [](void* m, std::int64_t chunk) {
    auto& to = *static_cast<Made*>(m);
    if (to.fails && to.order.size() == 2) throw Error(ErrorCode::Internal, "third call");
    to.order.push_back(chunk);
    to.by.push_back(std::this_thread::get_id());
  };
  const ScheduleCall calls[] = {{3, note, &made}, {0, note, &made}, {2, note, &made}};
  const std::int32_t first[] = {0}, group[] = {1};
  ScheduleStep steps[] = {{1, note, &made, {}}, {0, nullptr, nullptr, first}, {1, note, &made, group}};
  steps[1].group = calls;
  StepSchedule schedule(steps);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 50; ++repeat) {
      made = {};
      pool.run(schedule);
      CHECK(made.order == std::vector<std::int64_t>{0, 0, 1, 2, 0, 1, 0});
      CHECK(std::count(made.by.begin() + 1, made.by.end() - 1, made.by[1]) == 5);
    }
    made = {};
    made.fails = true;
    CHECK_THROWS_WITH(pool.run(schedule), doctest::Contains("third call"));
    CHECK(made.order.size() == 2);
  }
}

TEST_CASE("more chunks than claims: each runs once, in steps and in parallel_for") {
  ThreadPool pool(3);
  for (const std::int64_t chunks : {1, 2, 65535, 65536, 65537, 200001}) {
    std::vector<std::atomic<int>> ran(static_cast<std::size_t>(chunks));
    pool.parallel_for(chunks, [&](std::int64_t c) { ran[static_cast<std::size_t>(c)].fetch_add(1); });
    bool once = true;
    for (const auto& r : ran) once = once && r.load() == 1;
    CHECK_MESSAGE(once, chunks, " chunks");
  }
}

TEST_CASE("two threads begin at the two halves of a step") {
  ThreadPool pool(2);
  std::atomic<int> begun{0};
  std::atomic<std::int64_t> first[2] = {-1, -1};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.parallel_for(8, [&](std::int64_t c) {
    std::int64_t none = -1;
    if (!first[worker_index()].compare_exchange_strong(none, c)) return;
    begun.fetch_add(1);
    // Waits until the other one has joined.
    while (begun.load() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  CHECK(first[0].load() == 0);
  CHECK(first[1].load() == 4);
}

TEST_CASE("an exception of a chunk reaches the caller, and the next run is clean") {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::atomic<int> ran{0};
      CHECK_THROWS_WITH(pool.parallel_for(100,
                                          [&](std::int64_t c) {
                                            if (c == 13) throw Error(ErrorCode::Internal, "chunk 13");
                                            ran.fetch_add(1);
                                          }),
                        doctest::Contains("chunk 13"));
      ran = 0;
      pool.parallel_for(100, [&](std::int64_t) { ran.fetch_add(1); });
      CHECK(ran.load() == 100);
    }
    const auto fail = [](void*, std::int64_t) { throw Error(ErrorCode::Internal, "step"); };
    const ScheduleStep step{4, fail, nullptr, {}};
    StepSchedule schedule(std::span<const ScheduleStep>(&step, 1));
    CHECK_THROWS_AS(pool.run(schedule), Error);
    CHECK_THROWS_AS(pool.run(schedule), Error);
  }
}

TEST_CASE("concurrent runs share the pool: one uses it, the others work alone") {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) pool.parallel_for(10, [&](std::int64_t c) { total.fetch_add(c); });
    });
  }
  for (auto& c : callers) c.join();
  CHECK(total.load() == 4 * 200 * 45);
}

TEST_CASE("a run inside a chunk works, on that thread, as thread 0") {
  ThreadPool pool(3);
  std::atomic<int> count{0};
  std::atomic<bool> wrong{false};
  pool.parallel_for(8, [&](std::int64_t) {
    const int outer = worker_index();
    pool.parallel_for(5, [&](std::int64_t) {
      if (worker_index() != 0) wrong = true;
      count.fetch_add(1);
    });
    if (worker_index() != outer) wrong = true;
  });
  CHECK(count.load() == 40);
  CHECK_FALSE(wrong.load());
}

TEST_CASE("schedules are made and dropped between runs while workers may still look at them") {
  ThreadPool pool(6);
  for (int i = 0; i < 2000; ++i) {
    std::atomic<int> n{0};
    const ScheduleStep step{3, [](void* c, std::int64_t) { static_cast<std::atomic<int>*>(c)->fetch_add(1); }, &n, {}};
    StepSchedule schedule(std::span<const ScheduleStep>(&step, 1));
    pool.run(schedule);
    REQUIRE(n.load() == 3);
  }
}

TEST_CASE("available cpus is at least one; max_threads limits a run") {
  CHECK(available_cpus() >= 1);
  ThreadPool pool(4);
  std::atomic<int> top{0};
  for (int i = 0; i < 50; ++i) {
    pool.parallel_for(
        20,
        [&](std::int64_t) {
          int seen = top.load();
          while (worker_index() > seen && !top.compare_exchange_weak(seen, worker_index())) {
          }
        },
        2);
  }
  CHECK(top.load() <= 1);
}

TEST_CASE("a pool grows to the largest run, at most 64 threads; a smaller run leaves the others alone") {
  ThreadPool pool(1);
  CHECK(pool.threads() == 1);
  for (const int threads : {2, 8, kMaxThreads, 1000, 3, 1}) {
    const int most = std::min(threads, kMaxThreads);
    std::atomic<int> top{0}, runs_of{0}, came{0};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::vector<std::atomic<int>> ran(2 * kMaxThreads);
    std::vector<std::atomic<bool>> here(kMaxThreads);
    pool.parallel_for(
        2 * kMaxThreads,
        [&](std::int64_t c) {
          ran[static_cast<std::size_t>(c)].fetch_add(1);
          runs_of = run_threads();
          int seen = top.load();
          while (worker_index() > seen && !top.compare_exchange_weak(seen, worker_index())) {
          }
          if (!here[static_cast<std::size_t>(worker_index())].exchange(true)) came.fetch_add(1);
          while (came.load() < most && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
        },
        threads);
    CHECK(runs_of.load() == most);
    CHECK(came.load() == most);  // every thread took part, and each has its own index
    CHECK(top.load() == most - 1);
    bool once = true;
    for (const auto& r : ran) once = once && r.load() == 1;
    CHECK(once);
  }
  CHECK(run_threads() == 1);
}

TEST_CASE("two threads let one pool grow at the same time") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    ThreadPool pool(1);
    std::atomic<std::int64_t> total{0};
    std::atomic<int> ready{0};
    std::vector<std::thread> callers;
    for (const int threads : {7, 12})
      callers.emplace_back([&pool, &total, &ready, threads] {
        ready.fetch_add(1);
        while (ready.load() < 2) std::this_thread::yield();
        for (int i = 1; i <= threads; ++i)
          pool.parallel_for(
              30, [&](std::int64_t c) { total.fetch_add(c); }, i);
      });
    for (auto& c : callers) c.join();
    CHECK(total.load() == (7 + 12) * 435);
  }
}

TEST_CASE("a thread count is checked by name") {
  CHECK(checked_thread_count(64, "n") == 64);
  CHECK(checked_thread_count(0, "n") == std::min(available_cpus(), kMaxThreads));
  CHECK_THROWS_WITH(checked_thread_count(65, "RLX_THREADS"), doctest::Contains("RLX_THREADS = 65"));
  CHECK_THROWS_AS(checked_thread_count(-1, "n"), Error);
  CHECK_THROWS_AS(ThreadPool(65), Error);
}

// CPU emulators and the thread sanitizer cannot start threads in the child of a fork.
#if defined(__linux__) && defined(__x86_64__) && !defined(RLX_THREAD_SANITIZER)
TEST_CASE("the child of a fork runs on workers of its own") {
  ThreadPool pool(3);
  std::atomic<int> n{0};
  pool.parallel_for(10, [&](std::int64_t) { n.fetch_add(1); });
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> inner{0};
    pool.parallel_for(10, [&](std::int64_t) { inner.fetch_add(1); });
    ThreadPool::process().parallel_for(
        10, [&](std::int64_t) { inner.fetch_add(1); }, 8);
    _exit(inner.load() == 20 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  pool.parallel_for(10, [&](std::int64_t) { n.fetch_add(1); });
  CHECK(n.load() == 20);
}
#endif

}  // namespace
}  // namespace rlx
