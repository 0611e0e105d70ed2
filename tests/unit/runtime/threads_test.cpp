// Threads of programs: one pool for all, more threads than CPUs, steps that are really distributed.
#include <cstdio>
#include <cstring>
#include <thread>

#include <doctest/doctest.h>

#include "rlx/runtime/env.h"
#include "rlx/runtime/session.h"
#include "rlx/threads/chunk_audit.h"
#include "rlx/threads/thread_pool.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

Graph rows_of_softmax() {
  Graph g("rows");
  auto n = g.symbol("n", {.min = 1, .max = 4096});
  auto x = g.input("x", {{n, 64}, DType::F32});
  g.set_outputs({g.softmax(g.matmul(x, g.param("w", {{64, 64}, DType::F32})))});
  return g;
}

std::vector<float> weights() {
  std::vector<float> w(64 * 64);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.001F * static_cast<float>(i % 97) - 0.04F;
  return w;
}

std::vector<float> run_rows(CompiledGraph& f, int n) {
  std::vector<float> x(static_cast<std::size_t>(n) * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i % 313);
  return f.run({{"x", x}})[0];
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

int threads_of_this_process() {
  int n = -1;
  if (std::FILE* f = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, f) != nullptr)
      if (std::sscanf(line, "Threads: %d", &n) == 1) break;
    std::fclose(f);
  }
  return n;
}

#if defined(__linux__)
TEST_CASE("a hundred shapes with eight threads, and their clones, run on one pool") {
  CompiledGraph f = Session().with_threads(8).compile(rows_of_softmax());
  CompiledGraph one = Session().with_threads(1).compile(rows_of_softmax());
  f.set_param("w", weights());
  one.set_param("w", weights());
  for (int n = 1; n <= 100; ++n) CHECK(same_bits(run_rows(f, 3 * n), run_rows(one, 3 * n)));
  // Other tests of this process may have grown the pool before; from here on it must not grow.
  const int before = threads_of_this_process();
  CHECK(before >= 8);
  CHECK(before <= kMaxThreads + 4);  // the sanitizers have their own thread
  std::vector<CompiledGraph> clones;
  for (int i = 0; i < 20; ++i) {
    clones.push_back(f.clone());
    CHECK(same_bits(run_rows(clones.back(), 400 + i), run_rows(one, 400 + i)));
  }
  CHECK(threads_of_this_process() == before);
}
#endif

TEST_CASE("sixty-four threads give the bits of one; more are refused by name") {
  CompiledGraph one = Session().with_threads(1).compile(rows_of_softmax());
  one.set_param("w", weights());
  for (const int threads : {2, 3, 5, 64}) {
    CompiledGraph f = Session().with_threads(threads).compile(rows_of_softmax());
    f.set_param("w", weights());
    CHECK(same_bits(run_rows(f, 1000), run_rows(one, 1000)));
  }
  CHECK_THROWS_WITH_AS(Session().with_threads(65), doctest::Contains("65"), Error);
  CHECK_THROWS_AS(Session().with_threads(-1), Error);
  const RuntimeOverrides env("RLX_THREADS", "65");
  CHECK_THROWS_WITH_AS(Session(), doctest::Contains("RLX_THREADS = 65"), Error);
  CHECK_THROWS_WITH_AS(Session(), doctest::Contains("hint: unset it"), Error);  // 0 is refused
}

TEST_CASE("programs that let the pool grow at the same time") {
  CompiledGraph one = Session().with_threads(1).compile(rows_of_softmax());
  one.set_param("w", weights());
  const std::vector<float> want = run_rows(one, 700);
  std::vector<std::thread> callers;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&wrong, &want, t] {
      CompiledGraph f = Session().with_threads(10 + 5 * t).compile(rows_of_softmax());
      f.set_param("w", weights());
      for (int i = 0; i < 20; ++i)
        if (!same_bits(run_rows(f, 700), want)) ++wrong[static_cast<std::size_t>(t)];
    });
  for (auto& c : callers) c.join();
  for (const int w : wrong) CHECK(w == 0);
}

TEST_CASE("audited runs: every step that has two chunks is shared out, with the bits of one thread") {
  CompiledGraph one = Session().with_threads(1).compile(rows_of_softmax());
  one.set_param("w", weights());
  for (const int threads : {1, 2, 3, 5})
    for (const bool finest : {false, true}) {
      CompileOptions options;
      options.finest_grain = finest;
      options.chunk_audit = std::make_shared<ChunkAudit>();
      CompiledGraph f = Session().with_threads(threads).compile_with(rows_of_softmax(), options);
      f.set_param("w", weights());
      for (const int n : {7, 600}) {
        CHECK(same_bits(run_rows(f, n), run_rows(one, n)));
        const AuditedRun run = options.chunk_audit->last_run();
        CHECK(run.threads == threads);
        REQUIRE(run.steps.size() == 2);
        for (const AuditedStep& s : run.steps) {
          CHECK_MESSAGE(s.num_threads() == std::min<std::int64_t>(threads, s.chunks), s.kernel, " ", s.node);
          if (finest) CHECK_MESSAGE(s.chunks >= 2, s.kernel, " ", s.node);
        }
        if (finest) CHECK(run.steps[1].chunks == n);  // one row each
      }
    }
}

TEST_CASE("the audit notices a step that one thread takes whole") {
  // Two audited threads, of which the second never arrives: the check fails and does not count as distributed work.
  ThreadPool pool(2);
  ChunkWatch watch;
  std::atomic<int> took{0};
  pool.parallel_for(
      2,
      [&](std::int64_t) {
        watch.enter(2, "step");
        took.fetch_add(1);
      },
      2);
  CHECK(took.load() == 2);
  CHECK(watch.threads() == 3);
  watch.reset();
  pool.parallel_for(
      2, [&](std::int64_t) { watch.enter(2, "step"); }, 1);
  CHECK(watch.threads() == 1);  // a run of one thread waits for no other, and the mask says so
}

}  // namespace
}  // namespace rlx
