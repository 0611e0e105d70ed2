// Traces: their contents, nesting of the events of a thread, several threads, sessions, processes.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "rlx/base/trace.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/thread_times.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/reports.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/timeline.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Graph layers(int n, std::int64_t rows, std::int64_t width) {
  Graph g("layers");
  Expr x = g.input("x", Shape({rows, width}, DType::F32));
  for (int l = 0; l < n; ++l) {
    const auto scope = g.scope(concat_text("layer \"", l, "\" <b>"));
    x = x + g.gelu(g.matmul(x, g.param(concat_text("w", l), Shape({width, width}, DType::F32))));
    x = g.softmax(x, 1);
  }
  g.set_outputs({x});
  return g;
}

void set_all(CompiledGraph& f) {
  for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::zeros(p.shape));
}

std::vector<NamedInput> input_of(const CompiledGraph& f) {
  return {{"x", std::vector<float>(static_cast<std::size_t>(f.inputs()[0].shape.num_elements()), 1.0f)}};
}

}  // namespace

TEST_CASE("times of threads: kernels without what is inside of them, and waits") {
  Trace trace;
  const std::int64_t at = Trace::now_ns();
  const auto record = [&](std::uint32_t name, std::int64_t begin_us, std::int64_t end_us) {
    trace.record(name, at + begin_us * 1000, at + end_us * 1000);
  };
  const std::uint32_t run = trace.name("run", "run"), inner = trace.name("run", "submit");
  const std::uint32_t loop = trace.name("step", "scan", "\"kernel\":\"loop\"");
  const std::uint32_t add = trace.name("step", "add", "\"kernel\":\"tape\"");
  record(add, 20, 30), record(add, 40, 50), record(loop, 10, 60), record(inner, 5, 95), record(run, 0, 100);
  record(run, 200, 300);
  std::thread([&] {
    trace.name_thread("rlx worker 1");
    record(add, 30, 70);
  }).join();
  const std::vector<ThreadTimes> threads = thread_times(trace);
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].thread == "caller");
  CHECK(threads[1].thread == "rlx worker 1");
  CHECK(threads[0].busy_ms == doctest::Approx(0.05));
  CHECK(threads[0].waiting_ms == doctest::Approx(0.15));
  CHECK(threads[1].busy_ms == doctest::Approx(0.04));
  CHECK(threads[1].waiting_ms == doctest::Approx(0.16));
  REQUIRE(threads[0].kernels.size() == 2);
  CHECK(threads[0].kernels[0].op == "scan");
  CHECK(threads[0].kernels[0].ms == doctest::Approx(0.03));
  CHECK(threads[0].kernels[1].kernel == "tape");
  CHECK(threads[0].kernels[1].ms == doctest::Approx(0.02));
  CHECK(threads[0].kernels[1].pieces == 2);
  const std::string text = thread_times_text(threads, 2);
  CHECK(text.find("add  tape") != std::string::npos);
  CHECK(text.find("waiting") != std::string::npos);
  CHECK(text.find("0.075") != std::string::npos);  // a run of thread 0
  CHECK(thread_times_text({}, 1).empty());
}

TEST_CASE("times of threads in runs of several threads") {
  Session session;
  session.with_threads(2);
  CompiledGraph f = session.compile(layers(4, 64, 256));
  set_all(f);
  (void)f.run(input_of(f));
  Trace trace;
  for (int i = 0; i < 3; ++i) {
    const TraceScope recorded(&trace);
    const TraceSpan span("run", "run");
    (void)f.run(input_of(f));
  }
  const std::vector<ThreadTimes> threads = thread_times(trace);
  REQUIRE(!threads.empty());  // the second thread may come too late for any work
  for (const ThreadTimes& t : threads) {
    CAPTURE(t.thread);
    double sum = 0;
    for (const auto& k : t.kernels) {
      CHECK(!k.kernel.empty());
      sum += k.ms;
    }
    CHECK(sum == doctest::Approx(t.busy_ms));
    CHECK(t.busy_ms + t.waiting_ms == doctest::Approx(threads[0].busy_ms + threads[0].waiting_ms));
  }
}

TEST_CASE("traces: compile, weights, runs and every step, nested, on one thread and on several") {
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    const auto trace = std::make_shared<Trace>();
    Session session;
    session.with_threads(threads).with_trace(trace);
    CompiledGraph f = session.compile(layers(4, 64, 256));
    set_all(f);
    const std::vector<NamedInput> x = input_of(f);
    for (int i = 0; i < 3; ++i) (void)f.run(x);
    const std::vector<TimelineEvent> events = events_of(trace->json());
    check_nesting(events);
    CHECK(count_events(events, "compile", "compile") == 1);
    CHECK(count_events(events, "compile", "fuse-dot-epilogue") == 1);
    CHECK(count_events(events, "compile", "plan memory") == 1);
    CHECK(count_events(events, "weights", "set") == 4);
    CHECK(count_events(events, "weights", "pack") == 4);
    CHECK(count_events(events, "bind", "bind") == 1);
    CHECK(count_events(events, "run", "run") == 3);
    std::vector<TimelineEvent> runs;
    std::copy_if(events.begin(), events.end(), std::back_inserter(runs),
                 [](const TimelineEvent& e) { return e.name == "run"; });
    std::map<std::string, int> seen;
    for (const TimelineEvent& e : events) {
      if (e.category != "step") continue;
      ++seen[e.value];
      CHECK(std::any_of(runs.begin(), runs.end(),
                        [&](const TimelineEvent& r) { return r.begin <= e.begin && e.end <= r.end; }));
    }
    for (const LirStep& s : f.compile_result().lir.plan.schedule) {
      CAPTURE(s.node);
      CHECK(seen[s.node.text()] >= 3);  // once per run, or by several threads
    }
    CHECK(contains(trace->json(), "layer \\\"0\\\" \\u003cb\\u003e"));
  }
}

TEST_CASE("traces: nobody records without one, and a session's does not reach another's") {
  CHECK(Trace::current() == nullptr);
  const auto trace = std::make_shared<Trace>(), other = std::make_shared<Trace>();
  Session session;
  session.with_trace(trace);
  CompiledGraph f = session.compile(layers(1, 4, 8));
  set_all(f);
  CompileOptions options;
  options.trace = other;
  CompiledGraph theirs = session.compile_with(layers(1, 4, 8), options);
  set_all(theirs);
  CompiledGraph untraced = Session().compile(layers(1, 4, 8));
  set_all(untraced);
  const std::vector<NamedInput> x = input_of(f);
  (void)f.run(x), (void)theirs.run(x), (void)theirs.run(x), (void)untraced.run(x);
  CHECK(Trace::current() == nullptr);
  CHECK(count_events(events_of(trace->json()), "run", "run") == 1);
  CHECK(count_events(events_of(other->json()), "run", "run") == 2);
}

TEST_CASE("traces: bodies of loops that are not small have their steps, on the thread of the loop") {
  const Graph g = parse_text(R"(graph @loop {
  %0 = input() {name = "x"} : [6, 2048] f32
  %1 = input() {name = "s"} : [2048] f32
  %2:2 = scan(%1, %0) {carries = 1, length = [6], body = graph @inner {
      %0 = input() {name = "carry"} : [2048] f32
      %1 = input() {name = "row"} : [2048] f32
      %2 = add(%0, %1) : [2048] f32
      return %2, %0
    }} : [2048] f32, [6, 2048] f32
  return %2#1
}
)");
  const auto trace = std::make_shared<Trace>();
  for (const char* backend : {"cpu", "reference"}) {
    Session session = Session::on_backend(backend);
    session.with_threads(2).with_trace(trace);
    CompiledGraph f = session.compile(g);
    (void)f.run({{"x", std::vector<float>(6 * 2048, 1.0f)}, {"s", std::vector<float>(2048, 1.0f)}});
  }
  const std::vector<TimelineEvent> events = events_of(trace->json());
  check_nesting(events);
  CHECK(count_events(events, "step", "scan") == 2);
  CHECK(count_events(events, "step", "add") >= 6);
}

TEST_CASE("traces: several threads and programs at once, written while they run") {
  const TempDir dir;
  const auto trace = std::make_shared<Trace>(dir.file("run.json"));
  Session session;
  session.with_threads(2).with_trace(trace);
  CompiledGraph first = session.compile(layers(3, 32, 64));
  set_all(first);
  const std::vector<NamedInput> x = input_of(first);
  std::vector<CompiledGraph> programs;
  for (int i = 0; i < 4; ++i) programs.push_back(first.clone());
  std::atomic<int> running{4};
  std::vector<std::thread> threads;
  for (CompiledGraph& f : programs)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (void)f.run(x);
      --running;
    });
  while (running > 0) {
    trace->flush();
    check_nesting(events_of(test::read_file(dir.file("run.json"))));
  }
  for (std::thread& t : threads) t.join();
  trace->flush();
  const std::vector<TimelineEvent> events = events_of(test::read_file(dir.file("run.json")));
  check_nesting(events);
  CHECK(count_events(events, "run", "run") == 200);
}

TEST_CASE("traces: a forked process writes its own file, and none when it records nothing") {
  const TempDir dir;
  const std::string path = dir.file("run.json");
  auto trace = std::make_shared<Trace>(path);
  Session session;  // one thread: sanitizers and emulators start none in a child
  session.with_threads(1).with_trace(trace);
  CompiledGraph f = session.compile(layers(1, 32, 64));
  set_all(f);
  const std::vector<NamedInput> x = input_of(f);
  (void)f.run(x);
  for (const bool runs : {true, false}) {
    CAPTURE(runs);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int status = 1;
      try {
        if (runs) (void)f.run(x), (void)f.run(x);
        trace->flush();
        status = 0;
      } catch (...) {
      }
      _exit(status);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    const std::string theirs = concat_text(path, ".", child);
    CHECK((access(theirs.c_str(), F_OK) == 0) == runs);
    if (runs) {
      const std::vector<TimelineEvent> events = events_of(test::read_file(theirs));
      check_nesting(events);
      CHECK(count_events(events, "run", "run") == 2);
      CHECK(count_events(events, "compile") == 0);
    }
  }
  trace->flush();
  CHECK(count_events(events_of(test::read_file(path)), "run", "run") == 1);
}

TEST_CASE("traces: written when the last holder lets go, and by the name of RLX_TRACE") {
  const TempDir dir;
  const std::string path = dir.file("run.json");
  {
    Session session;
    session.with_trace(std::make_shared<Trace>(path));
    CompiledGraph f = session.compile(layers(1, 4, 8));
    set_all(f);
    (void)f.run(input_of(f));
  }
  CHECK(count_events(events_of(test::read_file(path)), "run", "run") == 1);

  const std::string named = dir.file("env.json");
  const RuntimeOverrides on("RLX_TRACE", named);
  CompiledGraph f = Session().compile(layers(1, 4, 8));
  set_all(f);
  (void)f.run(input_of(f));
  REQUIRE(env_trace());
  CHECK(env_trace() == env_trace());
  env_trace()->flush();
  CHECK(count_events(events_of(test::read_file(named)), "run", "run") == 1);
}

TEST_CASE("traces: many events take several blocks, and all of them are written") {
  Trace trace;
  const std::uint32_t name = trace.name("test", "tick");
  CHECK(trace.name("test", "tick") == name);
  CHECK(trace.name("test", "tock") != name);
  const std::int64_t start = Trace::now_ns();
  for (int i = 0; i < 10000; ++i) trace.record(name, start + 2 * i, start + 2 * i + 1);
  const std::uint32_t gpu = trace.track("gpu:0");
  CHECK(trace.track("gpu:0") == gpu);
  trace.record(name, start, start + 5, gpu);
  trace.name_thread("a thread </script>");
  const std::vector<TimelineEvent> events = events_of(trace.json());
  CHECK(events.size() == 10001);
  check_nesting(events);
  CHECK(contains(trace.json(), "device gpu:0"));
}
