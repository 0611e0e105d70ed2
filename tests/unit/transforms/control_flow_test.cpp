// Derivatives and batching of branches, loops and calls, to second order, against the same programs unrolled.
#include <doctest/doctest.h>

#include <cmath>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/count_ops.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

constexpr double kTight = 1e-11;

void expect_same(const Graph& a, const Graph& b, const NamedTensors& values) {
  const std::vector<Tensor> got = evaluate(a, values), expected = evaluate(b, values);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("output ", i);
    expect_close(got[i], expected[i], kTight);
  }
  CompiledGraph f = Session().compile(Graph(a));
  const std::vector<Tensor> compiled = f.run_typed(values);
  for (std::size_t i = 0; i < got.size(); ++i) expect_close(compiled[i], expected[i], kTight);
}

NamedTensors with(NamedTensors values, const TransformResult& t, const Graph& g) {
  std::size_t k = 0;
  for (const std::string& name : t.added_inputs) {
    const Shape& s = t.graph.shape(t.graph.find_leaf(OpKind::Input, name));
    values.emplace(name, sequence(s.static_dims(), 0.5, 0.1 * static_cast<double>(++k)));
  }
  (void)g;
  return values;
}

// Compares values, tangents, cotangents, Hessians and batches of a loss that is written in two ways.
void expect_equivalent(const Graph& a, const Graph& b, const NamedTensors& values, const std::vector<Wrt>& wrt,
                       const std::string& batched, bool second = true) {
  expect_same(a, b, values);
  const TransformResult fa = jvp(a, wrt), fb = jvp(b, wrt);
  expect_same(fa.graph, fb.graph, with(values, fb, b));
  const TransformResult ra = vjp(a, wrt), rb = vjp(b, wrt);
  expect_same(ra.graph, rb.graph, with(values, rb, b));
  if (second) {
    const TransformResult ha = hvp(a, wrt), hb = hvp(b, wrt);
    expect_same(ha.graph, hb.graph, with(values, hb, b));
    // Reverse over reverse: the gradient of a scalar function of the first gradient.
    const auto twice = [&](const Graph& g) {
      GradResult first = value_and_grad(g, wrt);
      Graph& h = first.graph;
      Expr sum = h.expr(h.outputs()[0]);
      for (std::size_t k = 0; k < wrt.size(); ++k) sum = sum + h.sum(h.square(h.expr(h.outputs()[1 + k])));
      h.set_outputs({sum});
      return value_and_grad(h, wrt);
    };
    expect_same(twice(a).graph, twice(b).graph, values);
  }
  NamedTensors stacked = values;
  const Tensor& one = values.at(batched);
  std::vector<std::int64_t> dims = one.dims();
  dims.insert(dims.begin(), 3);
  Tensor many = Tensor::zeros(Shape(Dims(dims.begin(), dims.end()), one.dtype()));
  for (std::int64_t i = 0; i < many.num_elements(); ++i)
    many.set(i, one.at(i % one.num_elements()) + 0.125 * static_cast<double>(i / one.num_elements()));
  stacked[batched] = many;
  expect_same(vmap(a, {{batched, 0}}, 3).graph, vmap(b, {{batched, 0}}, 3).graph, stacked);
  expect_same(vmap(value_and_grad(a, wrt).graph, {{batched, 0}}, 3).graph,
              vmap(value_and_grad(b, wrt).graph, {{batched, 0}}, 3).graph, stacked);
}

// h' = tanh(h W + x), y = h' * h; a loss of the last h and all ys.
Graph recurrent(bool written_out, bool reverse, bool checkpoint) {
  constexpr std::int64_t kSteps = 4;
  Graph g(written_out ? "unrolled" : "scan");
  const Expr w = g.input("w", f64({3, 3})), h0 = g.input("h", f64({2, 3})), x = g.input("x", f64({kSteps, 2, 3}));
  Expr last, ys;
  if (written_out) {
    std::vector<Expr> rows(kSteps);
    last = h0;
    for (std::int64_t s = 0; s < kSteps; ++s) {
      const std::int64_t t = reverse ? kSteps - 1 - s : s;
      const Expr row = g.squeeze(g.narrow(x, 0, t, 1), 0);
      const Expr next = g.tanh(g.matmul(last, w) + row);
      rows[static_cast<std::size_t>(t)] = g.unsqueeze(next * last, 0);
      last = next;
    }
    ys = g.concat(rows, 0);
  } else {
    const LoopResult r = g.scan(h0, x,
                                [&](Graph& b, const ExprList& c, const ExprList& row) {
                                  const Expr next = b.tanh(b.matmul(c[0], w) + row[0]);
                                  return LoopStep{next, next * c[0]};
                                },
                                {.reverse = reverse, .checkpoint = checkpoint});
    last = r.carries[0], ys = r.ys[0];
  }
  g.set_outputs({g.sum(g.square(last)) + g.sum(ys * ys * ys)});
  return g;
}
const NamedTensors kCell{
    {"w", sequence({3, 3}, 0.5)}, {"h", sequence({2, 3}, 0.4, 0.1)}, {"x", sequence({4, 2, 3}, 0.3)}};

TEST_CASE("a scan and its unrolled form: values, jvp, vjp, second order, vmap") {
  for (bool reverse : {false, true})
    for (bool checkpoint : {false, true})
      for (const char* batched : {"w", "h", "x"}) {
        CAPTURE(reverse);
        CAPTURE(checkpoint);
        expect_equivalent(recurrent(false, reverse, checkpoint), recurrent(true, reverse, false), kCell,
                          {"w", "h", "x"}, batched, !reverse);
      }
}

TEST_CASE("a gradient of a scan stays two scans, and stores what its body's derivative reads") {
  const GradResult r = value_and_grad(recurrent(false, false, false), {"w", "h", "x"});
  CHECK(count_ops(r.graph, OpKind::Scan) == 2);
  const GradResult c = value_and_grad(recurrent(false, false, true), {"w", "h", "x"});
  const auto residuals = [](const Graph& g) {
    for (const Node& n : g.nodes())
      if (n.kind() == OpKind::Scan) return n.num_results();
    return 0U;
  };
  CHECK(residuals(r.graph) == 4);  // h, ys, and tanh and h of each step
  CHECK(residuals(c.graph) == 3);  // h, ys, and h of each step
}

Graph branches(bool written_out) {
  Graph g;
  const Expr x = g.input("x", f64({3})), y = g.input("y", f64({3})), flag = g.gt(g.sum(x), 0.0);
  const auto yes = [&](Graph& b) { return ExprList{b.sin(x * y) * b.exp(y)}; };
  const auto no = [&](Graph& b) { return ExprList{b.tanh(b.tanh(x)) * x}; };
  const Expr r = written_out ? g.where(flag, yes(g)[0], no(g)[0]) : g.cond(flag, yes, no)[0];
  g.set_outputs({g.sum(g.square(r))});
  return g;
}

TEST_CASE("a branch and its select: values, jvp, vjp, second order, vmap") {
  for (double offset : {1.0, -1.0}) {
    CAPTURE(offset);
    const NamedTensors values{{"x", sequence({3}, 0.3, offset)}, {"y", sequence({3}, 0.5, 0.2)}};
    for (const char* batched : {"x", "y"})
      expect_equivalent(branches(false), branches(true), values, {"x", "y"}, batched);
  }
  // Examples of a batch differ in sign: some take one branch, some the other.
  const NamedTensors values{{"x", doubles({3}, {-0.3, 0.1, 0.05})}, {"y", sequence({3}, 0.5, 0.2)}};
  expect_equivalent(branches(false), branches(true), values, {"x", "y"}, "x");
}

// sqrt(x) w for x > 0, else x; neither the root of an example that does not take it nor its slope by w is finite.
TEST_CASE("the gradient of a batch of branches has nothing of a branch that an example does not take") {
  Graph g;
  const Expr x = g.input("x", f64({})), w = g.input("w", f64({}));
  g.set_outputs({g.cond(
      g.gt(x, 0.0), ExprList{x, w}, [](Graph& b, const ExprList& in) { return ExprList{b.sqrt(in[0]) * in[1]}; },
      [](Graph&, const ExprList& in) { return ExprList{in[0] * 1.0}; })[0]});
  const auto gradients = [&](const std::vector<double>& xs) {
    Graph batched = vmap(g, {{"x", 0}}, static_cast<std::int64_t>(xs.size())).graph;
    const GradResult r = grad(batched, {"x", "w"});
    const Tensor at = doubles({static_cast<std::int64_t>(xs.size())}, xs), ones = Tensor::zeros(at.shape());
    Tensor seed = ones;
    for (std::int64_t i = 0; i < seed.num_elements(); ++i) seed.set(i, 1);
    return evaluate(r.graph, {{"x", at}, {"w", Tensor::scalar(DType::F64, 3)}, {r.added_inputs[0], seed}});
  };
  std::vector<Tensor> got = gradients({-1, 0, 4, 0.25});
  expect_close(got[0], {1, 1, 0.75, 3}, 1e-15);
  expect_close(got[1], {2.5}, 1e-15);
  got = gradients({-1, 0});
  expect_close(got[0], {1, 1}, 0);
  expect_close(got[1], {0}, 0);
}

// x' = x + a sin(x) while sum(x) < limit, at most `bound` iterations, with a row of ys each.
Graph looped(bool written_out, std::int64_t bound) {
  Graph g;
  const Expr x0 = g.input("x", f64({2})), a = g.input("a", f64({2}));
  Expr last = x0, ys;
  if (written_out) {
    std::vector<Expr> rows;
    Expr active = g.constant(Tensor::scalar_i64(DType::Bool, 1));
    for (std::int64_t t = 0; t < bound; ++t) {
      active = g.bit_and(active, g.lt(g.sum(last), 4.0));
      const Expr next = last + a * g.sin(last);
      rows.push_back(g.unsqueeze(g.where(active, next * a, 0.0), 0));
      last = g.where(active, next, last);
    }
    ys = g.concat(rows, 0);
  } else {
    const LoopResult r = g.while_loop(
        x0, [](Graph& b, const ExprList& c) { return b.lt(b.sum(c[0]), 4.0); },
        [&](Graph& b, const ExprList& c) {
          const Expr next = c[0] + a * b.sin(c[0]);
          return LoopStep{next, next * a};
        },
        {.max_iterations = bound});
    last = r.carries[0], ys = r.ys[0];
  }
  g.set_outputs({g.sum(g.square(last)) + g.sum(ys * ys)});
  return g;
}

TEST_CASE("a while loop and its masked unrolling: values, jvp, vjp, second order, vmap") {
  const NamedTensors values{{"x", doubles({2}, {0.5, 1})}, {"a", doubles({2}, {0.7, 0.4})}};
  for (std::int64_t bound : {2, 7})
    for (const char* batched : {"x", "a"}) {
      CAPTURE(bound);
      expect_equivalent(looped(false, bound), looped(true, bound), values, {"x", "a"}, batched);
    }
}

TEST_CASE("vmap of a while loop whose bound is shared runs it without masks") {
  Graph g;
  const Expr x = g.input("x", f64({})), n = g.input("n", Shape({}, DType::I32));
  const LoopResult r = g.while_loop(
      {x, n}, [](Graph& b, const ExprList& c) { return b.gt(c[1], 0); },
      [](Graph&, const ExprList& c) {
        return LoopStep{{c[0] * 2, c[1] - 1}};
      });
  g.set_outputs({r.carries[0], r.iterations});
  const Graph batched = vmap(g, {{"x", 0}}, 2).graph;
  for (const Node& node : batched.nodes())
    if (node.kind() == OpKind::While) CHECK(node.num_results() == 3);
  const std::vector<Tensor> got =
      evaluate(batched, {{"x", doubles({2}, {1, 3})}, {"n", Tensor::scalar_i64(DType::I32, 3)}});
  expect_close(got[0], {8, 24}, 0);
  CHECK(got[1].at_i64(1) == 3);
}

TEST_CASE("reverse mode of a while loop without a bound says the way out") {
  Graph g;
  const Expr x = g.input("x", f64({}));
  g.set_outputs({g.while_loop(
                      x, [](Graph& b, const ExprList& c) { return b.lt(c[0], 9.0); },
                      [](Graph&, const ExprList& c) { return LoopStep{c[0] * 2}; })
                     .carries[0]});
  const std::string text = error_text([&] { (void)value_and_grad(g, {"x"}); });
  CHECK_MESSAGE(contains(text, "needs a bound on its iterations"), text);
  CHECK(contains(text, "give it max_iterations"));
  CHECK(contains(text, "control_flow_test.cpp:"));
  const TransformResult forward = jvp(g, {"x"});
  const std::vector<Tensor> got = evaluate(forward.graph, {{"x", doubles({}, {1})}, {"tangent_x", doubles({}, {1})}});
  expect_close(got[1], {16}, 0);
}

TEST_CASE("no derivative passes stop_gradient: what stands behind it needs no rule for one") {
  Graph g;
  const Expr x = g.input("x", f64({}));
  const Expr doubled = g.while_loop(
                            g.stop_gradient(x), [](Graph& b, const ExprList& c) { return b.lt(c[0], 9.0); },
                            [](Graph&, const ExprList& c) { return LoopStep{c[0] * 2}; })
                           .carries[0];
  g.set_outputs({doubled * x});
  const NamedTensors at{{"x", doubles({}, {3})}};
  expect_close(evaluate(value_and_grad(g, {"x"}).graph, at)[1], {12}, 0);
  const TransformResult forward = jvp(g, {"x"});
  const std::vector<Tensor> got = evaluate(forward.graph, {{"x", doubles({}, {3})}, {"tangent_x", doubles({}, {2})}});
  expect_close(got[1], {24}, 0);
  Graph none;
  none.set_outputs({none.stop_gradient(none.input("x", f64({})))});
  expect_close(evaluate(value_and_grad(none, {"x"}).graph, at)[1], {0}, 0);
}

Graph layers(const std::optional<CallSave>& save) {
  Graph g;
  const Expr x = g.input("x", f64({2, 3})), w = g.input("w", f64({3, 3}));
  Expr h = x;
  for (int layer = 0; layer < 2; ++layer) {
    const auto body = [&](Graph& b, const ExprList& in) {
      return ExprList{b.tanh(b.matmul(b.sin(in[0]), in[1])) + in[0]};
    };
    h = save ? g.checkpoint({h, w}, body, *save)[0] : body(g, {h, w})[0];
  }
  g.set_outputs({g.sum(g.square(h))});
  return g;
}

TEST_CASE("a checkpoint: the same derivatives, whatever it keeps") {
  const NamedTensors values{{"x", sequence({2, 3}, 0.4)}, {"w", sequence({3, 3}, 0.5)}};
  for (CallSave save : {CallSave::All, CallSave::Dots, CallSave::Nothing})
    for (const char* batched : {"x", "w"}) {
      CAPTURE(static_cast<int>(save));
      expect_equivalent(layers(save), layers({}), values, {"x", "w"}, batched);
    }
}

TEST_CASE("a checkpoint computes again behind a barrier: all of it, or what is no product") {
  const auto work = [](CallSave save) {
    const GradResult r = value_and_grad(layers(save), {"x", "w"});
    CompileOptions options;
    options.fusion.skip_fusion = true;
    const CompileResult c = CompilePipeline(Session().target(), options).compile_module(r.graph.module());
    std::pair<std::size_t, std::size_t> out;
    for (const Node& n : c.lir.graph.nodes()) {
      if (const auto* a = n.op.get_if<ops::Activation>()) out.first += a->fn == ActivationKind::Tanh;
      out.second += n.kind() == OpKind::DotGeneral || n.kind() == OpKind::FusedDot;
    }
    return out;
  };
  const auto all = work(CallSave::All), dots = work(CallSave::Dots), nothing = work(CallSave::Nothing);
  CHECK(all.first == 2);
  CHECK(dots.first == 4);
  CHECK(nothing.first == 4);
  CHECK(dots.second == all.second);
  CHECK(nothing.second == all.second + 2);
}

TEST_CASE("a function with derivatives of its own: they are taken, in every mode") {
  using L = const ExprList&;
  // f(x, y) = x y, with a custom derivative by x that is 10 times too large.
  CustomFn fn;
  fn.body = [](Graph&, L in) { return ExprList{in[0] * in[1]}; };
  fn.forward = [](Graph&, L in) { return ExprList{in[0] * in[1], in[1], in[0]}; };
  fn.backward = [](Graph&, L in) { return ExprList{in[2] * in[0] * 10, in[2] * in[1]}; };
  fn.jvp = [](Graph&, L in) { return ExprList{in[0] * in[1], in[2] * in[1] * 10 + in[0] * in[3]}; };
  const NamedTensors values{{"x", doubles({}, {3})}, {"y", doubles({}, {5})}};
  for (int parts = 0; parts < 4; ++parts) {
    CAPTURE(parts);
    CustomFn f = fn;
    if (parts == 1) f.jvp = nullptr;
    if (parts == 2) f.forward = nullptr, f.backward = nullptr;
    if (parts == 3)
      f.forward = nullptr, f.jvp = nullptr, f.backward = [](Graph&, L in) {  // x, y, result, cotangent
        return ExprList{in[3] * in[1] * 10, in[3] * in[0]};
      };
    Graph g;
    g.set_outputs({g.custom_fn({g.input("x", f64({})), g.input("y", f64({}))}, f)[0]});
    const std::vector<Tensor> grads = evaluate(value_and_grad(g, {"x", "y"}).graph, values);
    expect_close(grads[0], {15}, 0);
    expect_close(grads[1], {50}, 0);
    expect_close(grads[2], {3}, 0);
    NamedTensors moving = values;
    moving.emplace("tangent_x", doubles({}, {1}));
    moving.emplace("tangent_y", doubles({}, {2}));
    if (f.jvp)
      expect_close(evaluate(jvp(g, {"x", "y"}).graph, moving)[1], {56}, 0);
    else
      CHECK(contains(error_text([&] { (void)jvp(g, {"x", "y"}); }), "but no jvp body"));
    // Batched over x alone: y is shared, and its gradient is the sum over the per-example gradients.
    const Graph batched = vmap(value_and_grad(g, {"x", "y"}).graph, {{"x", 0}}, 2).graph;
    const std::vector<Tensor> many = evaluate(batched, {{"x", doubles({2}, {3, 4})}, {"y", doubles({}, {5})}});
    expect_close(many[1], {50, 50}, 0);
    expect_close(many[2], {3, 4}, 0);
    const Graph over = vmap(g, {{"x", 0}}, 2).graph;
    Graph sum = over;
    sum.set_outputs({sum.sum(sum.expr(sum.outputs()[0]))});
    const std::vector<Tensor> shared =
        evaluate(value_and_grad(sum, {"y", "x"}).graph, {{"x", doubles({2}, {3, 4})}, {"y", doubles({}, {5})}});
    expect_close(shared[1], {7}, 0);
    expect_close(shared[2], {50, 50}, 0);
  }
}

TEST_CASE("linearize and Jacobians go through loops") {
  const Graph a = recurrent(false, false, false), b = recurrent(true, false, false);
  expect_same(jacrev(a, {"h"}).graph, jacrev(b, {"h"}).graph, kCell);
  expect_same(jacfwd(a, {"h"}).graph, jacfwd(b, {"h"}).graph, kCell);
  expect_same(hessian(a, {"h"}).graph, hessian(b, {"h"}).graph, kCell);
  const Linearized l = linearize(a, {"h"});
  NamedTensors values = kCell;
  const std::vector<Tensor> point = evaluate(l.primal.graph, values);
  expect_close(point[0], evaluate(b, values)[0], kTight);
  NamedTensors at{{l.tangents[0], sequence({2, 3}, 0.3)}};
  for (std::size_t k = 0; k < l.residuals.size(); ++k) at.emplace(l.residuals[k], point[1 + k]);
  for (NodeId id : l.linear.leaves(OpKind::Param))
    at.emplace(l.linear.leaf_name(id), values.at(l.linear.leaf_name(id)));
  const TransformResult forward = jvp(b, {"h"});
  values.emplace("tangent_h", sequence({2, 3}, 0.3));
  expect_close(evaluate(l.linear, at)[0], evaluate(forward.graph, values)[1], kTight);
}

}  // namespace
}  // namespace rlx::test
