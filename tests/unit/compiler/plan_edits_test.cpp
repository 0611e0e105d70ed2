// A module at stage lir comes from outside: every edit of one field of its plan is refused with an error that names it,
// or changes no result.
#include "tests/support/plan_edits.h"

#include <cstdlib>

#include <doctest/doctest.h>

#include "rlx/compiler/pipeline.h"
#include "rlx/runtime/session.h"
#include "tests/support/control_graphs.h"
#include "tests/support/needs.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

Session one_thread() { return Session().with_threads(1); }

test::Planned planned(const Graph& g, NamedTensors leaves, bool donate) {
  CompileOptions options;
  const std::vector<NodeId> inputs = g.leaves(OpKind::Input);
  for (std::size_t i = 0; donate && i < inputs.size() && options.donate.empty(); ++i)
    for (std::size_t o = 0; o < g.outputs().size() && options.donate.empty(); ++o)
      if (g.shape(inputs[i]) == g.shape(g.outputs()[o])) options.donate.push_back({g.leaf_name(inputs[i]), o});
  return {one_thread(), CompilePipeline(one_thread().target(), options).compile_graph(g).lir, std::move(leaves)};
}

// Programs that plan what random ones seldom plan.
std::vector<Graph> chosen_programs() {
  std::vector<Graph> out;
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  {
    Graph g("two sums");
    const Expr x = g.input("x", f32({4, 8})), y = g.softmax(g.cumsum(x, 0));
    g.set_outputs({y, g.cumsum(y, 1)});
    out.push_back(std::move(g));
  }
  {
    Graph g("views");
    const Expr x = g.input("x", f32({6, 8})), h = g.exp(x), t = g.narrow(g.transpose(h, {1, 0}), 0, 2, 4);
    g.set_outputs({g.sum(t, {1}), g.reshape(h, {8, 6}), g.narrow(h, 0, 1, 2), h, h, x});
    out.push_back(std::move(g));
  }
  {
    Graph g("states");
    const Expr x = g.input("x", f32({4, 8}));
    const Expr a = g.state("a", Tensor::zeros(f32({4, 8}))), b = g.state("b", Tensor::zeros(f32({4, 8}))),
               c = g.state("c", Tensor::zeros(f32({16, 8})));
    g.set_state("a", b * 0.5);
    g.set_state("b", a + x);
    g.set_state("c", g.dynamic_update_slice(c, x, g.constant(Tensor::zeros(Shape({2}, DType::I32)))));
    g.set_outputs({g.tanh(a * x), g.sum(c, {0})});
    out.push_back(std::move(g));
  }
  out.push_back(test::cell(3, 2, 4, false));
  out.push_back(test::changing_places());
  {
    Graph g("branches");
    const Expr x = g.input("x", f32({4, 8})), h = g.sin(x);
    const ExprList r = g.cond(
        g.gt(g.sum(x), 0.0), {h, x},
        [&](Graph& b, const ExprList& v) {
          return ExprList{v[0] * 2.0, b.cumsum(v[1], 0)};
        },
        [&](Graph& b, const ExprList& v) {
          return ExprList{b.while_loop(
                               {v[0]}, [](Graph& c, const ExprList& k) { return c.gt(c.sum(c.abs(k[0])), 1.0); },
                               [](Graph&, const ExprList& k) { return LoopStep{{k[0] * 0.5}}; }, {.max_iterations = 8})
                              .carries[0],
                          v[1] + 1.0};
        });
    g.set_outputs({r[0], r[1]});
    out.push_back(std::move(g));
  }
  {
    Graph g("weights");
    const Expr x = g.input("x", f32({4, 32})), w = g.param("w", f32({32, 32}));
    g.set_outputs({g.gelu(g.matmul(x, w) + g.param("b", f32({32}))), g.matmul(g.tanh(x), g.transpose(w, {1, 0}))});
    out.push_back(std::move(g));
  }
  return out;
}

NamedTensors drawn_leaves(const Graph& g) {
  test::RandomProgram p;
  p.graph = g;
  return p.values({}, 1);
}

TEST_CASE("every edit of a field of a plan is refused by name, or changes no result") {
  test::EditCounts counts;
  std::size_t modules = 0;  // the edits that are tried begin at another place in each
  const std::size_t every = std::getenv("RLX_ALL_CASES") ? 1 : 17;
  const auto try_program = [&](const Graph& g, NamedTensors leaves, bool donate) {
    CAPTURE(g.name());
    CAPTURE(modules);
    test::try_edits(planned(g, std::move(leaves), donate), modules, every, counts);
    ++modules;
  };
  for (const Graph& g : chosen_programs())
    for (const bool donate : {false, true}) try_program(g, drawn_leaves(g), donate);
  test::ProgramOptions options;
  options.ops = 8;
  for (std::uint64_t seed = 1; seed <= test::repetitions(86U); ++seed) {
    const test::RandomProgram p = test::random_program(seed, options);
    const SymbolBinding binding = p.binding(1);
    try_program(p.graph.bind(binding), p.values(binding, 1), seed % 2 == 0);
  }
  MESSAGE("plan edits of ", modules, " modules: ", counts.edits, " tried, ", counts.refused, " refused, ", counts.right,
          " without effect");
  CHECK(counts.refused > counts.edits * 3 / 4);
  CHECK(counts.right > 0);
}

TEST_CASE("a module with unbound symbols cannot be given as planned") {
  const Graph g = test::late_loop();
  CompileOptions options;
  options.symbol_modes = {{"steps", SymbolMode::runtime()}, {"width", SymbolMode::runtime()}};
  LirModule lir = CompilePipeline(one_thread().target(), options).compile_graph(g).lir;
  CHECK(test::contains(test::error_text([&] { one_thread().compile_module(GraphModule(std::move(lir))); }),
                       "has unbound symbols"));
}

}  // namespace
}  // namespace rlx
