// Matmuls in bodies that read prepacked weights: loop-invariant weights, a matrix of a stack per iteration, and
// branches in loops. Other ops read the raw values.
#include <doctest/doctest.h>

#include "rlx/ir/ops/lir.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/needs.h"
#include "tests/support/run_check.h"

namespace rlx {
namespace {

using test::f32;

struct Seen {
  int formed_inputs = 0;  // Inputs of bodies, at any depth, with a packed layout
  int raw_inputs = 0;     // params of rank 2 or more that the program reads row-major
  int made_in_run = 0;    // packed layouts of values that the run computes or gets as inputs
};

void look(const Graph& g, Seen& seen) {
  for (const Node& n : g.nodes())
    for (const Subgraph& body : body_graphs(n.op)) {
      for (NodeId id : body->leaves(OpKind::Input)) seen.formed_inputs += !packed_layout_of(*body, Value(id)).empty();
      look(*body, seen);
    }
}

// Runs on the cpu at one to three threads. Returns how the program was compiled.
Seen check_on_cpu(const Graph& g, const NamedTensors& values) {
  Seen seen;
  for (int threads : {1, 2, 3}) {
    INFO(threads, " threads");
    CompiledGraph f = Session().with_threads(threads).compile(Graph(g));
    test::check_runs(f, g, values);
    seen = {};
    const LirModule& lir = f.compile_result().lir;
    look(lir.graph, seen);
    for (NodeId id : lir.graph.leaves(OpKind::Param))
      seen.raw_inputs += packed_layout_of(lir.graph, Value(id)).empty() && lir.graph.shape(id).rank() >= 2;
    for (const Node& n : lir.graph.nodes()) seen.made_in_run += n.kind() == OpKind::Relayout;
    // Other values later, through the same packed layouts.
    NamedTensors later = values;
    for (const IoInfo& p : f.params()) later.insert_or_assign(p.name, test::draw(p.shape, Fill::Unit, 1, 77));
    test::check_runs(f, g, later);
  }
  return seen;
}
Seen check_on_cpu(const Graph& g) { return check_on_cpu(g, test::drawn(g)); }

// x through `layers` layers of weights [layers, in, out], or [layers, out, in] when `transposed`.
Graph stack_of_layers(std::int64_t layers, std::int64_t width, bool transposed, bool reverse, DType stored) {
  Graph g("layers");
  const Expr w = g.param("w", Shape({layers, width, width}, stored)), b = g.param("b", f32({layers, width}));
  const LoopResult r = g.scan(g.input("x", f32({3, width})), {w, b},
                              [&](Graph& s, const ExprList& c, const ExprList& row) {
                                Expr one = transposed ? s.t(row[0]) : row[0];
                                if (stored != DType::F32) one = s.cast(one, DType::F32);
                                return LoopStep{s.tanh(s.matmul(c[0], one) * 0.3 + row[1])};
                              },
                              {.reverse = reverse});
  g.set_outputs({r.carries[0]});
  return g;
}

}  // namespace

TEST_CASE("bodies: an invariant weight is packed once, and its raw values go") {
  Graph g("cell");
  const Expr w = g.param("w", f32({24, 24})), x = g.input("x", f32({5, 2, 24}));
  const LoopResult r = g.scan(g.input("h", f32({2, 24})), x, [&](Graph& b, const ExprList& c, const ExprList& row) {
    return LoopStep{b.tanh(b.matmul(c[0], w) * 0.2 + row[0])};
  });
  g.set_outputs({r.carries[0]});
  const Seen seen = check_on_cpu(g);
  CHECK(seen.formed_inputs == 1);
  CHECK(seen.raw_inputs == 0);
}

TEST_CASE("bodies: a scan over layers reads one matrix of a stacked form in each step") {
  for (const bool transposed : {false, true})
    for (const bool reverse : {false, true})
      for (const DType stored : {DType::F32, DType::BF16})
        for (const std::int64_t width : {16, 37}) {
          INFO((transposed ? "[N, K] " : "[K, N] "), (reverse ? "downwards " : ""), dtype_name(stored), " ", width);
          const Graph g = stack_of_layers(4, width, transposed, reverse, stored);
          const Seen seen = check_on_cpu(g);
          CHECK(seen.formed_inputs == 1);
          CHECK(seen.raw_inputs == 1);  // b
          CompiledGraph f = Session().compile(Graph(g));
          const Graph& lir = f.compile_result().lir.graph;
          std::int64_t stacks = 0;
          for (NodeId id : lir.leaves(OpKind::Param)) stacks += packed_layout_of(lir, Value(id)).count == 4;
          CHECK(stacks == 1);
        }
}

TEST_CASE("bodies: parts of a stack side by side, a stack of separate weights, parts of a wide one") {
  Graph g("parts");
  std::vector<Expr> layers;
  for (int l = 0; l < 3; ++l) layers.push_back(g.reshape(g.param(concat_text("v", l), f32({20, 8})), {1, 20, 8}));
  const Expr q = g.param("q", f32({3, 20, 12})), v = g.concat(layers, 0), wide = g.param("wide", f32({3, 20, 50}));
  const LoopResult r =
      g.scan(g.input("x", f32({6, 20})), {q, v, wide}, [&](Graph& b, const ExprList& c, const ExprList& row) {
        const Expr both = b.matmul(c[0], b.concat({row[0], row[1]}, 1));
        return LoopStep{b.sin(both + b.matmul(c[0], b.narrow(row[2], 1, 7, 20)))};
      });
  g.set_outputs({r.carries[0]});
  const Seen seen = check_on_cpu(g);
  CHECK(seen.formed_inputs >= 1);
}

TEST_CASE("bodies: through branches in loops, and to several readers") {
  Graph g("deep");
  const Expr stack = g.param("stack", f32({3, 18, 18})), w = g.param("w", f32({18, 18}));
  const Expr flag = g.input("flag", Shape({}, DType::Bool)), x = g.input("x", f32({4, 18}));
  const LoopResult r = g.scan(x, stack, [&](Graph& b, const ExprList& c, const ExprList& row) {
    const ExprList y = b.cond(
        flag, [&](Graph& t) { return ExprList{t.matmul(c[0], row[0]) * 0.3}; },
        [&](Graph& t) { return ExprList{t.matmul(t.matmul(c[0], t.t(w)), row[0]) * 0.1}; });
    return LoopStep{b.tanh(y[0])};
  });
  // w is used again outside, row-major.
  g.set_outputs({g.matmul(r.carries[0], g.t(w)), stack + g.sum(x)});
  for (int yes : {0, 1}) {
    NamedTensors values = test::drawn(g);
    values.insert_or_assign("flag", Tensor::scalar_i64(DType::Bool, yes));
    const Seen seen = check_on_cpu(g, values);
    CHECK(seen.formed_inputs == 6);  // the stack's matrix and w, in the scan and in both branches
    CHECK(seen.raw_inputs == 1);     // the stack, for its sum
  }
}

TEST_CASE("bodies: a while loop whose condition multiplies too, and a tied table") {
  Graph g("decode");
  const Expr table = g.param("table", f32({40, 16})), n = g.input("n", Shape({}, DType::I32));
  const Expr x = g.gather(table, g.input("ids", Shape({3}, DType::I32)), 0);
  const LoopResult r = g.while_loop(
      {g.scalar(0.0, DType::I32), x},
      [&](Graph& c, const ExprList& s) {
        const Expr largest = c.reduce_max(c.matmul(s[1], c.t(table)), {0, 1});
        return c.binary(BinaryKind::Min, c.lt(s[0], n), c.lt(largest, 1e9));
      },
      [&](Graph& b, const ExprList& s) {
        const Expr scores = b.softmax(b.matmul(s[1], b.t(table)), 1);
        return LoopStep{{s[0] + 1, b.matmul(scores, table)}, {}};
      });
  g.set_outputs({r.carries[1]});
  for (int trips : {0, 1, 4}) {
    NamedTensors values = test::drawn(g);
    values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
    CHECK(check_on_cpu(g, values).formed_inputs >= 2);
  }
}

TEST_CASE("bodies: what a run is given or computes is packed once for all steps of a loop") {
  enum Kind { Input, State, Computed, Halves, Mutable };
  for (const Kind kind : {Input, State, Computed, Halves, Mutable})
    for (const bool transposed : {false, true})
      for (const std::int64_t width : {16, 37, 130}) {
        if (width == 130 && kind != Computed && test::one_in(2) != 1) continue;
        INFO("kind ", static_cast<int>(kind), (transposed ? " [N, K] " : " [K, N] "), width);
        Graph g("cell");
        const Shape square({width, width}, kind == Halves ? DType::BF16 : DType::F32);
        Expr w = kind == State     ? g.state("w", test::draw(square, Fill::Unit, 1, 5))
                 : kind == Mutable ? g.param("w", square, ParamMode::Mutable)
                                   : g.input("w", square);
        const Expr given = w, x = g.input("x", f32({17, 2, width}));
        if (kind == Computed) w = g.sin(w) * 0.5;
        if (kind == Halves) w = g.cast(w, DType::F32);
        if (transposed) w = g.t(w);
        const LoopResult r =
            g.scan(g.input("h", f32({2, width})), x, [&](Graph& b, const ExprList& c, const ExprList& row) {
              return LoopStep{b.tanh(b.matmul(c[0], w) * 0.1 + row[0])};
            });
        if (kind == State) g.set_state("w", given * 0.5);
        g.set_outputs({r.carries[0]});
        const Seen seen = check_on_cpu(g);
        CHECK(seen.formed_inputs == 1);
        CHECK(seen.made_in_run == 1);
        const CompiledGraph f = Session().compile(Graph(g));
        for (const Node& n : f.compile_result().lir.graph.nodes()) {
          CHECK(n.kind() != OpKind::Transpose);  // values that only the matmuls read are not computed
          CHECK(n.kind() != OpKind::Cast);
          if (const auto* form = n.op.get_if<ops::Relayout>())
            CHECK((form->form.bytes < width * width * 4) == (kind == Halves));
        }
      }
}

TEST_CASE("bodies: one form for a loop's condition, its body and branches in it, and for loops in loops") {
  Graph g("several");
  const Expr a = g.input("a", f32({12, 20})), v = g.input("v", f32({12, 4})), n = g.input("n", Shape({}, DType::I32));
  const Expr flag = g.input("flag", Shape({}, DType::Bool));
  const Expr w = g.concat({a, v}, 1);  // [12, 24]
  const LoopResult r = g.while_loop(
      {g.scalar(0.0, DType::I32), g.input("x", f32({2, 12}))},
      [&](Graph& c, const ExprList& s) {
        return c.binary(BinaryKind::Min, c.lt(s[0], n), c.lt(c.sum(c.matmul(s[1], w)), 1e9));
      },
      [&](Graph& b, const ExprList& s) {
        const Expr y = b.cond(
            flag, [&](Graph& t) { return ExprList{t.narrow(t.matmul(s[1], w), 1, 3, 12)}; },
            [&](Graph& t) { return ExprList{t.matmul(t.matmul(s[1], w), t.t(w)) * 0.05}; })[0];
        const LoopResult inner =
            b.scan(y, g.input("rows", f32({3, 1})), [&](Graph& i, const ExprList& c, const ExprList& row) {
              return LoopStep{i.tanh(i.narrow(i.matmul(c[0], w), 1, 0, 12) + row[0])};
            });
        return LoopStep{{s[0] + 1, inner.carries[0]}, {}};
      });
  g.set_outputs({r.carries[1]});
  for (int trips : {0, 1, 5})
    for (int yes : {0, 1}) {
      NamedTensors values = test::drawn(g);
      values.insert_or_assign("n", Tensor::scalar_i64(DType::I32, trips));
      values.insert_or_assign("flag", Tensor::scalar_i64(DType::Bool, yes));
      const Seen seen = check_on_cpu(g, values);
      CHECK(seen.made_in_run == 2);    // w and its transpose
      CHECK(seen.formed_inputs == 9);  // both in the condition, the body and both branches; w in the scan
    }
}

TEST_CASE("bodies: the gradient of a recurrent cell reads its weight in two forms") {
  Graph g("trained");
  const Expr w = g.input("w", f32({30, 30})), x = g.input("x", f32({19, 4, 30}));
  const LoopResult r = g.scan(g.input("h", f32({4, 30})), x, [&](Graph& b, const ExprList& c, const ExprList& row) {
    return LoopStep{b.tanh(b.matmul(c[0], w) * 0.3 + row[0])};
  });
  g.set_outputs({g.sum(r.carries[0])});
  const Graph both = value_and_grad(g, {"w"}).graph;
  const Seen seen = check_on_cpu(both);
  CHECK(seen.made_in_run == 2);
}

TEST_CASE("bodies: codes, short loops, many rows, carries and what a body computes get no form in a run") {
  Graph g("none");
  const Expr w = g.input("w", f32({10, 10})), codes = g.input("codes", Shape({10, 10}, DType::I8));
  const Expr decoded = g.dequantize(codes, g.input("scale", f32({})));
  const Expr x = g.input("x", f32({4, 10}));
  const LoopResult many = g.scan(
      g.input("h", f32({3, 11, 10})), g.input("long", f32({30, 10})),
      [&](Graph& b, const ExprList& c, const ExprList& row) { return LoopStep{b.tanh(b.matmul(c[0], w) + row[0])}; });
  const LoopResult few = g.scan(
      x, g.input("rows", f32({15, 10})),
      [&](Graph& b, const ExprList& c, const ExprList& row) { return LoopStep{b.tanh(b.matmul(c[0], w) + row[0])}; });
  const LoopResult long_one =
      g.scan({x, w}, {g.input("more rows", f32({20, 10}))}, [&](Graph& b, const ExprList& c, const ExprList& row) {
        const Expr y = b.matmul(b.matmul(b.matmul(c[0], c[1]), b.exp(w * row[0])), decoded);
        return LoopStep{{b.tanh(y), c[1] * 0.5}, {}};
      });
  g.set_outputs({few.carries[0], long_one.carries[0], many.carries[0]});
  const Seen seen = check_on_cpu(g);
  CHECK(seen.made_in_run == 0);
  CHECK(seen.formed_inputs == 0);
}

TEST_CASE("bodies: what is no matrix of the program is read as it is") {
  Graph g("raw");
  const Expr w = g.param("w", f32({2, 3, 10, 10})), x = g.input("x", f32({4, 10}));
  // Nested rows, and a weight that the body computes.
  const LoopResult r = g.scan(x, w, [&](Graph& b, const ExprList& c, const ExprList& outer) {
    const LoopResult inner = b.scan(c[0], outer[0], [&](Graph& i, const ExprList& d, const ExprList& row) {
      return LoopStep{i.tanh(i.matmul(d[0], row[0]) + i.matmul(d[0], i.exp(row[0])) * 0.01)};
    });
    return LoopStep{inner.carries[0]};
  });
  g.set_outputs({r.carries[0]});
  CHECK(check_on_cpu(g).formed_inputs == 0);
}

}  // namespace rlx
