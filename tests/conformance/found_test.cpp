// Graphs whose passes, rules and runs were wrong once: patterns that widen an axis, slices without strides, counts that
// a narrow dtype does not hold, scales that are no numbers.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::f32;

const Session& session() {
  static const Session s(Device::Cpu);
  return s;
}

}  // namespace

TEST_CASE("a softmax and a norm of rows that an expand repeats are none") {
  Graph g("softmax");
  const Expr x = g.input("x", f32({1, 4}));
  const Expr e = g.exp(x - g.expand(g.reduce_max(x, {1}, true), {3, 1}));
  g.set_outputs({e / g.sum(e, {1}, true)});
  test::check_run(session(), g, test::drawn(g));
  Graph n("norm");
  const Expr y = n.input("x", f32({1, 4}));
  const auto mean = [&](Expr v) { return n.add(ops::Reduce{ReduceKind::Mean, {1}, true}, {v}); };
  const Expr d = y - n.expand(mean(y), {3, 1});
  n.set_outputs({d / n.sqrt(mean(d * d) + 1e-5)});
  test::check_run(session(), n, test::drawn(n));
}

TEST_CASE("a slice without strides of what is decoded") {
  for (const std::int64_t block : {0, 2}) {
    Graph g("codes");
    ops::Dequantize op;
    op.axis = block == 0 ? 0 : 1, op.block = block;
    const Expr scale = g.input("s", block == 0 ? f32({4}) : f32({4, 3}));
    const Expr d = g.dequantize(g.input("codes", {{4, 6}, DType::I8}), scale, op);
    ops::Slice cut;
    cut.starts = {Dim(0), Dim(2)}, cut.limits = {Dim(4), Dim(6)};
    g.set_outputs({g.add(cut, {d})});
    test::check_run(session(), g, test::drawn(g));
  }
}

TEST_CASE("the gradient of a mean and a maximum of more elements than f16 counts") {
  for (ReduceKind fn : {ReduceKind::Mean, ReduceKind::Max}) {
    Graph g("mean");
    g.set_outputs({g.add(ops::Reduce{fn, {0}}, {g.input("x", {{65536}, DType::F16})})});
    const Graph d = vjp(g, {"x"}).graph;
    NamedTensors values;
    for (NodeId id : d.leaves(OpKind::Input)) values.emplace(d.leaf_name(id), Tensor::full(d.shape(id), 1));
    const std::vector<Tensor> got = session().compile(Graph(d)).run_typed(values);
    CHECK(got.back().at(0) == 0x1p-16);
    CHECK(got.back().at(65535) == 0x1p-16);
  }
}

TEST_CASE("attention by a scale that is no number is what its parts give") {
  Graph g("scale");
  const Expr q = g.input("q", f32({1, 2, 3, 4})), k = g.input("k", f32({1, 2, 3, 4})),
             v = g.input("v", f32({1, 2, 3, 4}));
  const Expr scores = g.matmul(q, g.transpose(k, {0, 1, 3, 2})) * std::numeric_limits<double>::infinity();
  g.set_outputs({g.matmul(g.softmax(scores, 3), v)});
  test::check_run(session(), g, test::drawn(g));
}

TEST_CASE("a batch of updates at their own places, of windows that turn out empty") {
  Graph g("update");
  const Dim n = g.symbol("n", {.max = 8});
  g.set_outputs(
      {g.dynamic_update_slice(g.input("x", f32({8})), g.input("u", f32({n})), g.input("at", {{1}, DType::I32}))});
  const Graph b = vmap(g, {{"at", 0}, {"u", 0}}, 3).graph;
  for (std::int64_t of : {0, 2, 8}) {
    const Graph bound = b.bind({{"n", of}});
    NamedTensors values = test::drawn(bound);
    values["at"] = Tensor::of<std::int32_t>({3, 1}, {0, 5, 7});
    test::check_run(session(), bound, values);
    CompileOptions options;
    options.symbol_modes.emplace("n", SymbolMode::runtime());
    CompiledGraph f = session().compile_with(Graph(b), options);
    test::expect_within_bound(f.run_typed(values), test::evaluate_bounded(bound, values));
  }
}

TEST_CASE("slots of a committed run outlive the program at its extents") {
  Graph g("many");
  const Expr x = g.input("x", f32({g.symbol("n", {.min = 1, .max = 64})}));
  g.set_outputs({x + 1.0});
  CompiledGraph f = session().compile(std::move(g));
  f.commit_no_wait({{"x", Tensor::full(f32({1}), 1)}});
  for (std::int64_t n = 2; n < 64; ++n) (void)f.run_typed({{"x", Tensor::full(f32({n}), 1)}});
  const std::span<const Slot> slots = f.sync_pending();
  REQUIRE(slots.size() == 1);
  CHECK(slots[0].count == 1);
}

}  // namespace rlx
