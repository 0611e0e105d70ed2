// Timelines: what stands in them, that events of a thread nest, several threads, sessions, processes.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/ir/text.h"
#include "rlx/ir/trace.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/reports.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

struct TimelineEvent {
  std::string name, category, value, label;
  std::int64_t begin = 0, end = 0;  // ns
  std::pair<std::int64_t, std::int64_t> track;
};

// The events of a trace in order of their begin; every one is of the documented form.
std::vector<TimelineEvent> events_of(const std::string& json) {
  const JsonDocument document = JsonDocument::parse(json, "trace");
  CHECK(document.root().get_string("displayTimeUnit") == "ns");
  std::vector<TimelineEvent> out;
  std::set<std::pair<std::int64_t, std::int64_t>> named;
  for (JsonValue e : document.root().at("traceEvents").elements("events")) {
    const std::pair track{e.get_int("pid"), e.get_int("tid")};
    if (e.get_string("ph") == "M") {
      CHECK(!e.at("args").get_string("name").empty());
      if (e.get_string("name") == "thread_name") named.insert(track);
      continue;
    }
    REQUIRE(e.get_string("ph") == "X");
    TimelineEvent event;
    event.name = e.get_string("name");
    event.category = e.get_string("cat");
    const auto ns = [&](const char* key) { return std::int64_t(e.get_number(key) * 1000 + 0.5); };
    event.begin = ns("ts");
    event.end = event.begin + ns("dur");
    CHECK(event.begin >= 0);
    CHECK(event.end >= event.begin);
    event.track = track;
    CHECK(named.contains(track));
    if (const auto args = e.find("args")) {
      event.value = args->get_string("value", "");
      event.label = args->get_string("label", "");
    }
    out.push_back(event);
  }
  std::stable_sort(out.begin(), out.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return out;
}

// Events of one thread lie in each other or apart.
void check_nesting(const std::vector<TimelineEvent>& events) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const TimelineEvent*>> open;
  for (const TimelineEvent& e : events) {
    std::vector<const TimelineEvent*>& stack = open[e.track];
    while (!stack.empty() && stack.back()->end <= e.begin) stack.pop_back();
    if (!stack.empty())
      CHECK_MESSAGE(e.end <= stack.back()->end, e.name, " begins in ", stack.back()->name, " and ends behind it");
    stack.push_back(&e);
  }
}

std::size_t count(const std::vector<TimelineEvent>& events, const std::string& category, const std::string& name = {}) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [&](const TimelineEvent& e) {
    return e.category == category && (name.empty() || e.name == name);
  }));
}

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
    CHECK(count(events, "compile", "compile") == 1);
    CHECK(count(events, "compile", "fuse-dot-epilogue") == 1);
    CHECK(count(events, "compile", "plan memory") == 1);
    CHECK(count(events, "weights", "set") == 4);
    CHECK(count(events, "weights", "pack") == 4);
    CHECK(count(events, "bind", "bind") == 1);
    CHECK(count(events, "run", "run") == 3);
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
      CHECK(seen[s.node.text()] >= 3);  // once a run, or by several threads
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
  CHECK(count(events_of(trace->json()), "run", "run") == 1);
  CHECK(count(events_of(other->json()), "run", "run") == 2);
}

TEST_CASE("traces: bodies of loops have their steps, on the thread of the loop") {
  const Graph g = parse_text(R"(graph @loop {
  %0 = input() {name = "x"} : [6, 4] f32
  %1 = state() {name = "s", init = [4] f32 {0, 0, 0, 0}} : [4] f32
  %2:2 = scan(%1, %0) {carries = 1, length = [6], body = graph @inner {
      %0 = input() {name = "carry"} : [4] f32
      %1 = input() {name = "row"} : [4] f32
      %2 = add(%0, %1) : [4] f32
      return %2, %0
    }} : [4] f32, [6, 4] f32
  return %2#1
  set_state "s" %2
}
)");
  const auto trace = std::make_shared<Trace>();
  for (const char* backend : {"cpu", "reference"}) {
    Session session = Session::on_backend(backend);
    session.with_threads(2).with_trace(trace);
    CompiledGraph f = session.compile(g);
    (void)f.run({{"x", std::vector<float>(24, 1.0f)}});
  }
  const std::vector<TimelineEvent> events = events_of(trace->json());
  check_nesting(events);
  CHECK(count(events, "step", "scan") == 2);
  CHECK(count(events, "step", "add") >= 6);
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
    check_nesting(events_of(read_file(dir.file("run.json"))));
  }
  for (std::thread& t : threads) t.join();
  trace->flush();
  const std::vector<TimelineEvent> events = events_of(read_file(dir.file("run.json")));
  check_nesting(events);
  CHECK(count(events, "run", "run") == 200);
}

TEST_CASE("traces: a forked process writes its own file, and none when it records nothing") {
  const TempDir dir;
  const std::string path = dir.file("run.json");
  auto trace = std::make_shared<Trace>(path);
  Session session;
  session.with_threads(2).with_trace(trace);
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
      const std::vector<TimelineEvent> events = events_of(read_file(theirs));
      check_nesting(events);
      CHECK(count(events, "run", "run") == 2);
      CHECK(count(events, "compile") == 0);
    }
  }
  trace->flush();
  CHECK(count(events_of(read_file(path)), "run", "run") == 1);
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
  CHECK(count(events_of(read_file(path)), "run", "run") == 1);

  const std::string named = dir.file("env.json");
  const RuntimeOverrides on("RLX_TRACE", named);
  CompiledGraph f = Session().compile(layers(1, 4, 8));
  set_all(f);
  (void)f.run(input_of(f));
  REQUIRE(env_trace());
  CHECK(env_trace() == env_trace());
  env_trace()->flush();
  CHECK(count(events_of(read_file(named)), "run", "run") == 1);
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
