// Programs that run on several devices, and checks of their runs.
#pragma once

#include "rlx/ir/graph.h"
#include "tests/support/random_program.h"
#include "tests/support/run_check.h"

namespace rlx::test {

/// Sorts rows of a value computed from x, then computes on.
inline Graph sorting() {
  Graph g("sorting");
  const Expr x = g.input("x", f32({6, 9})), w = g.param("w", f32({9, 9}));
  const Expr sorted = g.sort(g.matmul(x, w), 1);
  const Expr total = g.state("total", Tensor::zeros(f32({6, 9})));
  g.set_state("total", total + sorted);
  g.set_outputs({g.tanh(sorted) + x, sorted, g.sort(x, 0)});
  return g;
}

/// A loop of at most 6 iterations that contains sorts.
inline Graph sorting_loop() {
  Graph g("body");
  const Expr x = g.input("x", f32({5, 7})), n = g.input("n", Shape({}, DType::I32));
  const LoopResult r = g.while_loop(
      {g.scalar(0.0, DType::I32), x}, [&](Graph&, const ExprList& c) { return c[0].graph().lt(c[0], n); },
      [&](Graph& b, const ExprList& c) {
        const Expr s = b.sort(b.sin(c[1] * 3.0), 1);
        return LoopStep{{c[0] + 1, s + x}, {b.sort(s, 0)}};
      },
      {.max_iterations = 6});
  g.set_outputs({r.carries[1], r.ys[0], r.iterations});
  return g;
}

/// Three layers with a label each, and a state that accumulates their result.
inline Graph layers() {
  Graph g("layers");
  const Expr x = g.input("x", f32({8, 32}));
  Expr y = x;
  for (int layer = 0; layer < 3; ++layer) {
    const auto scope = g.scope(concat_text("layer", layer));
    const Expr w = g.param(concat_text("w", layer), f32({32, 32}));
    y = g.tanh(g.matmul(y, w)) + y;
  }
  const Expr seen = g.state("seen", Tensor::zeros(f32({8, 32})));
  g.set_state("seen", seen + y);
  g.set_outputs({y, x + 1.0});
  return g;
}

/// The program of a seed, with labels a, b and c on random nodes.
inline RandomProgram labelled_program(std::uint64_t seed) {
  RandomProgram p = random_program(seed);
  Dice dice(seed * 31);
  for (std::uint32_t i = 0; i < p.graph.num_nodes(); ++i)
    if (!op_def(p.graph.nodes()[i].kind()).is_leaf())
      p.graph.set_label(NodeId{i}, concat_text(dice.chance(33) ? "a" : dice.chance(50) ? "b" : "c", "/n", i));
  return p;
}

/// Places the nodes with that label, if there are any.
inline void place_label(const Graph& g, const char* label, DeviceId device, CompileOptions& options) {
  for (const Node& n : g.nodes())
    if (n.origin.label.starts_with(concat_text(label, "/"))) {
      options.placement.push_back({label, device});
      return;
    }
}

/// Compiles the program and checks it at two sets of extents.
inline void check_program(const RandomProgram& p, const Session& session, CompileOptions options,
                          Subnormals subnormals = Subnormals::Kept) {
  if (p.seed % 2 == 0)
    for (const auto& [name, info] : p.graph.symbols()) options.symbol_modes[name] = SymbolMode::runtime(info.max);
  CompiledGraph f = session.compile_with(Graph(p.graph), options);
  for (std::uint64_t variant : {0, 1}) {
    const SymbolBinding binding = p.binding(variant);
    const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
    check_runs(f, g, p.values(binding, variant), subnormals);
  }
}

}  // namespace rlx::test
