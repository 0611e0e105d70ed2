// Timelines of devices with their own threads: separate tracks, next to the host's steps.
#include <doctest/doctest.h>

#include "rlx/base/trace.h"
#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/error_text.h"
#include "tests/support/timeline.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("traces: work given to a device stands on its own track, host segments on the thread's") {
  for (const AdversarialOptions& mode : adversarial_modes({.refuse = {OpKind::Softmax}})) {
    CAPTURE(mode_name(mode));
    const AdversarialScope adversary(mode);
    Graph g("far");
    const Expr x = g.input("x", Shape({4, 8}, DType::F32));
    Expr y;
    {
      const auto label = g.scope("here");
      y = g.softmax(g.exp(x), 1);
    }
    g.set_outputs({g.tanh(y)});
    const auto trace = std::make_shared<Trace>();
    Session session(AdversarialScope::kDevice);
    session.with_trace(trace);
    CompileOptions options;
    options.placement = {{"here", Device::Cpu}};
    CompiledGraph f = session.compile_with(std::move(g), options);
    for (int i = 0; i < 2; ++i) (void)f.run({{"x", std::vector<float>(32, 0.5f)}});
    const std::string json = trace->json();
    CHECK(contains(json, concat_text("device ", device_text(AdversarialScope::kDevice))));
    const std::vector<TimelineEvent> events = events_of(json);
    check_nesting(events);
    std::set<std::int64_t> processes;
    for (const TimelineEvent& e : events) processes.insert(e.track.first);
    CHECK(processes.size() == 2);
    CHECK(count_events(events, "run", "run") == 2);
    CHECK(count_events(events, "run", "submit") == 2);
    CHECK(count_events(events, "step", "softmax") >= 2);
  }
}
