// The memory planner: views, in-place results, in-place outputs, and a checker that finds faults in a plan.
#include "rlx/compiler/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/compiler/views.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/lir.h"
#include "tests/support/error_text.h"
#include "tests/support/toy_target.h"

namespace rlx {
namespace {

bool attention_strided(const Graph& g, NodeId id, int operand) {
  return g.node(id).kind() == OpKind::Attention && operand < 3;
}

TEST_CASE("a chain of unary ops runs in one buffer, and the last one writes the output") {
  Graph g("chain");
  Expr x = g.input("x", {{64, 64}, DType::F32});
  Expr y = g.exp(g.relu(x) + x);
  g.set_outputs({g.tanh(g.neg(y))});
  test::ToyTarget t;
  t.over = test::in_place_unary;
  LirBufferPlan plan = plan_memory(g, t);
  CHECK(check_plan(g, plan).empty());
  CHECK(plan.at(g.outputs()[0]).place == Place::Output);
  CHECK(plan.output_copies.empty());
  // The results of add, exp, neg and tanh share the bytes of the output; relu has its own buffer.
  CHECK(plan.arena_bytes == 64 * 64 * 4);
}

TEST_CASE("buffers whose lives do not meet share bytes; the arena is near the live peak") {
  Graph g("diamonds");
  Expr x = g.input("x", {{1024}, DType::F32});
  for (int i = 0; i < 20; ++i) {
    Expr a = g.exp(x), b = g.sin(x);
    x = a + b;
  }
  g.set_outputs({g.sum(x)});
  LirBufferPlan plan = plan_memory(g, test::ToyTarget());
  CHECK(check_plan(g, plan).empty());
  CHECK(plan.arena_bytes <= plan.live_peak_bytes * 21 / 20);
  CHECK(plan.arena_bytes * 10 < plan.unshared_bytes);
}

TEST_CASE("of two results that may overwrite one operand one does, read or not") {
  for (const bool both : {false, true}) {
    CAPTURE(both);
    Graph g("two results");
    const Expr a = g.exp(g.input("x", {{4, 8}, DType::F32}));
    const Graph::TopKResult top = g.top_k(a, 8);
    std::vector<Expr> outputs{g.cumsum(top.indices, 0)};
    if (both) outputs.push_back(g.cumsum(top.values, 0));
    g.set_outputs(outputs);
    test::ToyTarget t;
    t.over = [](const Graph& graph, NodeId id, int, int) { return graph.node(id).kind() == OpKind::TopK; };
    const LirBufferPlan plan = plan_memory(g, t);
    CHECK(check_plan(g, plan).empty());
    CHECK(plan.arena_bytes == 2 * 128);
  }
}

TEST_CASE("slices of a packed qkv are views when the reader follows strides, copies when it does not") {
  Graph g("qkv");
  Expr x = g.input("x", {{2, 4, 24}, DType::F32});
  Expr y = g.relu(x);
  std::vector<Expr> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(g.narrow(y, -1, i * 8, 8));
  ops::Attention op;
  op.num_heads = 2, op.kv_heads = 2, op.head_dim = 4;
  g.set_outputs({g.attention(parts[0], parts[1], parts[2], op)});

  test::ToyTarget t;
  LirBufferPlan copied = plan_memory(g, t);
  CHECK(copied.schedule.size() == 5);  // relu, three copies, attention
  t.strided = attention_strided;
  LirBufferPlan viewed = plan_memory(g, t);
  CHECK(viewed.schedule.size() == 2);
  CHECK(viewed.at(parts[1]).is_view);
  CHECK(viewed.at(parts[1]).strides == std::vector<std::int64_t>{96, 24, 1});
  CHECK(viewed.at(parts[1]).offset - viewed.at(y).offset == 32);
  CHECK(check_plan(g, viewed).empty());
}

TEST_CASE("a plan that gives a value fewer bytes than it takes, in its form too, is found out") {
  Graph g("short");
  const Expr x = g.input("x", {{3, 5}, DType::F32}), y = g.exp(x);
  const Expr panels = g.add(ops::Relayout{{"panels", {8}, 96}, 3, 5, false, DType::F32, {5, 0, 5, 1}}, {y});
  g.set_outputs({g.matmul(x.graph().t(x), panels)});
  test::ToyTarget t;
  LirBufferPlan plan = plan_memory(g, t);
  CHECK(check_plan(g, plan).empty());
  CHECK(plan.at(panels).bytes == 96);
  for (const Expr& v : {y, panels}) {
    LirBufferPlan less = plan;
    less.values[v.value().node.index][0].bytes -= 1;
    const std::vector<std::string> problems = check_plan(g, less);
    REQUIRE(problems.size() == 1);
    CHECK(test::contains(problems[0], "needs " + std::to_string(v.value() == y.value() ? 60 : 96)));
  }
}

TEST_CASE("a result that nobody reads has no place where the kernel does without it") {
  for (const bool read : {false, true}) {
    Graph g("lse");
    Expr x = g.input("x", {{2, 4, 8}, DType::F32});
    ops::Attention op;
    op.num_heads = op.kv_heads = 2, op.head_dim = 4;
    const Expr y = g.attention(x, x, x, op);
    g.set_outputs(read ? std::vector<Expr>{y, y.result(1)} : std::vector<Expr>{y});
    test::ToyTarget without;
    without.skips = [](const Graph&, NodeId, int result) { return result == 1; };
    const LirBufferPlan plan = plan_memory(g, without);
    CHECK(plan.at(y.result(1)).place == (read ? Place::Output : Place::None));
    CHECK(plan.at(y.result(1)).bytes == (read ? 2 * 2 * 4 * 4 : 0));
    CHECK(check_plan(g, plan).empty());
    const LirBufferPlan kept = plan_memory(g, test::ToyTarget());
    CHECK(kept.at(y.result(1)).place == (read ? Place::Output : Place::Arena));
    CHECK(kept.at(y.result(1)).bytes == 2 * 2 * 4 * 4);
  }
}

TEST_CASE("an output that is an input, a second use of one output, and a view as output are copied") {
  Graph g("copies");
  Expr x = g.input("x", {{4}, DType::F32});
  Expr y = g.exp(x);
  g.set_outputs({x, y, y});
  LirBufferPlan plan = plan_memory(g, test::ToyTarget());
  REQUIRE(plan.output_copies.size() == 2);
  CHECK(plan.output_copies[0].output == 0);
  CHECK(plan.output_copies[1].output == 2);
}

TEST_CASE("a state is updated in its own bytes when the old value is dead, else the copy says why") {
  test::ToyTarget t;
  t.over = test::in_place_unary;
  Graph g("states");
  Expr x = g.input("x", {{8}, DType::F32});
  auto state = [&](const char* name) { return g.state(name, Tensor::zeros(Shape({8}, DType::F32))); };
  Expr a = state("a"), b = state("b"), c = state("c"), e = state("e");
  (void)state("d");
  g.set_state("a", g.tanh(a));         // the kernel overwrites its operand
  g.set_state("b", g.exp(b + x) + x);  // dead before the last step begins
  g.set_state("c", c + x);             // read by the step that computes the new value
  g.set_state("d", x);
  g.set_state("e", g.exp(x));  // its old value is an output
  g.set_outputs({e});
  LirBufferPlan plan = plan_memory(g, t);
  CHECK(check_plan(g, plan).empty());
  auto at = [&](const char* name) {
    for (const Graph::StateUpdate& u : g.state_updates())
      if (u.name == name) return plan.at(u.value);
    return LirValue{};
  };
  CHECK(at("a").place == Place::State);
  CHECK(at("a").index == 0);
  CHECK(at("b").place == Place::State);
  REQUIRE(plan.state_copies.size() == 3);
  CHECK(plan.state_copies[0].state == 2);
  CHECK(plan.state_copies[0].reason.find("cannot write its result over this operand") != std::string::npos);
  CHECK(plan.state_copies[1].reason == "the new value is input 'x' itself");
  CHECK(plan.state_copies[2].reason == "the old value itself is an output or the new value of a state");
}

TEST_CASE("a donated input's bytes are its output's, and readers come before the writer") {
  test::ToyTarget t;
  t.over = test::in_place_unary;
  Graph g("donated");
  Expr x = g.input("x", {{8}, DType::F32}), y = g.input("y", {{8}, DType::F32});
  Expr s = g.cos(x) + y;
  g.set_outputs({g.tanh(y) + s, g.exp(x)});  // y: dead before the last addition; x: read by cos and by exp alone
  const LirAlias pairs[] = {{1, 0, {}}, {0, 1, {}}};
  LirBufferPlan plan = plan_memory(g, t, pairs);
  CHECK(check_plan(g, plan).empty());
  REQUIRE(plan.aliases.size() == 2);
  CHECK(plan.aliases[0].refused == "");
  CHECK(plan.aliases[1].refused == "");
  // Without its edges the writer could run before a reader of the shared bytes.
  for (LirStep& step : plan.schedule) step.predecessors.clear();
  CHECK(!check_plan(g, plan).empty());

  Graph late("late");
  Expr z = late.input("z", {{8}, DType::F32});
  Expr e = late.exp(z);
  late.set_outputs({e, late.sum(z)});
  const LirAlias pair[] = {{0, 0, {}}};
  LirBufferPlan refused = plan_memory(late, t, pair);
  CHECK(refused.aliases[0].refused.find("the input is still read by") == 0);
}

TEST_CASE("the checker sees a buffer that is overwritten too early and a missing edge") {
  Graph g("broken");
  Expr x = g.input("x", {{16}, DType::F32});
  Expr a = g.exp(x), b = g.sin(a);
  g.set_outputs({g.cos(b) + a});
  LirBufferPlan plan = plan_memory(g, test::ToyTarget());
  REQUIRE(check_plan(g, plan).empty());
  LirBufferPlan overlap = plan;
  overlap.values[b.value().node.index][0].offset = overlap.at(a).offset;  // sin would overwrite exp, which add reads
  CHECK(!check_plan(g, overlap).empty());
  LirBufferPlan unordered = plan;
  unordered.schedule.back().predecessors.clear();
  CHECK(!check_plan(g, unordered).empty());
}

TEST_CASE(
    "offsets and lengths beyond 4 GiB: 64 bits in the plan, and the checker does not confuse them with their low "
    "half") {
  constexpr std::size_t k4GiB = std::size_t{1} << 32;
  Graph g("large");  // planned, not run, so nothing of this size is allocated
  Expr x = g.input("x", {{65536, 16384}, DType::F32});
  Expr a = g.exp(x), b = g.sin(x), c = g.cos(x);
  Expr last = g.narrow(c, 0, 65535, 1);
  g.set_outputs({g.sum(a + b), g.exp(last)});
  LirBufferPlan plan = plan_memory(g, test::ToyTarget());
  REQUIRE(check_plan(g, plan).empty());
  const std::size_t at_a = plan.at(a).offset, at_b = plan.at(b).offset, at_c = plan.at(c).offset;
  CHECK(plan.at(a).bytes == k4GiB);
  CHECK(at_a % k4GiB + at_b % k4GiB + at_c % k4GiB == 0);
  CHECK(std::max({at_a, at_b, at_c}) == 2 * k4GiB);
  CHECK(plan.arena_bytes >= 3 * k4GiB);
  CHECK(plan.at(last).is_view);
  CHECK(plan.at(last).offset - at_c == k4GiB - 65536);
  // The plan that 32-bit arithmetic would give: every buffer at the same address.
  for (Expr e : {a, b, c}) plan.values[e.value().node.index][0].offset &= k4GiB - 1;
  CHECK(!check_plan(g, plan).empty());
}

TEST_CASE("strides of a reshape without moving bytes") {
  using Strides = std::vector<std::int64_t>;
  const Strides dims = {2, 4, 8}, strides = {96, 24, 1};
  CHECK(reshape_strides(dims, strides, {2, 4, 2, 4}) == Strides{96, 24, 4, 1});
  CHECK(reshape_strides(dims, strides, {8, 8}) == Strides{24, 1});
  CHECK(!reshape_strides(dims, strides, {64}));
  CHECK(!reshape_strides(Strides{4, 3}, {1, 4}, {12}));  // a transposed view has no strides for one axis
  CHECK(reshape_strides(Strides{1, 6, 1}, {9, 1, 5}, {2, 3}) == Strides{3, 1});
}

}  // namespace
}  // namespace rlx
