// Branches and loops on an arena device without kernels for them: the host takes the decisions, and the bodies run on
// the device.
#include <doctest/doctest.h>

#include "tests/adversarial/check_on_adversarial.h"
#include "tests/support/control_graphs.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::AdversarialScope;
using test::f32;

test::AdversarialOptions without_control_flow() {
  test::AdversarialOptions options;
  options.refuse = test::AdversarialOptions::control_flow();
  return options;
}

}  // namespace

TEST_CASE("driven: every sample of a branch, a loop or a call") {
  const AdversarialScope adversary(without_control_flow());
  test::for_each_sample([&](const OpDef& def, const testing::Sample& sample) {
    if (def.bodies != BodyKind::Programs) return;
    INFO(def.name, ", variant '", sample.name, "'");
    CompiledGraph f = test::check_sample(Session(AdversarialScope::kDevice), sample);
    for (const LirBodies& b : f.compile_result().lir.plan.bodies) CHECK(b.host_controlled);
  });
}

TEST_CASE("driven: a scan of a cell, rows that can be bound, copied, or neither") {
  const AdversarialScope adversary(without_control_flow());
  for (bool reverse : {false, true}) {
    for (const auto& [steps, batch, width] :
         {std::tuple{9, 1, 64}, std::tuple{4, 70, 96}, std::tuple{5, 3, 5}, std::tuple{0, 2, 3}}) {
      const Graph g = test::cell(steps, batch, width, reverse);
      CHECK(test::check_on_adversarial(g, test::drawn(g)) == (steps == 0 ? "" : "scan "));
    }
    // Rows of 30 bytes are not aligned for copies on streams.
    const Graph g = test::cell(7, 3, 5, reverse, DType::BF16);
    CHECK(test::check_on_adversarial(g, test::drawn(g)) == "scan ");
  }
}

TEST_CASE("driven: carries that change places, that are operands twice, that nobody changes") {
  const AdversarialScope adversary(without_control_flow());
  const Graph g = test::changing_places();
  CHECK(test::check_on_adversarial(g, test::drawn(g)) == "scan ");
}

TEST_CASE("driven: loops in branches in loops, with no trip, with all, with more than there may be") {
  const AdversarialScope adversary(without_control_flow());
  const Graph g = test::nested();
  for (int trips : {0, 1, 4, 7, 9}) {
    NamedTensors values = test::drawn(g);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(test::check_on_adversarial(g, values) == "if while scan ");
  }
}

TEST_CASE("driven: a state that a loop updates stays in its bytes, a constant is an operand") {
  const AdversarialScope adversary(without_control_flow());
  Graph g("state");
  const Expr rows = g.input("rows", f32({12, 32})), at = g.input("at", Shape({}, DType::I32));
  const Expr cache = g.state("cache", Tensor::zeros(f32({64, 32})));
  const Expr scale = g.constant(Tensor::full(f32({32}), 0.5));
  const LoopResult r = g.scan({cache, at}, rows, [&](Graph& b, const ExprList& c, const ExprList& row) {
    const Expr start = b.concat({b.reshape(c[1], {1}), b.constant(Tensor::zeros(Shape({1}, DType::I32)))}, 0);
    return LoopStep{{b.dynamic_update_slice(c[0], b.reshape(row[0] * scale, {1, 32}), start), c[1] + 1}, {}};
  });
  g.set_state("cache", r.carries[0]);
  g.set_outputs({g.sum(r.carries[0], {0}), r.carries[1]});
  CHECK(test::check_on_adversarial(g, test::drawn(g)) == "scan ");
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(std::move(g));
  CHECK(f.compile_result().lir.plan.state_copies.empty());
  CHECK(f.compile_result().lir.plan.update_copies.empty());
}

TEST_CASE("driven: loops over extents that are known at the run") {
  const AdversarialScope adversary(without_control_flow());
  const Graph g = test::late_loop();
  CompiledGraph f = Session(AdversarialScope::kDevice).compile_with(Graph(g), test::late_extents());
  for (const auto& extents :
       {std::pair{3, 7}, std::pair{40, 64}, std::pair{1, 1}, std::pair{17, 33}, std::pair{3, 7}}) {
    const Graph bound = g.bind({{"steps", extents.first}, {"width", extents.second}});
    test::check_runs(f, bound, test::drawn(bound));
  }
}

TEST_CASE("driven: profiles, clones, and runs in flight") {
  const AdversarialScope adversary(without_control_flow());
  const Graph g = test::cell(5, 2, 64, false);
  const NamedTensors values = test::drawn(g);
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  test::check_runs(f, g, values);
  CompiledGraph c = f.clone();
  test::check_runs(c, g, values);
  bool timed = false;
  for (const NodeTime& step : f.profile(std::vector<TensorView>{values.at("h").view(), values.at("x").view()}))
    timed = timed || (step.op == "scan" && step.kernel == "host-controlled" && step.ns > 0);
  CHECK(timed);
}

TEST_CASE("driven: what fails in a body fails the run, and a new one works") {
  const AdversarialScope adversary(without_control_flow());
  const Graph g = test::nested();
  NamedTensors values = test::drawn(g);
  values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, 3));
  CompiledGraph f = Session(AdversarialScope::kDevice).compile(Graph(g));
  test::check_runs(f, g, values);
  for (int step : {0, 3, 9, 14}) {
    adversary->fail_step(0, step, "a kernel failed");
    const std::string text = test::error_text([&] { f.run_typed(values); });
    CHECK(test::contains(text, "a kernel failed"));
    if (step == 3) CHECK(test::contains(text, "while"));  // the wait was there
    test::check_runs(f, g, values);
  }
}

}  // namespace rlx
