// One program over several devices. Nodes that the adversarial test device refuses run on the cpu, in loops too. Nodes
// placed on its second ordinal run there, with copies between.
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/compiler/memory_plan.h"
#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/device_ext.h"
#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"
#include "tests/support/segment_programs.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::contains;
using test::error_text;
using test::f32;

test::AdversarialOptions refusing(OpSet kinds) {
  test::AdversarialOptions options;
  options.refuse = kinds;
  return options;
}

}  // namespace

TEST_CASE("segments: what the device refuses runs on the cpu, and the report says so") {
  const AdversarialScope adversary(refusing({OpKind::Sort}));
  const Graph g = test::sorting();
  CHECK(test::check_on_adversarial(g, test::drawn(g)) == "host:sort ");
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  const LirModule& lir = f.compile_result().lir;
  CHECK(lir.others == std::vector<DeviceId>{Device::Cpu});
  CHECK(contains(f.compile_result().dispatch.text(), "sort: 2 host-fallback: the test asks it to refuse"));
  CHECK(lir.plan.arena_devices.size() > 1);
  // The plan's text shows the device of each node and the host sync points.
  CHECK(inspect_devices(lir) == "devices: 0 is the program's own, 1 is cpu\n");
  const std::string plan = inspect_buffer_plan(lir);
  CHECK(contains(plan, "waits for  device\n"));
  CHECK(contains(plan, " goes to another device: the host waits unless a stream reaches both\n"));
  // Queries ignore host fallback.
  CHECK_FALSE(supports_graph(AdversarialScope::kDevice, g));
  const auto first = first_unsupported_op_with_options(AdversarialScope::kDevice, g, {});
  REQUIRE(first);
  CHECK(first->second == OpKind::Sort);
  CompileOptions strict;
  strict.kernel_dispatch.emplace().host_fallback = false;
  CHECK(contains(error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), strict); }),
                 "the test asks it to refuse"));
  bool sorted = false, copied = false;
  const NamedTensors values = test::drawn(g);
  f.set_param("w", values.at("w"));
  for (const NodeTime& t : f.profile(std::vector<TensorView>{values.at("x").view()})) {
    sorted = sorted || (t.op == "sort" && contains(t.kernel, "("));
    copied = copied || t.kernel == "copy between devices";
  }
  CHECK(sorted);
  CHECK(copied);
}

TEST_CASE("segments: a program without refused nodes has no host in it") {
  const AdversarialScope adversary(refusing({OpKind::Sort}));
  Graph g("plain");
  const Expr x = g.input("x", f32({4, 4}));
  g.set_outputs({g.tanh(x) + x});
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  CHECK(f.compile_result().lir.others.empty());
  CHECK(f.compile_result().lir.plan.node_devices.empty());
}

namespace {

OpSet sort_and_control_flow() {
  OpSet kinds = test::AdversarialOptions::control_flow();
  kinds.add(OpKind::Sort);
  return kinds;
}

}  // namespace

TEST_CASE("segments: the host in the body of a loop that the host drives") {
  const AdversarialScope adversary(refusing(sort_and_control_flow()));
  const Graph g = test::sorting_loop();
  for (int trips : {0, 1, 5, 8}) {
    NamedTensors values = test::drawn(g);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(test::check_on_adversarial(g, values) == "host:sort while ");
  }
}

TEST_CASE("segments: a planned program over several devices is taken as it is, and checked") {
  const AdversarialScope adversary(refusing(sort_and_control_flow()));
  const Session session(AdversarialScope::kDevice);
  const Graph g = test::sorting_loop();
  const LirModule lir = session.compile(Graph(g)).compile_result().lir;
  CompiledGraph f = session.compile_module(GraphModule(LirModule(lir)));
  test::check_runs(f, g, test::drawn(g));
  REQUIRE(check_plan(lir.graph, lir.plan).empty());
  const auto problems = [&](const auto& change) {
    LirModule bad = lir;
    change(bad.plan);
    std::string text;
    for (const std::string& p : check_plan(bad.graph, bad.plan)) text += p + "\n";
    CHECK(!text.empty());
    CHECK(!error_text([&] { session.compile_module(GraphModule(std::move(bad))); }).empty());
    return text;
  };
  REQUIRE(lir.plan.bodies.size() == 1);
  CHECK(contains(problems([](LirBufferPlan& p) { p.bodies[0].ranges[0].bytes = 0; }),
                 "needs more memory than the range"));
  CHECK(
      contains(problems([](LirBufferPlan& p) { p.bodies[0].ranges[0].offset = p.arenas[0]; }), "outside their arena"));
  CHECK(contains(problems([](LirBufferPlan& p) { p.bodies[0].ranges[1] = p.bodies[0].ranges[0]; }),
                 "have memory ranges that overlap"));
  CHECK(contains(problems([](LirBufferPlan& p) {
                   auto& body = p.bodies[0].modules.back().plan;
                   std::swap(body.arena_devices.front(), body.arena_devices.back());
                 }),
                 "different devices"));
  CHECK(contains(problems([](LirBufferPlan& p) {
                   auto& body = p.bodies[0].modules.back().plan;
                   for (const LirStep& step : body.schedule) body.node_devices[step.node.index] = 0;
                 }),
                 "from a device other than"));
  LirModule bad = lir;
  bad.others.clear();
  CHECK(contains(error_text([&] { session.compile_module(GraphModule(std::move(bad))); }),
                 "names device 1, but has only 1 devices"));
}

TEST_CASE("segments: every sample with the kinds that the device refuses, alone") {
  OpSet kinds{OpKind::Sort,      OpKind::Scatter, OpKind::Gather,    OpKind::Cumulative,
              OpKind::ArgReduce, OpKind::Reduce,  OpKind::DotGeneral};
  const AdversarialScope adversary(refusing(kinds));
  for (const OpDef* def : test::ops_under_test()) {
    if (!kinds.has(def->kind)) continue;
    int hosted = 0;
    for (const testing::Sample& sample : test::samples_of(*def)) {
      INFO(def->name, ", variant '", sample.name, "'");
      CompiledGraph f = test::check_sample(Session(AdversarialScope::kDevice), sample);
      for (const KindDispatch& k : f.compile_result().dispatch.summaries) {
        hosted += k.kind == def->kind && k.path == DispatchPath::HostFallback;
        if (k.path == DispatchPath::Native) CHECK_FALSE(kinds.has(k.kind));
      }
    }
    INFO(def->name);
    CHECK(hosted > 0);  // some samples are folded or decomposed, never all
  }
}

TEST_CASE("segments: random programs with kinds refused at random") {
  for (const std::uint64_t seed : test::seeds(40)) {
    OpSet kinds;
    test::Dice dice(seed);
    for (const OpDef* def : all_op_defs())
      if (!def->is_leaf() && def->level != Level::Lir && dice.chance(25)) kinds.add(def->kind);
    const test::RandomProgram p = test::random_program(seed);
    for (const test::AdversarialOptions& mode : test::adversarial_modes(refusing(kinds))) {
      const AdversarialScope adversary(mode);
      INFO(test::mode_name(mode), ", seed ", seed, "\n", print_text(p.graph));
      test::check_program(p, Session(AdversarialScope::kDevice), {});
    }
  }
}

TEST_CASE("placement: a program over both ordinals") {
  const AdversarialScope adversary;
  const Graph g = test::layers();
  CompileOptions options;
  options.placement = {{"layer1", {AdversarialScope::kDevice, 1}}, {"layer2", {AdversarialScope::kDevice, 1}}};
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  test::check_runs(f, g, test::drawn(g));
  const LirModule& lir = f.compile_result().lir;
  REQUIRE(!lir.others.empty());
  CHECK(lir.others[0] == DeviceId(AdversarialScope::kDevice, 1));
  CHECK(std::count(lir.plan.node_devices.begin(), lir.plan.node_devices.end(), 1U) >= 3);
  // Weights of the second device were uploaded there, and are uploaded again when they change.
  NamedTensors values = test::drawn(g);
  values.insert_or_assign("w2", test::draw(f32({32, 32}), Fill::Unit, 1, 99));
  test::check_runs(f, g, values);
  // The program has memory on both devices.
  for (const auto& device : opened_devices(AdversarialScope::kDevice)) CHECK(device->memory().used() > 0);
}

TEST_CASE("placement: what it refuses") {
  const AdversarialScope adversary;
  Graph g("small");
  const Expr x = g.input("x", f32({4}));
  {
    const auto scope = g.scope("stage1");
    g.set_outputs({g.tanh(x)});
  }
  const auto told = [&](Placement p) {
    CompileOptions options;
    options.placement = {std::move(p)};
    return error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), options); });
  };
  CHECK(contains(told({"stage", {AdversarialScope::kDevice, 1}}), "has a label that begins with 'stage'"));
  CHECK(contains(told({"stage1", {Device::Cuda, 0}}), "runs only on devices of that kind and on cpu"));
  CHECK(contains(told({"stage1", {AdversarialScope::kDevice, -1}}), "is placed on device number -1"));
  CHECK(contains(told({"stage1", {AdversarialScope::kDevice, 7}}), "7"));
  CHECK(told({"stage1", Device::Cpu}).empty());
  CompileOptions both;
  both.placement = {{"stage1", {AdversarialScope::kDevice, 1}}, {"stage1", Device::Cpu}};
  const std::string twice = error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), both); });
  CHECK(contains(
      twice, concat_text("label 'stage1' is placed on ", device_text({AdversarialScope::kDevice, 1}), " and on cpu")));
  both.placement[1] = both.placement[0];  // a repeated placement has no effect
  CHECK(error_text([&] { Session(AdversarialScope::kDevice).compile_with(Graph(g), both); }).empty());
}

TEST_CASE("placement: copies between devices that reach each other do not pass the host") {
  for (bool peers : {false, true}) {
    CAPTURE(peers);
    test::AdversarialOptions adversarial_options;
    adversarial_options.peers = peers;
    const AdversarialScope adversary(adversarial_options);
    Graph g("across");
    const Expr x = g.input("x", f32({33}));
    Expr y = g.sin(x);
    {
      const auto scope = g.scope("there");
      y = g.reverse(y, {0}) + g.param("w", f32({33}));
    }
    g.set_outputs({g.tanh(y)});
    CompileOptions options;
    options.placement = {{"there", {AdversarialScope::kDevice, 1}}};
    CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    test::check_runs(f, g, test::drawn(g));
    const auto before = adversary->counts();
    f.run_typed({{"x", test::drawn(g).at("x")}});
    const auto after = adversary->counts();
    // The input, the output, and one value in each direction; the weight is there already.
    CHECK(after.uploads - before.uploads == (peers ? 1 : 3));
    CHECK(after.downloads - before.downloads == (peers ? 1 : 3));
    CHECK(after.peer_copies - before.peer_copies == (peers ? 2 : 0));
    // A failure on one device fails the dependent work of the other one.
    adversary->fail_step(1, 0, "a kernel of the second device failed");
    CHECK(contains(error_text([&] {
                     f.run_typed({{"x", test::drawn(g).at("x")}});
                   }),
                   "a kernel of the second device failed"));
    test::check_runs(f, g, test::drawn(g));
  }
}

TEST_CASE("placement: random programs split at random over both ordinals and the cpu") {
  const std::vector<std::uint64_t> seeds = test::seeds(80);
  int split = 0;
  for (const std::uint64_t seed : seeds) {
    test::AdversarialOptions adversarial_options;
    adversarial_options.peers = seed % 2 == 0;
    const AdversarialScope adversary(adversarial_options);
    const test::RandomProgram p = test::labelled_program(seed);
    CompileOptions options;
    test::place_label(p.graph, "a", {AdversarialScope::kDevice, 1}, options);
    if (seed % 3 == 0) test::place_label(p.graph, "b", Device::Cpu, options);
    split += options.placement.empty() ? 0 : 1;
    INFO("seed ", seed, "\n", print_text(p.graph));
    test::check_program(p, Session(AdversarialScope::kDevice), options);
  }
  CHECK(split > (seeds.size() == 80 ? 80 / 4 : 0));
}

namespace {

// Row `at` of a cache becomes x, and y is a matmul of x with the whole cache.
Graph cached() {
  Graph g("cached");
  const Expr x = g.input("x", f32({1, 16})), at = g.input("at", Shape({2}, DType::I32));
  const auto scope = g.scope("there");
  const Expr cache = g.dynamic_update_slice(g.state("cache", Tensor::zeros(f32({256, 16}))), x, at);
  g.set_state("cache", cache);
  g.set_outputs({g.matmul(x, g.transpose(cache, {1, 0}))});
  return g;
}

std::size_t state_bytes(int ordinal) {
  for (const auto& device : opened_devices(AdversarialScope::kDevice))
    if (device->id().ordinal == ordinal) return device->memory().in_use[static_cast<std::size_t>(BufferUse::States)];
  return 0;
}

CompileOptions placed_there() {
  CompileOptions options;
  options.placement = {{"there", {AdversarialScope::kDevice, 1}}};
  return options;
}

}  // namespace

TEST_CASE("placement: a state is where it is updated, so that a step brings no more than its token there") {
  for (bool peers : {false, true}) {
    CAPTURE(peers);
    test::AdversarialOptions adversarial_options;
    adversarial_options.peers = peers;
    const AdversarialScope adversary(adversarial_options);
    const Graph g = cached();
    CompileOptions options = placed_there();
    options.must_alias = true;
    CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
    NamedTensors values = test::drawn(g);
    test::check_runs(f, g, values);
    CHECK(state_bytes(0) == 0);
    CHECK(state_bytes(1) == std::size_t{256} * 16 * 4);
    const auto before = adversary->counts();
    f.run_typed(values);
    const auto after = adversary->counts();
    // Both inputs are uploaded to the first device and copied to the second. The matmul's result comes back and goes to
    // the host.
    CHECK(after.uploads - before.uploads == (peers ? 2 : 5));
    CHECK(after.downloads - before.downloads == (peers ? 1 : 4));
    CHECK(after.peer_copies - before.peer_copies == (peers ? 3 : 0));
    // Its rows are read and written there. A clone has its own state. A program on another device that shares the state
    // moves it.
    f.write_state("cache", Tensor::full(f32({2, 16}), 3), Rows{7, 2});
    CHECK(f.read_state("cache", Rows{8, 1}).to_f32() == std::vector<float>(16, 3));
    CompiledGraph copy = f.clone();
    f.reset();
    CHECK(f.read_state("cache", Rows{8, 1}).to_f32() == std::vector<float>(16, 0));
    CHECK(copy.read_state("cache", Rows{8, 1}).to_f32() == std::vector<float>(16, 3));
    CompiledGraph home = Session(AdversarialScope::kDevice).compile(Graph(g));
    CHECK(home.share_state_from(copy) == 1);
    for (CompiledGraph* runner : {&home, &copy, &home}) {
      values.insert_or_assign("cache", copy.read_state("cache"));
      const test::BoundedResult exact = test::evaluate_bounded(g, values);
      test::expect_within_bound(runner->run_typed({{"x", values.at("x")}, {"at", values.at("at")}}), exact);
      CHECK(copy.read_state("cache").identical(home.read_state("cache")));
    }
  }
}

TEST_CASE("placement: states of the second device that are copied, or change places") {
  const AdversarialScope adversary;
  Graph g("places");
  const Expr x = g.input("x", f32({5, 3}));
  const Expr a = g.state("a", Tensor::full(f32({5, 3}), 1)), b = g.state("b", Tensor::full(f32({5, 3}), 2));
  const Expr c = g.state("c", Tensor::full(f32({5, 3}), 3)), w = g.param("w", f32({5, 3}));
  const Expr last = g.state("last", Tensor::zeros(f32({5, 3})));
  {
    const auto scope = g.scope("there");
    g.set_state("a", g.stop_gradient(b));
    g.set_state("b", g.stop_gradient(a));
    const Expr next = c * x;
    g.set_state("c", next);
    g.set_state("last", w);
    g.set_outputs({next + c, g.sin(last + a + b)});
  }
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), placed_there());
  test::check_runs(f, g, test::drawn(g));
  const LirModule& lir = f.compile_result().lir;
  CHECK(!lir.plan.remote_state_copies.empty());
  LirModule bad = lir;
  std::swap(bad.plan.remote_state_copies, bad.plan.state_copies);
  CHECK(contains(error_text([&] {
                   CompileOptions options = placed_there();
                   (void)Session(AdversarialScope::kDevice).compile_module(GraphModule(std::move(bad)), options);
                 }),
                 "is copied by a device that does not own it"));
}

TEST_CASE("placement: a failure on the second device fails the run, and a new one works") {
  const AdversarialScope adversary;
  Graph g("late");
  const Expr x = g.input("x", f32({16}));
  Expr y = x;
  {
    const auto scope = g.scope("there");
    y = g.sin(g.reverse(x, {0}));
  }
  g.set_outputs({y + x});
  CompileOptions options;
  options.placement = {{"there", {AdversarialScope::kDevice, 1}}};
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  test::check_runs(f, g, test::drawn(g));
  adversary->fail_step(1, 0, "a kernel of the second device failed");
  CHECK(contains(error_text([&] { f.run_typed(test::drawn(g)); }), "a kernel of the second device failed"));
  test::check_runs(f, g, test::drawn(g));
}

TEST_CASE("segments: a label on the program's own device is no other device") {
  const AdversarialScope adversary;
  Graph g("own");
  Expr x = g.input("x", f32({4, 4}));
  const Expr first = x;
  for (const char* label : {"a", "b", "c"}) {
    const auto scope = g.scope(label);
    x = g.tanh(x) + x;
  }
  g.set_outputs({x + first});
  CompileOptions options;
  options.placement = {{"a", {AdversarialScope::kDevice, 0}},
                       {"b", {AdversarialScope::kDevice, 1}},
                       {"c", {AdversarialScope::kDevice, 0}}};
  CHECK(test::check_on_adversarial(g, test::drawn(g), options).empty());
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), options);
  const LirModule& lir = f.compile_result().lir;
  REQUIRE(!lir.others.empty());
  CHECK(lir.others.front() == DeviceId{AdversarialScope::kDevice, 1});
  CHECK(std::count(lir.others.begin(), lir.others.end(), DeviceId{AdversarialScope::kDevice, 0}) == 0);
}

TEST_CASE("segments: a view of a weight that only a copy reads") {
  const AdversarialScope adversary;
  Graph g("view");
  const Expr x = g.input("x", f32({4, 3})), w = g.param("w", f32({3, 4}), ParamMode::Mutable);
  Expr view;
  {
    const auto label = g.scope("c");
    view = g.reshape(w, {4, 3});
  }
  g.set_outputs({g.tanh(x) + view});
  CompileOptions options;
  options.placement = {{"c", {AdversarialScope::kDevice, 1}}};
  CHECK(test::check_on_adversarial(g, test::drawn(g), options).empty());
}

TEST_CASE("segments: the last step is another device's, the copies behind it are the first one's") {
  for (const DeviceId there : {DeviceId{AdversarialScope::kDevice, 1}, DeviceId(Device::Cpu)}) {
    CAPTURE(device_text(there));
    const AdversarialScope adversary;
    Graph g("behind");
    const Expr x = g.input("x", f32({64, 64})), s = g.state("s", Tensor::zeros(f32({64, 64})));
    {
      const auto label = g.scope("c");
      g.set_state("s", g.tanh(s + x));
    }
    g.set_outputs({x, g.reshape(x, {4096})});
    CompileOptions options;
    options.placement = {{"c", there}};
    CHECK(test::check_on_adversarial(g, test::drawn(g), options).empty());
  }
}

TEST_CASE("segments: a loop that runs on the cpu holds branches of its own") {
  const AdversarialScope adversary;
  Graph g("held");
  const Expr x = g.input("x", f32({3, 4})), rows = g.input("rows", f32({5, 3, 4}));
  LoopResult r;
  {
    const auto label = g.scope("c");
    r = g.scan(x, rows, [&](Graph& b, const ExprList& c, const ExprList& row) {
      const ExprList y = b.cond(
          b.gt(b.sum(row[0]), 0.0), [&](Graph& t) { return ExprList{t.tanh(c[0] + row[0])}; },
          [&](Graph&) { return ExprList{c[0] * 0.5}; });
      return LoopStep{y[0]};
    });
  }
  g.set_outputs({r.carries[0] + x});
  CompileOptions options;
  options.placement = {{"c", Device::Cpu}};
  (void)test::check_on_adversarial(g, test::drawn(g), options);
}

}  // namespace rlx
