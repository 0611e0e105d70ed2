// Branches, loops and calls as users build them: values, captured values, errors, text, and the effect of passes.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/module.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/passes/passes.h"
#include "rlx/runtime/session.h"
#include "tests/support/count_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// Runs on the evaluator, and compiled for the cpu and the reference backend: the same values.
std::vector<Tensor> run_everywhere(const Graph& g, const NamedTensors& values) {
  for (const Diagnostic& d : verify(g, Level::Mir)) FAIL_CHECK(d.text());
  std::vector<Tensor> expected = evaluate(g, values);
  CompiledGraph f = Session().with_threads(2).compile(Graph(g));
  const std::vector<Tensor> got = f.run_typed(values);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], expected[i], 1e-12);
  CHECK(same_graph(parse_text(print_text(g)), g));
  CHECK(same_graph(from_bytes(to_bytes(g)), g));
  return expected;
}

TEST_CASE("cond: the branch that pred names runs; captured values become operands") {
  Graph g("g");
  const Expr x = g.input("x", f64({3})), y = g.input("y", f64({3})), flag = g.input("flag", Shape({}, DType::Bool));
  const ExprList out = g.cond(
      flag,
      [&](Graph& b) {
        return ExprList{b.sin(x), x};
      },
      [&](Graph& b) {
        return ExprList{y * b.exp(x), b.add(x, y)};
      });
  g.set_outputs(out);
  const Tensor a = sequence({3}), c = sequence({3}, 0.5, 1);
  const NamedTensors base{{"x", a}, {"y", c}};
  for (bool yes : {true, false}) {
    NamedTensors values = base;
    values.emplace("flag", Tensor::scalar_i64(DType::Bool, yes));
    const std::vector<Tensor> got = run_everywhere(g, values);
    for (std::int64_t i = 0; i < 3; ++i) {
      CHECK(got[0].at(i) == doctest::Approx(yes ? std::sin(a.at(i)) : c.at(i) * std::exp(a.at(i))));
      CHECK(got[1].at(i) == doctest::Approx(yes ? a.at(i) : a.at(i) + c.at(i)));
    }
  }
  const Node& node = g.node(out[0].value().node);
  CHECK(node.inputs.size() == 3);  // pred, x once for both branches, y
}

TEST_CASE("scan: running sums, forwards and backwards, ys in the order of the xs") {
  for (bool reverse : {false, true}) {
    Graph g("g");
    const Expr x = g.input("x", f64({4})), step = g.input("step", f64({}));
    const LoopResult r = g.scan(g.scalar(10.0, DType::F64), x,
                                [&](Graph&, const ExprList& c, const ExprList& row) {
                                  const Expr next = c[0] + row[0] * step;
                                  return LoopStep{next, next};
                                },
                                {.reverse = reverse});
    g.set_outputs({r.carries[0], r.ys[0]});
    const std::vector<Tensor> got = run_everywhere(g, {{"x", doubles({4}, {1, 2, 3, 4})}, {"step", doubles({}, {2})}});
    expect_close(got[0], {30}, 0);
    expect_close(got[1], reverse ? std::vector<double>{30, 28, 24, 18} : std::vector<double>{12, 16, 22, 30}, 0);
  }
}

TEST_CASE("scan: bodies in bodies take values of any graph around them") {
  Graph g("g");
  const Expr x = g.input("x", f64({2, 3})), a = g.input("a", f64({}));
  const LoopResult r = g.scan(g.scalar(0.0, DType::F64), x, [&](Graph& outer, const ExprList& c, const ExprList& row) {
    const LoopResult inner = outer.scan(c, row, [&](Graph&, const ExprList& d, const ExprList& e) {
      return LoopStep{d[0] * a + e[0] + c[0]};  // a is captured from two graphs up, c from one
    });
    return LoopStep{inner.carries, inner.carries};
  });
  g.set_outputs({r.carries[0], r.ys[0]});
  double carry = 0;
  std::vector<double> ys;
  for (int i = 0; i < 2; ++i) {
    double d = carry;
    for (int k = 0; k < 3; ++k) d = d * 0.5 + (3 * i + k) + carry;
    carry = d;
    ys.push_back(carry);
  }
  const std::vector<Tensor> got =
      run_everywhere(g, {{"x", doubles({2, 3}, {0, 1, 2, 3, 4, 5})}, {"a", doubles({}, {0.5})}});
  expect_close(got[0], {carry}, 1e-14);
  expect_close(got[1], ys, 1e-14);
}

TEST_CASE("while: stops by its condition or silently at max_trips; rows behind the trips are zero") {
  for (std::optional<std::int64_t> bound : {std::optional<std::int64_t>(), std::optional<std::int64_t>(6),
                                            std::optional<std::int64_t>(2), std::optional<std::int64_t>(0)}) {
    Graph g("g");
    const Expr x = g.input("x", f64({})), limit = g.input("limit", f64({}));
    const LoopResult r = g.while_loop(
        x, [&](Graph& b, const ExprList& c) { return b.lt(c[0], limit); },
        [&](Graph&, const ExprList& c) {
          return LoopStep{c[0] * 2, bound ? ExprList{c[0]} : ExprList{}};
        },
        {.max_iterations = bound});
    ExprList outputs{r.carries[0], r.iterations};
    if (bound) outputs.push_back(r.ys[0]);
    g.set_outputs(outputs);
    const std::vector<Tensor> got = run_everywhere(g, {{"x", doubles({}, {1})}, {"limit", doubles({}, {10})}});
    const std::int64_t trips = std::min<std::int64_t>(4, bound.value_or(100));
    expect_close(got[0], {std::ldexp(1.0, static_cast<int>(trips))}, 0);
    CHECK(got[1].at_i64(0) == trips);
    if (!bound) continue;
    std::vector<double> rows(static_cast<std::size_t>(*bound), 0);
    for (std::int64_t t = 0; t < trips; ++t) rows[static_cast<std::size_t>(t)] = std::ldexp(1.0, static_cast<int>(t));
    expect_close(got[2], rows, 0);
  }
}

TEST_CASE("call, checkpoint and the barrier give the values of their bodies") {
  Graph g("g");
  const Expr x = g.input("x", f64({2})), w = g.input("w", f64({2}));
  const Expr a = g.call("layer", x, [&](Graph& b, const ExprList& in) { return b.tanh(in[0] * w); })[0];
  const Expr c = g.checkpoint(a, [](Graph& b, const ExprList& in) { return b.exp(in[0]); })[0];
  const ExprList held = g.optimization_barrier({a, c});
  g.set_outputs({held[0] + held[1], g.custom_fn(x, {[](Graph& b, const ExprList& in) { return b.square(in[0]); }})[0]});
  const std::vector<Tensor> got = run_everywhere(g, {{"x", doubles({2}, {1, -2})}, {"w", doubles({2}, {0.5, 0.25})}});
  const double t = std::tanh(0.5), u = std::tanh(-0.5);
  expect_close(got[0], {t + std::exp(t), u + std::exp(u)}, 1e-14);
  expect_close(got[1], {1, 4}, 0);
}

TEST_CASE("a symbolic length: one graph, any number of steps") {
  Graph g("g");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  const Expr x = g.input("x", f64({n, 2}));
  const LoopResult r =
      g.scan(g.constant(Tensor::zeros(f64({2}))), x, [](Graph&, const ExprList& c, const ExprList& row) {
        return LoopStep{c[0] + row[0], c[0] - row[0]};
      });
  g.set_outputs({r.carries[0], r.ys[0]});
  CHECK(same_graph(parse_text(print_text(g)), g));
  for (const bool open : {false, true}) {
    CompileOptions options;
    if (open) options.symbol_modes["n"] = SymbolMode::runtime();
    CompiledGraph f = Session().compile_with(Graph(g), options);
    for (std::int64_t rows : {5, 1, 8}) {
      const NamedTensors values{{"x", sequence({rows, 2})}};
      const std::vector<Tensor> got = f.run_typed(values), expected = evaluate(g, values);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].identical(expected[i]));
    }
  }
}

TEST_CASE("a scan of no steps leaves stacked rows of symbolic extents that are no constants") {
  Graph g("g");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  const Expr x = g.input("x", f64({n, 2})), rows = g.input("rows", f64({0}));
  const LoopResult r = g.scan(x, rows, [](Graph&, const ExprList& c, const ExprList& row) {
    return LoopStep{c[0] * row[0], c[0]};
  });
  g.set_outputs({r.carries[0], r.ys[0]});
  PassContext context;
  const std::optional<Graph> simple = simplify_control_flow.run(g, context);
  REQUIRE(simple);
  CHECK(same_graph(from_bytes(to_bytes(*simple)), *simple));
  CHECK(same_graph(parse_text(print_text(*simple)), *simple));
  const NamedTensors values{{"x", sequence({3, 2})}, {"rows", Tensor::zeros(f64({0}))}};
  const std::vector<Tensor> got = Session().compile(Graph(g)).run_typed(values);
  CHECK(got[0].identical(values.at("x")));
  CHECK(got[1].shape() == f64({0, 3, 2}));
}

TEST_CASE("a length that no shape shows is a symbol of the graph all the same") {
  Graph g("g");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  const Expr x = g.input("x", f64({n})), y = g.input("y", f64({}));
  const ExprList r = g.cond(
      g.gt(y, 0.0),
      [&](Graph& b) {
        return b
            .scan(y, {}, [](Graph&, const ExprList& c, const ExprList&) { return LoopStep{c[0] * 2}; }, {.length = n})
            .carries;
      },
      [&](Graph&) { return y; });
  g.set_outputs({r[0], g.sum(x)});
  const Node& node = g.node(r[0].value().node);
  const Graph& body = *node.op.as<ops::If>().then;
  CHECK_FALSE(body.is_static());
  CHECK(body.dynamic_symbols() == std::vector<std::string>{"n"});
  CHECK(body.symbols().at("n") == SymbolInfo{1, 8});
  CompileOptions open;
  open.symbol_modes["n"] = SymbolMode::runtime();
  for (const CompileOptions& options : {CompileOptions{}, open}) {
    CompiledGraph f = Session().compile_with(Graph(g), options);
    for (std::int64_t rows : {3, 5}) {
      const NamedTensors values{{"x", sequence({rows})}, {"y", doubles({}, {3})}};
      expect_close(evaluate(g, values)[0], {std::ldexp(3, static_cast<int>(rows))}, 0);
      expect_close(f.run_typed(values)[0], {std::ldexp(3, static_cast<int>(rows))}, 0);
    }
  }
}

TEST_CASE("mixed precision leaves the types that bodies state") {
  Graph g("g");
  const Shape row({2}, DType::F32);
  const Expr x = g.input("x", Shape({3, 2}, DType::F32)), h = g.input("h", row);
  const LoopResult r = g.scan(g.tanh(h), g.sin(x), [](Graph& b, const ExprList& c, const ExprList& in) {
    return LoopStep{b.tanh(c[0] + in[0]), c[0]};
  });
  g.set_outputs({r.carries[0], r.ys[0], g.optimization_barrier(g.exp(h))[0]});
  CompileOptions options;
  options.precision = PrecisionPolicy::of_precision(Precision::BF16);
  CompiledGraph f = Session().compile_with(Graph(g), options);
  const NamedTensors values{{"x", sequence({3, 2}, 0.3, 0, DType::F32)}, {"h", sequence({2}, 0.3, 0, DType::F32)}};
  const std::vector<Tensor> got = f.run_typed(values), exact = evaluate(g, values);
  for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], exact[i], 0.02);
}

TEST_CASE("what cannot be a body is refused by name") {
  Graph g("g"), other("other");
  const Expr x = g.input("x", f64({2})), foreign = other.input("f", f64({2}));
  const auto scan_of = [&](const ScanFn& body) { return error_text([&] { (void)g.scan(x, x, body); }); };
  using L = const ExprList&;
  std::string text = scan_of([&](Graph&, L c, L) { return LoopStep{c[0] + foreign}; });
  CHECK_MESSAGE(contains(text, "belongs to graph 'other'"), text);
  text = scan_of([&](Graph& b, L c, L) { return LoopStep{c[0] + b.param("w", f64({2}))}; });
  CHECK_MESSAGE(contains(text, "declares param 'w', which is not allowed"), text);
  CHECK(contains(text, "control_flow_test.cpp:"));
  text = scan_of([&](Graph& b, L c, L) { return LoopStep{c[0] + b.input("w", f64({2}))}; });
  CHECK_MESSAGE(contains(text, "declares input 'w', which is not allowed"), text);
  text = scan_of([&](Graph& b, L c, L) { return LoopStep{b.cast(c[0], DType::F32)}; });
  CHECK_MESSAGE(contains(text, "carry 0 is [2] f64 before a step and [2] f32 after it"), text);
  text = scan_of([&](Graph&, L, L) { return LoopStep{ExprList{}}; });
  CHECK_MESSAGE(contains(text, "returns 0 carries, but the loop has 1"), text);
  text = scan_of([&](Graph&, L c, L) { return LoopStep{g.tanh(c[0])}; });
  CHECK_MESSAGE(contains(text, "which is built inside graph 'g'"), text);
  Expr leaked;
  (void)g.scan(x, x, [&](Graph&, L c, L) { return LoopStep{leaked = c[0]}; });
  CHECK(contains(error_text([&] { (void)g.tanh(leaked); }), "after its graph was moved, compiled or destroyed"));
  text = error_text([&] { (void)g.scan(x, {}, [](Graph&, L c, L) { return LoopStep{c[0]}; }); });
  CHECK_MESSAGE(contains(text, "the length is not known"), text);
  text = error_text([&] {
    (void)g.while_loop(
        x, [](Graph& b, L c) { return b.gt(c[0], 0); }, [](Graph&, L c) { return LoopStep{c[0]}; });
  });
  CHECK_MESSAGE(contains(text, "cond must return a Bool scalar, got [2] bool"), text);
  text = error_text([&] {
    (void)g.while_loop(
        x, [](Graph& b, L c) { return b.gt(b.sum(c[0]), 0); },
        [](Graph&, L c) {
          return LoopStep{c[0], c[0]};
        });
  });
  CHECK_MESSAGE(contains(text, "1 ys, but without max_iterations"), text);
  text = error_text([&] {
    (void)g.cond(
        g.gt(x, 0), [&](Graph&) { return x; }, [&](Graph&) { return x; });
  });
  CHECK_MESSAGE(contains(text, "pred must be a Bool scalar, got [2] bool"), text);
  const Expr flag = g.gt(g.sum(x), 0);
  text = error_text([&] {
    (void)g.cond(
        flag, [&](Graph&) { return x; }, [&](Graph& b) { return b.sum(x); });
  });
  CHECK_MESSAGE(contains(text, "result 0 is [2] f64 in the branch then, but [] f64 in else"), text);
  text = error_text([&] { (void)g.custom_fn(x, {[&](Graph&, L in) { return in[0] * flag; }}); });
  CHECK_MESSAGE(contains(text, "not one of its operands"), text);
  text = error_text([&] {
    (void)g.custom_fn(x,
                      {[](Graph& b, L in) { return b.sin(in[0]); }, {}, [](Graph& b, L in) { return b.sum(in[2]); }});
  });
  CHECK_MESSAGE(contains(text, "value 0 of backward is [] f64, not [2] f64"), text);
  const auto two = [](Graph&, L in) { return ExprList{in[0], in[0]}; };
  text = error_text([&] { (void)g.custom_fn(x, {[](Graph& b, L in) { return b.sin(in[0]); }, {}, two}); });
  CHECK_MESSAGE(contains(text, "custom_fn: backward gives 2 values, not 1"), text);
  CHECK_MESSAGE(contains(text, "hint: return one cotangent for each float operand"), text);
  const auto one = [](Graph&, L in) { return in[0]; };
  text = error_text([&] { (void)g.custom_fn(x, {[](Graph& b, L in) { return b.sin(in[0]); }, {}, {}, one}); });
  CHECK_MESSAGE(contains(text, "custom_fn: jvp gives 1 values, not 2"), text);
  text = error_text([&] {
    (void)g.cond(
        flag, [](Graph&) { return ExprList(); }, [](Graph&) { return ExprList(); });
  });
  CHECK_MESSAGE(contains(text, "returns no value"), text);
  CHECK_MESSAGE(contains(text, "hint: return at least one value"), text);
  // A hand-made body with a free value.
  Graph bad("bad");
  bad.set_outputs({bad.param("w", f64({2}))});
  text = error_text([&] { (void)g.add(ops::Call{CallSave::All, std::make_shared<const Graph>(bad)}, {}); });
  CHECK_MESSAGE(contains(text, "the body holds a param"), text);
}

TEST_CASE("equal loops are one, and a loop that differs inside its body is not") {
  const auto loops = [](double second) {
    Graph g("g");
    const Expr x = g.input("x", f64({3}));
    ExprList out;
    for (double factor : {2.0, second})
      out.push_back(g.scan(g.scalar(0.0, DType::F64), x, [&](Graph&, const ExprList& c, const ExprList& row) {
                       return LoopStep{c[0] + row[0] * factor};
                     }).carries[0]);
    g.set_outputs({out[0] + out[1]});
    return g;
  };
  const Pass* passes[] = {&eliminate_common_subexpressions};
  CHECK(count_ops(run_passes(loops(2), passes, {}), OpKind::Scan) == 1);
  CHECK(count_ops(run_passes(loops(3), passes, {}), OpKind::Scan) == 2);
  CHECK(fingerprint(loops(2)) == fingerprint(loops(2)));
  CHECK_FALSE(fingerprint(loops(2)) == fingerprint(loops(3)));
}

TEST_CASE("the compiler keeps a recomputation apart, and runs passes inside bodies") {
  Graph g("g");
  const Expr x = g.input("x", f64({4, 2}));
  const Expr held = g.optimization_barrier(x)[0];
  const LoopResult r =
      g.scan(g.constant(Tensor::zeros(f64({2}))), x, [](Graph& b, const ExprList& c, const ExprList& row) {
        return LoopStep{c[0] + b.sin(row[0]) * b.sin(row[0]) + (b.scalar(1.0, DType::F64) + 2), c[0]};
      });
  g.set_outputs({g.sin(x) + g.sin(held), r.carries[0]});
  CompiledGraph f = Session().compile(Graph(g));
  const NamedTensors values{{"x", sequence({4, 2})}};
  const std::vector<Tensor> got = f.run_typed(values), expected = evaluate(g, values);
  for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], expected[i], 1e-12);
  CompileOptions options;
  options.keep_stages = true;
  options.fusion.skip_fusion = true;
  const CompileResult compiled = CompilePipeline(Session().target(), options).compile_module(g.module());
  const Graph& lir = compiled.lir.graph;
  std::size_t sines = 0;
  for (const Node& n : lir.nodes()) {
    if (const auto* a = n.op.get_if<ops::Activation>()) sines += a->fn == ActivationKind::Sin;
    if (const auto* s = n.op.get_if<ops::Scan>()) {
      CHECK(s->body->outputs().size() == 1);                // no one reads the y
      CHECK(count_ops(*s->body, OpKind::Activation) == 1);  // equal sines are merged
      CHECK(count_ops(*s->body, OpKind::Constant) == 1);    // 1 + 2
    }
  }
  CHECK(sines == 2);  // sin of x, and sin of the value after the barrier
  CHECK(count_ops(lir, OpKind::Scan) == 1);
}

TEST_CASE("blocks inside bodies are lowered with the graph, at every stage") {
  Graph g("g");
  const Expr w = g.param("w", Shape({2, 2}, DType::F32)), x = g.input("x", Shape({3, 1, 2}, DType::F32));
  g.set_outputs({g.scan(g.constant(Tensor::zeros(Shape({1, 2}, DType::F32))), x,
                        [&](Graph& b, const ExprList& c, const ExprList& row) {
                          return LoopStep{b.linear(c[0] + row[0], w, std::nullopt, ActivationKind::Tanh)};
                        })
                     .carries[0]});
  const NamedTensors values{{"w", sequence({2, 2}, 1, 0, DType::F32)}, {"x", sequence({3, 1, 2}, 1, 0, DType::F32)}};
  const Tensor expected = evaluate(g, values)[0];
  const GraphModule module = g.module();
  CHECK(module.stage() == GraphStage::Hir);
  const Graph mir = module.hir().lower_to_mir().graph;
  CHECK(verify(mir, Level::Mir).empty());
  expect_close(evaluate(mir, values)[0], expected, 1e-6);
  CompiledGraph f = Session().compile(Graph(g));
  f.set_param("w", values.at("w").to_f32());
  expect_close(f.run_typed({{"x", values.at("x")}})[0], expected, 1e-6);
}

}  // namespace
}  // namespace rlx::test
