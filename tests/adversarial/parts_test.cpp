// One program over several opaque devices. Nodes that the adversarial test device refuses in opaque mode, or that are
// placed on its second ordinal, become graphs of their own. Loops that it refuses are host-controlled.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/device_ext.h"
#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/control_graphs.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"
#include "tests/support/segment_programs.h"
#include "tests/support/value_symbols.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;
using test::f32;

test::AdversarialOptions whole_values(OpSet refused = {}) {
  test::AdversarialOptions options;
  options.opaque = true;
  options.refuse = refused;
  return options;
}

OpSet control_flow_and(OpKind kind) {
  OpSet kinds = test::AdversarialOptions::control_flow();
  kinds.add(kind);
  return kinds;
}

int parts_on(const LirModule& lir, std::uint32_t device) {
  return static_cast<int>(std::count_if(lir.plan.parts.begin(), lir.plan.parts.end(),
                                        [&](const LirPart& p) { return p.device == device; }));
}

}  // namespace

TEST_CASE("parts: what a device of whole values refuses runs on the cpu, and the report says so") {
  const AdversarialScope adversary(whole_values({OpKind::Sort}));
  const Graph g = test::sorting();
  CHECK(test::check_on_adversarial(g, test::drawn(g)) == "host:sort ");
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  const LirModule& lir = f.compile_result().lir;
  CHECK(lir.plan.opaque);
  CHECK(lir.others == std::vector<DeviceId>{Device::Cpu});
  // The parts: before the sorts, the sorts together, after them.
  CHECK(lir.plan.parts.size() == 3);
  CHECK(parts_on(lir, 1) == 1);
  const std::string text = inspect_lir(lir);
  CHECK(contains(text, "the device plans its memory, 3 parts\n  part 0 on device 0: "));
  CHECK(contains(text, "  part 1 on device 1: "));
  CHECK(contains(text.substr(text.find("part 1")), " sort"));
  CHECK_FALSE(contains(text, "offset"));  // no offsets of values that the device allocates
  CHECK_FALSE(supports_graph(AdversarialScope::kDevice, g));
  CompileOptions strict;
  strict.kernel_dispatch.emplace().host_fallback = false;
  CHECK(contains(error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), strict); }),
                 "the test asks it to refuse"));
  const NamedTensors values = test::drawn(g);
  f.set_param("w", values.at("w"));
  bool sorted = false, whole = false;
  for (const NodeTime& t : f.profile(std::vector<TensorView>{values.at("x").view()})) {
    sorted = sorted || (t.op == "sort" && contains(t.kernel, "("));
    whole = whole || contains(t.kernel, ", with its whole partition");
  }
  CHECK(sorted);
  CHECK(whole);
}

TEST_CASE("parts: the report counts the nodes that run, with those that decompositions within partitions made") {
  test::AdversarialOptions mode = whole_values({OpKind::Sort});
  mode.refuse_on_inputs = {OpKind::Softmax};
  const AdversarialScope adversary(mode);
  Graph g("cut");
  const Expr x = g.input("x", f32({4, 6}));
  // The device claims softmax on the whole graph. Its partition begins after the sort, so there softmax reads an input.
  g.set_outputs({g.softmax(g.sort(g.tanh(x), 1), 1)});
  const CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  const CompileResult& result = f.compile_result();
  std::map<std::string, std::size_t> runs, reported;
  for (const Node& n : result.lir.graph.nodes())
    if (!needs_no_kernel(n)) ++runs[std::string(op_def(n.op).name)];
  for (const KindDispatch& k : result.dispatch.summaries)
    if (k.path == DispatchPath::Native || k.path == DispatchPath::HostFallback) reported[k.name] += k.node_count;
  CHECK(reported == runs);
  CHECK_FALSE(runs.contains("softmax"));
  CHECK(runs.size() > 2);  // beside activations and the sort, what softmax became
  CHECK(contains(result.dispatch.text(), "  softmax: 1 rewritten: the test asks it to refuse what reads an input\n"));
}

TEST_CASE("parts: a graph that the device takes whole has none") {
  const AdversarialScope adversary(whole_values({OpKind::Sort}));
  Graph g("plain");
  const Expr x = g.input("x", f32({4, 4}));
  g.set_outputs({g.tanh(x) + x});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  CHECK(f.compile_result().lir.others.empty());
  CHECK(f.compile_result().lir.plan.parts.empty());
}

TEST_CASE("parts: the host in the body of a loop that the host drives over whole values") {
  const AdversarialScope adversary(whole_values(control_flow_and(OpKind::Sort)));
  const Graph g = test::sorting_loop();
  for (int trips : {0, 1, 5, 8}) {
    NamedTensors values = test::drawn(g);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(test::check_on_adversarial(g, values) == "host:sort while ");
  }
}

TEST_CASE("parts: every sample of a branch, a loop or a call, host-controlled over whole values") {
  const AdversarialScope adversary(whole_values(test::AdversarialOptions::control_flow()));
  test::for_each_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (def.bodies != BodyKind::Programs) return;
    INFO(def.name, ", variant '", sample.name, "'");
    (void)test::check_sample(Session(AdversarialScope::kDevice),
                             sample);  // the adversarial test device throws if it gets a loop
  });
}

TEST_CASE("parts: loops in branches in loops, carries that change places, rows of any size") {
  const AdversarialScope adversary(whole_values(test::AdversarialOptions::control_flow()));
  const Graph nested = test::nested();
  for (int trips : {0, 1, 4, 7, 9}) {
    NamedTensors values = test::drawn(nested);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(test::check_on_adversarial(nested, values) == "if while scan ");
  }
  const Graph places = test::changing_places();
  CHECK(test::check_on_adversarial(places, test::drawn(places)) == "scan ");
  for (bool reverse : {false, true}) {
    const Graph cell = test::cell(7, 3, 5, reverse, DType::BF16);
    CHECK(test::check_on_adversarial(cell, test::drawn(cell)) == "scan ");
  }
}

TEST_CASE("parts: a given plan is checked") {
  const AdversarialScope adversary(whole_values(control_flow_and(OpKind::Sort)));
  const Session session(AdversarialScope::kDevice);
  for (const Graph& g : {test::sorting_loop(), test::sorting()}) {
    const LirModule lir = session.compile(Graph(g)).compile_result().lir;
    CompiledGraph f = session.compile_module(GraphModule(LirModule(lir)));
    test::check_runs(f, g, test::drawn(g));
    const auto told = [&](const auto& change) {
      LirModule bad = lir;
      change(bad.plan.parts);
      return error_text([&] { session.compile_module(GraphModule(std::move(bad))); });
    };
    const bool several = lir.plan.parts.size() > 1;
    if (several)
      CHECK(contains(told([](auto& parts) { std::reverse(parts.begin(), parts.end()); }),
                     "which no earlier partition computes"));
    CHECK(contains(told([](auto& parts) { parts.pop_back(); }),
                   several ? "no partition computes" : "cannot run its whole graph"));
    CHECK(contains(told([](auto& parts) { parts[0].device = 9; }), "names device 9, but has only 2 devices"));
    CHECK(contains(told([](auto& parts) { parts[0].nodes[0] = NodeId{9999}; }), "belongs to another graph"));
  }
}

TEST_CASE("parts: a state is written over where its last reader makes the new value") {
  const AdversarialScope adversary(whole_values({OpKind::Sort}));
  Graph g("cache");
  const Expr x = g.input("x", f32({1, 3})), at = g.input("at", Shape({2}, DType::I32));
  const Expr cache = g.state("cache", Tensor::zeros(f32({8, 3})));
  const Expr next = g.dynamic_update_slice(cache, g.sort(x, 1), at);
  g.set_state("cache", next);
  g.set_outputs({g.sort(next, 0)});
  CompileOptions options;
  options.must_alias = true;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  test::check_runs(f, g,
                   {{"x", test::draw(f32({1, 3}), Fill::Unit, 1, 3)}, {"at", Tensor::zeros(Shape({2}, DType::I32))}});
  CHECK(adversary->counts().taken > 0);
  // A state that is read after its new value is computed is not updated in place, and must_alias reports why.
  Graph late("late");
  const Expr s = late.state("s", Tensor::zeros(f32({4}))), y = late.input("x", f32({4}));
  late.set_state("s", s + y);
  late.set_outputs({late.sort(s + y, 0) + s});
  CHECK(contains(error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(late), options); }),
                 "is not the last one that reads the old value"));
  CompiledGraph copied = Session(AdversarialScope::kDevice).compile(Graph(late));
  test::check_runs(copied, late, test::drawn(late));
}

TEST_CASE("parts: states that change places, that keep their value when a run fails, that are outputs") {
  const AdversarialScope adversary(whole_values({OpKind::Sort}));
  Graph g("places");
  const Expr x = g.input("x", f32({4}));
  const Expr a = g.state("a", Tensor::full(f32({4}), 1)), b = g.state("b", Tensor::full(f32({4}), 2));
  const Expr c = g.state("c", Tensor::zeros(f32({4}))), kept = g.state("kept", Tensor::full(f32({4}), 7));
  g.set_state("a", b);
  g.set_state("b", a);
  g.set_state("c", g.sort(c + x, 0));
  g.set_outputs({a + b, c, g.sort(x + kept, 0), x});
  CompileOptions options;
  options.on_failure["c"] = OnFailure::Keep;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  test::check_runs(f, g, test::drawn(g));
  const Tensor before = f.read_state("c");
  adversary->fail_step(0, 1, "a kernel failed");
  CHECK(contains(error_text([&] { f.run_typed(test::drawn(g)); }), "a kernel failed"));
  CHECK(f.read_state("c").identical(before));
  f.reset();
  CHECK(f.read_state("kept").to_f32() == std::vector<float>(4, 7));
  test::check_runs(f, g, test::drawn(g));
}

TEST_CASE("parts: a program over both ordinals") {
  const AdversarialScope adversary(whole_values());
  const Graph g = test::layers();
  CompileOptions options;
  options.placement = {{"layer1", {AdversarialScope::kDevice, 1}}, {"layer2", {AdversarialScope::kDevice, 1}}};
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  test::check_runs(f, g, test::drawn(g));
  const LirModule& lir = f.compile_result().lir;
  CHECK(lir.others == std::vector<DeviceId>{{AdversarialScope::kDevice, 1}});
  CHECK(parts_on(lir, 1) == 1);
  // Weights of the second device are uploaded again when they change.
  NamedTensors values = test::drawn(g);
  values.insert_or_assign("w2", test::draw(f32({32, 32}), Fill::Unit, 1, 99));
  test::check_runs(f, g, values);
  for (const auto& device : opened_devices(AdversarialScope::kDevice)) CHECK(device->memory().used() > 0);
  adversary->fail_step(1, 0, "a kernel of the second device failed");
  CHECK(contains(error_text([&] { f.run_typed({{"x", values.at("x")}}); }), "a kernel of the second device failed"));
  test::check_runs(f, g, test::drawn(g));
}

TEST_CASE("parts: a state is on the ordinal that updates it") {
  const AdversarialScope adversary(whole_values());
  Graph g("cached");
  const Expr x = g.input("x", f32({1, 16})), at = g.input("at", Shape({2}, DType::I32));
  const auto scope = g.scope("there");
  const Expr cache = g.dynamic_update_slice(g.state("cache", Tensor::zeros(f32({256, 16}))), x, at);
  g.set_state("cache", cache);
  g.set_outputs({g.matmul(x, g.transpose(cache, {1, 0}))});
  CompileOptions options;
  options.placement = {{"there", {AdversarialScope::kDevice, 1}}};
  options.must_alias = true;
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  const NamedTensors values = test::drawn(g);
  test::check_runs(f, g, values);
  const auto before = adversary->counts();
  f.run_typed(values);
  // Both inputs are uploaded to the first device, downloaded and uploaded to the second. The matmul's result comes back
  // and goes to the host.
  CHECK(adversary->counts().uploads - before.uploads == 5);
  CHECK(adversary->counts().downloads - before.downloads == 4);
  CHECK(adversary->counts().taken > before.taken);
}

TEST_CASE("parts: values of symbols, also those that the run computes, with the host in between") {
  for (OpSet refused :
       {OpSet{OpKind::Reverse, OpKind::Sort, OpKind::Reduce}, test::AdversarialOptions::control_flow()}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(seed);
      const AdversarialScope adversary(whole_values(refused));
      const test::ValueProgram program = test::random_value_program(seed);
      check_value_program(program, Session(AdversarialScope::kDevice).compile(Graph(program.graph)), seed, 5);
    }
  }
}

TEST_CASE("parts: random programs split at random over both ordinals and the cpu") {
  const AdversarialScope adversary(whole_values());
  const std::vector<std::uint64_t> seeds = test::seeds(60);
  int split = 0;
  for (const std::uint64_t seed : seeds) {
    const test::RandomProgram p = test::labelled_program(seed);
    CompileOptions options;
    test::place_label(p.graph, "a", {AdversarialScope::kDevice, 1}, options);
    if (seed % 3 == 0) test::place_label(p.graph, "b", Device::Cpu, options);
    split += options.placement.empty() ? 0 : 1;
    INFO("seed ", seed, "\n", print_text(p.graph));
    test::check_program(p, Session(AdversarialScope::kDevice), options);
  }
  CHECK(split > (seeds.size() == 60 ? 60 / 4 : 0));
}

}  // namespace rlx
