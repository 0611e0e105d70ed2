// Reverse and forward mode as users call them: names, seeds, outputs, symbols, states, errors.
#include <memory>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/ir/verify.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// loss = sum((x w)^2), and a second output without a cotangent.
Graph small_model() {
  Graph g("model");
  Expr x = g.input("x", Shape({2, 2}, DType::F64)), w = g.param("w", Shape({2, 1}, DType::F64));
  Expr y = g.matmul(x, w);
  g.set_label(y.value().node, "projection");
  g.set_outputs({g.sum(g.square(y)), y});
  return g;
}
const NamedTensors kValues{{"x", doubles({2, 2}, {1, 2, 3, 4})},
                           {"w", doubles({2, 1}, {1, -1})}};  // y = (-1, -1), loss 2

TEST_CASE("vjp refuses an output whose extent the graph computes, and names it") {
  Graph g("ragged");
  const Expr x = g.input("x", Shape({4}, DType::F32)), n = g.input("n", Shape({}, DType::I64));
  const Expr y = g.exp(x), first = g.first(y, n);
  g.set_outputs({g.sum(first), first});
  const std::string text = error_text([&] { (void)vjp(g, {"x"}); });
  CHECK_MESSAGE(contains(text, "vjp: output 1 is ["), text);
  CHECK_MESSAGE(contains(text, "remove it from the outputs"), text);
  CHECK(value_and_grad(g, {"x"}).graph.outputs().size() == 3);  // it has no cotangent here
  g.set_outputs({g.sum(first)});
  CHECK(vjp(g, {"x"}).graph.outputs().size() == 2);
  g.set_outputs({first});
  CHECK(contains(error_text([&] { (void)grad(g, {"x"}); }), "grad: output 0 is ["));
}

TEST_CASE("value_and_grad: [loss, gradients, other outputs], no new input") {
  GradResult r = value_and_grad(small_model(), {"w", "x"});
  CHECK(r.added_inputs.empty());
  std::vector<Tensor> out = evaluate(r.graph, kValues);
  REQUIRE(out.size() == 4);
  expect_close(out[0], {2}, 0);
  expect_close(out[1], {-8, -12}, 1e-14);  // 2 x^T y
  expect_close(out[2], {-2, 2, -2, 2}, 1e-14);
  expect_close(out[3], {-1, -1}, 0);
}

TEST_CASE("grad_with_loss takes the cotangent of the loss as an input") {
  GradResult r = grad_with_loss(small_model(), {"w"});
  CHECK(r.added_inputs == std::vector<std::string>{"d_output"});
  NamedTensors values = kValues;
  values.emplace("d_output", doubles({}, {0.5}));
  std::vector<Tensor> out = evaluate(r.graph, values);
  REQUIRE(out.size() == 3);
  expect_close(out[1], {-4, -6}, 1e-14);
  std::vector<Tensor> only = evaluate(grad(small_model(), {"w"}).graph, values);
  REQUIRE(only.size() == 1);
  expect_close(only[0], {-4, -6}, 1e-14);
}

TEST_CASE("vjp sums the cotangents of several outputs") {
  GradResult r = vjp(small_model(), {"w"});
  CHECK(r.added_inputs == std::vector<std::string>{"d_output_0", "d_output_1"});
  NamedTensors values = kValues;
  values.emplace("d_output_0", doubles({}, {1}));
  values.emplace("d_output_1", doubles({2, 1}, {10, 0}));
  std::vector<Tensor> out = evaluate(r.graph, values);
  REQUIRE(out.size() == 3);
  expect_close(out[2], {-8 + 10, -12 + 20}, 1e-14);
}

TEST_CASE("the ids lead from forward values to their places") {
  Graph g = small_model();
  GradResult r = value_and_grad(g, {"w"});
  CHECK(r.ids.at(g.outputs()[0]) == r.graph.outputs()[0]);
  Value w = g.find_leaf(OpKind::Param, "w");
  CHECK(r.graph.leaf_name(r.ids.at(w).node) == "w");
  CHECK(verify(r.graph, Level::Mir).empty());
}

TEST_CASE("gradients by an inner value") {
  Graph g = small_model();
  NamedTensors values = kValues;
  std::vector<Tensor> out = evaluate(value_and_grad(g, {g.outputs()[1], "w"}).graph, values);
  expect_close(out[1], {-2, -2}, 1e-14);
  expect_close(out[2], {-8, -12}, 1e-14);
}

TEST_CASE("a leaf the loss does not reach has zero gradients and tangents") {
  Graph g;
  Expr x = g.input("x", Shape({2}, DType::F64));
  g.input("unused", Shape({3}, DType::F32));
  g.set_outputs({g.sum(g.stop_gradient(x) * 2.0)});
  NamedTensors values{{"x", doubles({2}, {1, 2})}, {"unused", Tensor::zeros(Shape({3}, DType::F32))}};
  std::vector<Tensor> out = evaluate(value_and_grad(g, {"unused", "x"}).graph, values);
  CHECK(out[1].shape() == Shape({3}, DType::F32));
  expect_close(out[1], {0, 0, 0}, 0);
  expect_close(out[2], {0, 0}, 0);
  values.emplace("tangent_x", doubles({2}, {1, 1}));
  expect_close(evaluate(jvp(g, {"x"}).graph, values).at(1), {0}, 0);
}

TEST_CASE("integer outputs have zero tangents and no cotangent input") {
  Graph g;
  Expr x = g.input("x", Shape({3}, DType::F64));
  Builder::TopKResult top = g.top_k(x, 2);
  g.set_outputs({top.values, top.indices});
  NamedTensors values{{"x", doubles({3}, {1, 5, 3})}, {"tangent_x", doubles({3}, {10, 20, 30})}};
  std::vector<Tensor> out = evaluate(jvp(g, {"x"}).graph, values);
  REQUIRE(out.size() == 4);
  expect_close(out[2], {20, 30}, 0);
  CHECK(out[3].shape() == Shape({2}, DType::I32));
  expect_close(out[3], {0, 0}, 0);
  CHECK(vjp(g, {"x"}).added_inputs == std::vector<std::string>{"d_output_0"});
}

TEST_CASE("derivatives of derivatives: x^4") {
  Graph g;
  Expr x = g.input("x", Shape({}, DType::F64));
  g.set_outputs({g.square(g.square(x))});
  NamedTensors values{{"x", doubles({}, {2})}};
  const double expected[] = {32, 48, 48, 24, 0};
  for (double e : expected) {
    GradResult r = value_and_grad(g, {"x"});
    g = std::move(r.graph);
    g.set_outputs({g.expr(g.outputs()[1])});
    expect_close(evaluate(g, values).at(0), {e}, 1e-12);
  }
  // With seeds as inputs, the second seed gets another name.
  Graph f;
  f.set_outputs({f.square(f.input("x", Shape({}, DType::F64)))});
  GradResult twice = grad(grad(f, {"x"}).graph, {"x"});
  CHECK(twice.added_inputs == std::vector<std::string>{"d_output_2"});
}

TEST_CASE("symbolic shapes stay symbolic") {
  Graph g;
  Dim batch = g.symbol("batch");
  Expr x = g.input("x", Shape({batch, 2}, DType::F64)), w = g.param("w", Shape({2}, DType::F64));
  g.set_outputs({g.mean(g.tanh(x * w))});
  GradResult r = value_and_grad(g, {"w"});
  CHECK_FALSE(r.graph.is_static());
  NamedTensors values{{"x", doubles({3, 2}, {1, 2, 3, 4, 5, 6})}, {"w", doubles({2}, {0, 0})}};
  expect_close(evaluate(r.graph, values).at(1), {9.0 / 6, 12.0 / 6}, 1e-14);
}

TEST_CASE("state updates survive") {
  Graph g;
  Expr x = g.input("x", Shape({}, DType::F64)), s = g.state("count", doubles({}, {5}));
  g.set_state("count", s + 1.0);
  g.set_outputs({x * s});
  EvaluateResult r = evaluate_with_states(value_and_grad(g, {"x"}).graph, {{"x", doubles({}, {2})}});
  expect_close(r.outputs.at(1), {5}, 0);
  expect_close(r.states.at("count"), {6}, 0);
}

TEST_CASE("composite ops are taken apart on the way, in blocks too") {
  Graph g;
  Expr x = g.input("x", Shape({1, 2}, DType::F64)), w = g.param("w", Shape({2, 2}, DType::F64)),
       b = g.param("b", Shape({2}, DType::F64));
  g.set_outputs({g.sum(g.linear(x, w, b, ActivationKind::Relu))});
  GradResult r = value_and_grad(g, {"b"});
  CHECK(verify(r.graph, Level::Mir).empty());  // no block is left
  NamedTensors values{
      {"x", doubles({1, 2}, {1, 1})}, {"w", doubles({2, 2}, {1, -1, 1, -1})}, {"b", doubles({2}, {0, 0})}};
  expect_close(evaluate(r.graph, values).at(1), {1, 0}, 0);
}

TEST_CASE("backward nodes say where they came from") {
  Graph g = small_model();
  GradResult r = value_and_grad(g, {"w"});
  bool found = false;
  for (const Node& n : r.graph.nodes())
    found = found || (n.origin.pass == "value_and_grad" && n.origin.label == "projection");
  CHECK(found);
}

TEST_CASE("errors name the leaf, the op and the way out") {
  Graph g = small_model();
  CHECK(contains(error_text([&] { grad(g, {"ww"}); }), "did you mean 'w'"));
  CHECK(contains(error_text([&] { grad(g, {NodeId{99}}); }), "%99 is not a value of graph 'model'"));
  CHECK(contains(error_text([&] { jvp(g, {g.outputs()[1]}); }), "not an input, param or state"));
  CHECK(contains(error_text([&] { jvp(g, {"x", "x"}); }), "listed twice"));
  CHECK(contains(error_text([&] { grad(Graph("empty"), {}); }), "'empty' has no outputs"));
  g.set_outputs({g.expr(g.outputs()[1])});
  CHECK(contains(error_text([&] { value_and_grad(g, {"w"}); }), "the loss must have one element, got [2, 1] f64"));
  Graph h;
  Expr n = h.input("n", Shape({2}, DType::I32));
  h.set_outputs({h.cast(n, DType::F32)});
  CHECK(contains(error_text([&] { grad(h, {"n"}); }), "'n' is [2] i32, which has no derivative"));
}

TEST_CASE("an op without a rule is an error with its reason") {
  const OpDef& def = ops::Relayout::def;
  Graph g;
  Expr x = g.input("x", Shape({4, 2}, DType::F32));
  g.set_outputs({g.add(ops::Relayout{{"panels", {16}, 256}, 4, 2, false, DType::F32, {2, 0, 2, 1}}, {x})});
  REQUIRE(def.vjp.reason() != nullptr);
  std::string text = error_text([&] { vjp(g, {"x"}); });
  CHECK(contains(text, "unsupported: vjp: relayout has no reverse-mode derivative"));
  CHECK(contains(text, def.vjp.reason()));
  CHECK(contains(text, "= relayout("));
  CHECK(contains(error_text([&] { jvp(g, {"x"}); }), def.jvp.reason()));
}

}  // namespace
}  // namespace rlx::test
