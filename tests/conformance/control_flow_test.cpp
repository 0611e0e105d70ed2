// Branches and loops on the cpu: bodies are programs inside the parent's arena. They are compared with the reference
// rules at every number of threads, with extents known at run time, and with states that loops update in place.
#include <doctest/doctest.h>

#include "tests/support/control_graphs.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::drawn;
using test::f32;

// Returns the kernels that run, and checks that every run is within the bounds of the exact result. Each program runs
// twice, so that the second run finds the memory of the first.
std::string run_on_cpu(const Graph& g, NamedTensors values) {
  std::string kernels;
  const test::BoundedResult exact = test::evaluate_bounded(g, values);
  for (int threads : {1, 2, 3})
    for (bool finest : {false, true}) {
      CompileOptions options;
      options.finest_grain = finest;
      CompiledGraph f = Session().with_threads(threads).compile_with(Graph(g), options);
      NamedTensors inputs;
      for (const IoInfo& p : f.params()) f.set_param(p.name, values.at(p.name));
      for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
      for (int run = 0; run < 2; ++run) {
        f.reset();
        INFO(threads, " threads");
        test::expect_within_bound(f.run_typed(inputs), exact);
        for (const IoInfo& s : f.states())
          if (const auto it = exact.states.find(s.name); it != exact.states.end()) {
            const test::Gap gap = test::gap_to(f.read_state(s.name), it->second);
            CHECK_MESSAGE(gap.size <= 1, "state ", s.name, ": ", gap.text);
          }
      }
      if (!kernels.empty()) continue;
      const LirModule& lir = f.compile_result().lir;
      for (const LirBodies& b : lir.plan.bodies) kernels += concat_text(op_text_name(lir.graph.node(b.node).op), " ");
      for (const KindDispatch& k : f.compile_result().dispatch.summaries)
        if (k.path == DispatchPath::HostFallback) kernels += concat_text("host:", k.name, " ");
    }
  return kernels;
}

}  // namespace

TEST_CASE("cpu: a scan of a cell, large and small, forwards and backwards") {
  for (bool reverse : {false, true})
    for (const auto& [steps, batch, width] :
         {std::tuple{9, 1, 8}, std::tuple{4, 70, 96}, std::tuple{1, 3, 5}, std::tuple{0, 2, 3}}) {
      const Graph g = test::cell(steps, batch, width, reverse);
      CHECK(run_on_cpu(g, drawn(g)) == (steps <= 1 ? "" : "scan "));
    }
}

TEST_CASE("cpu: carries that change places, that are operands twice, that nobody changes") {
  Graph g("places");
  const Expr x = g.input("x", f32({6})), rows = g.input("rows", f32({5, 6}));
  // a, b, c, d = b, a, c + row * x, x. x is both a carry and loop-invariant.
  const LoopResult r = g.scan({x, x * 2.0, x, x}, rows, [&](Graph&, const ExprList& c, const ExprList& row) {
    return LoopStep{{c[1], c[0], c[2] + row[0] * x, x}, {c[0], row[0]}};
  });
  g.set_outputs({r.carries[0], r.carries[1], r.carries[2], r.carries[3], r.ys[0], r.ys[1]});
  CHECK(run_on_cpu(g, drawn(g)) == "scan ");
}

TEST_CASE("cpu: what a loop holds fixed may be any result of its node") {
  for (const bool fixed_length : {true, false}) {
    Graph g("results");
    const Expr keys = g.input("keys", f32({4})), rows = g.input("rows", f32({3, 4}));
    const ExprList sorted = g.sort(keys, {g.input("values", f32({4}))}, 0);
    // Loop-invariant values only, and the second result of a node computed from them.
    const auto step = [&](Graph& b, const Expr& c, const Expr& row) {
      const ExprList again = b.sort(sorted[1] * 2.0, {sorted[0]}, 0);
      return c * 0.5 + row + again[1] + b.tanh(sorted[1] + sorted[1]);
    };
    LoopResult r;
    if (fixed_length) {
      r = g.scan(keys, rows,
                 [&](Graph& b, const ExprList& c, const ExprList& row) { return LoopStep{step(b, c[0], row[0])}; });
    } else {
      r = g.while_loop(
          {keys, g.constant(Tensor::scalar_i64(DType::I64, 0))},
          [&](Graph& b, const ExprList& c) { return b.lt(c[1], g.input("n", Shape({}, DType::I64))); },
          [&](Graph& b, const ExprList& c) {
            return LoopStep{{step(b, c[0], sorted[1]), c[1] + 1}};
          });
    }
    g.set_outputs({r.carries[0], sorted[1]});
    NamedTensors values = drawn(g);
    if (!fixed_length) values.insert_or_assign("n", Tensor::scalar_i64(DType::I64, 3));
    (void)run_on_cpu(g, values);
  }
}

TEST_CASE("cpu: loops in branches in loops, with values of all the graphs around them") {
  const Graph g = test::nested();
  for (int trips : {0, 1, 4, 7, 9}) {
    NamedTensors values = drawn(g);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(run_on_cpu(g, values) == "while ");
  }
}

TEST_CASE("cpu: a state that a loop updates stays in its bytes") {
  Graph g("state");
  const Expr rows = g.input("rows", f32({12, 32})), at = g.input("at", Shape({}, DType::I32));
  const Expr cache = g.state("cache", Tensor::zeros(f32({64, 32})));
  const LoopResult r = g.scan({cache, at}, rows, [&](Graph& b, const ExprList& c, const ExprList& row) {
    const Expr start = b.concat({b.reshape(c[1], {1}), b.constant(Tensor::zeros(Shape({1}, DType::I32)))}, 0);
    return LoopStep{{b.dynamic_update_slice(c[0], b.reshape(row[0], {1, 32}), start), c[1] + 1}, {}};
  });
  g.set_state("cache", r.carries[0]);
  g.set_outputs({g.sum(r.carries[0], {0}), r.carries[1]});
  CHECK(run_on_cpu(g, drawn(g)) == "scan ");
  CompiledGraph f = Session().compile(std::move(g));
  const LirBufferPlan& plan = f.compile_result().lir.plan;
  CHECK(plan.state_copies.empty());
  REQUIRE(plan.bodies.size() == 1);
  CHECK(plan.bodies[0].second == std::vector<std::optional<std::uint32_t>>(2));
}

TEST_CASE("cpu: loops over extents that are known at the run") {
  const Graph g = test::late_loop();
  CompiledGraph f = Session().with_threads(2).compile_with(Graph(g), test::late_extents());
  for (const auto& extents :
       {std::pair{3, 7}, std::pair{40, 70}, std::pair{1, 1}, std::pair{17, 33}, std::pair{3, 7}}) {
    const int s = extents.first, w = extents.second;
    const Graph bound = g.bind({{"steps", s}, {"width", w}});
    const NamedTensors values = drawn(bound);
    const test::BoundedResult exact = test::evaluate_bounded(bound, values);
    const std::vector<Tensor> got = f.run_typed(values);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const test::Gap gap = test::gap_to(got[i], exact.outputs[i]);
      CHECK_MESSAGE(gap.size <= 1, s, " steps of ", w, ", result ", i, ": ", gap.text);
    }
  }
  CHECK(f.compile_result().lir.plan.bodies.size() == 1);
}

TEST_CASE("cpu: a body that fails, fails the run and names its node") {
  Graph g("bytes");
  const Expr x = g.input("x", Shape({3, 3}, DType::I4));
  const LoopResult r =
      g.scan(g.cast(g.narrow(x, 0, 0, 1), DType::F32), x, [&](Graph& b, const ExprList& c, const ExprList& row) {
        return LoopStep{c[0] + b.reshape(b.cast(row[0], DType::F32), {1, 3})};
      });
  g.set_outputs({r.carries[0]});
  CHECK(run_on_cpu(g, {{"x", Tensor::full(Shape({3, 3}, DType::I4), 2)}}) == "host:scan ");  // rows are not whole bytes
}

}  // namespace rlx
