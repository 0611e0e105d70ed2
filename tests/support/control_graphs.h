// Graphs with control flow that several test suites run.
#pragma once

#include "rlx/ir/graph.h"
#include "tests/support/run_check.h"

namespace rlx::test {

/// h, y = tanh(h w + x_t), h
inline Graph cell(std::int64_t steps, std::int64_t batch, std::int64_t width, bool reverse, DType dtype = DType::F32) {
  Graph g("cell");
  const auto shape = [&](Dims dims) { return Shape(std::move(dims), dtype); };
  const Expr w = g.param("w", shape({width, width})), h = g.input("h", shape({batch, width}));
  const Expr x = g.input("x", shape({steps, batch, width}));
  const LoopResult r = g.scan(h, x,
                              [&](Graph& b, const ExprList& c, const ExprList& row) {
                                const Expr next = b.tanh(b.matmul(c[0], w) * 0.2 + row[0]);
                                return LoopStep{next, next};
                              },
                              {.reverse = reverse});
  g.set_outputs({r.carries[0], r.ys[0]});
  return g;
}

/// Carries a, b, c, d of x [6] with rows [5, 6]: a, b, c, d = b, a, c + row * x, x. x is both a carry and
/// loop-invariant.
inline Graph changing_places() {
  Graph g("places");
  const Expr x = g.input("x", f32({6})), rows = g.input("rows", f32({5, 6}));
  const LoopResult r = g.scan({x, x * 2.0, x, x}, rows, [&](Graph&, const ExprList& c, const ExprList& row) {
    return LoopStep{{c[1], c[0], c[2] + row[0] * x, x}, {c[0], row[0]}};
  });
  g.set_outputs({r.carries[0], r.carries[1], r.carries[2], r.carries[3], r.ys[0], r.ys[1]});
  return g;
}

/// A loop over x [steps, width], with extents up to 40 and 70 that are known at run time. The ys are the carries
/// reversed.
inline Graph late_loop() {
  Graph g("late");
  const Dim steps = g.symbol("steps", {.min = 1, .max = 40}), width = g.symbol("width", {.min = 1, .max = 70});
  const Expr x = g.input("x", f32({steps, width})), h = g.input("h", f32({width}));
  const LoopResult r = g.scan(h, x, [&](Graph& b, const ExprList& c, const ExprList& row) {
    const Expr next = c[0] * 0.5 + b.sin(row[0]) + b.mean(row[0]);
    return LoopStep{next, b.reverse(next, {0})};
  });
  g.set_outputs({r.carries[0], r.ys[0]});
  return g;
}
inline CompileOptions late_extents() {
  CompileOptions options;
  options.symbol_modes = {{"steps", SymbolMode::runtime(40)}, {"width", SymbolMode::runtime(70)}};
  return options;
}

/// A loop of `n` iterations, at most 7, over x [4, 40]. It contains a branch, which contains a loop.
inline Graph nested() {
  Graph g("nested");
  const Expr x = g.input("x", f32({4, 40})), w = g.input("w", f32({40, 40})), n = g.input("n", Shape({}, DType::I32));
  const LoopResult r = g.while_loop(
      {g.scalar(0.0, DType::I32), x}, [&](Graph&, const ExprList& c) { return c[0].graph().lt(c[0], n); },
      [&](Graph& b, const ExprList& c) {
        const ExprList y = b.cond(
            b.eq(b.binary(BinaryKind::Mod, c[0], 2), 0),
            [&](Graph& t) {
              const LoopResult inner = t.scan(
                  c[1], t.reshape(w, {10, 4, 40}),
                  [&](Graph& s, const ExprList& d, const ExprList& row) { return LoopStep{s.sin(d[0] + row[0])}; });
              return ExprList{inner.carries[0]};
            },
            [&](Graph& t) { return ExprList{t.tanh(t.matmul(c[1], w) * 0.1)}; });
        return LoopStep{{c[0] + 1, y[0]}, {y[0]}};
      },
      {.max_iterations = 7});
  g.set_outputs({r.carries[1], r.ys[0], r.iterations});
  return g;
}

}  // namespace rlx::test
