// vmap as users call it: batch axes, shared inputs, nesting, and broadcasting pitfalls.
#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

TEST_CASE("vmap: a batched row added to a shared matrix keeps its axis") {
  // Batch and columns have the same extent, so only the position of the axis distinguishes them.
  Graph g;
  g.set_outputs({g.input("x", Shape({2, 3}, DType::F64)) + g.input("bias", Shape({3}, DType::F64))});
  NamedTensors values{{"x", doubles({2, 3}, {0, 0, 0, 1, 1, 1})},
                      {"bias", doubles({3, 3}, {10, 20, 30, 40, 50, 60, 70, 80, 90})}};
  Tensor y = evaluate(vmap(g, {{"bias", 0}}, 3).graph, values).at(0);
  CHECK(y.dims() == std::vector<std::int64_t>{3, 2, 3});
  expect_close(y, {10, 20, 30, 11, 21, 31, 40, 50, 60, 41, 51, 61, 70, 80, 90, 71, 81, 91}, 0);
}

TEST_CASE("vmap: matrix products of unequal ranks") {
  Graph g;
  g.set_outputs({g.matmul(g.input("a", Shape({2, 1, 2}, DType::F64)), g.input("b", Shape({2, 1}, DType::F64)))});
  NamedTensors values{{"a", doubles({2, 1, 2}, {1, 2, 3, 4})}, {"b", doubles({2, 2, 1}, {1, 0, 0, 1})}};
  expect_close(evaluate(vmap(g, {{"b", 0}}, 2).graph, values).at(0), {1, 3, 2, 4}, 0);
}

TEST_CASE("vmap: gather and scatter keep batches apart") {
  Graph g;
  Expr table = g.input("table", Shape({3, 1}, DType::F64)), ids = g.input("ids", Shape({2}, DType::I32)),
       rows = g.gather(table, ids);
  g.set_outputs({rows, g.scatter_add(table, ids, rows)});
  NamedTensors values{{"table", doubles({2, 3, 1}, {1, 2, 3, 10, 20, 30})},
                      {"ids", Tensor::of<std::int32_t>({2, 2}, std::vector<std::int32_t>{0, 2, 1, 1})}};
  std::vector<Tensor> y = evaluate(vmap(g, {{"table", 0}, {"ids", 0}}, 2).graph, values);
  expect_close(y[0], {1, 3, 20, 20}, 0);
  expect_close(y[1], {2, 2, 6, 10, 60, 30}, 0);
}

TEST_CASE("vmap: weight gradients of a norm are not summed over the batch") {
  Graph g;
  Expr x = g.input("x", Shape({1, 2}, DType::F64)), gamma = g.input("gamma", Shape({2}, DType::F64)),
       dy = g.input("dy", Shape({1, 2}, DType::F64));
  Expr d = g.add(ops::LayerNormBackward{{1}, 0.0, {0b100}}, {x, dy, gamma});
  g.set_outputs({d.result(1), d.result(2)});
  NamedTensors values{{"x", doubles({2, 1, 2}, {0, 2, 5, 1})},
                      {"gamma", doubles({2}, {1, 1})},
                      {"dy", doubles({2, 1, 2}, {1, 2, 3, 4})}};
  std::vector<Tensor> y = evaluate(vmap(g, {{"x", 0}, {"dy", 0}}, 2).graph, values);
  expect_close(y[0], {-1, 2, 3, -4}, 1e-12);
  expect_close(y[1], {1, 2, 3, 4}, 0);
}

TEST_CASE("vmap: softmax and norms stay on their own axis") {
  Graph g;
  g.set_outputs({g.softmax(g.input("x", Shape({2}, DType::F64)), -1)});
  expect_close(evaluate(vmap(g, {{"x", 0}}, 2).graph, {{"x", doubles({2, 2}, {0, 0, 9, 9})}}).at(0),
               {0.5, 0.5, 0.5, 0.5}, 1e-15);
}

TEST_CASE("vmap: an elementwise region over a batched row and a shared column") {
  Graph body("body");
  Expr p = body.input("p", Shape({2, 1}, DType::F64)), q = body.input("q", Shape({3}, DType::F64));
  body.set_outputs({p * q});
  Graph g;
  Expr x = g.input("x", Shape({2, 1}, DType::F64)), y = g.input("y", Shape({3}, DType::F64));
  g.set_outputs({g.add(ops::ElementwiseRegion{std::make_shared<const Graph>(std::move(body))}, {x, y})});
  NamedTensors values{{"x", doubles({2, 1}, {1, 10})}, {"y", doubles({2, 3}, {1, 2, 3, 4, 5, 6})}};
  expect_close(evaluate(vmap(g, {{"y", 0}}, 2).graph, values).at(0), {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60}, 0);
}

TEST_CASE("vmap: axes of leaves and outputs") {
  Graph g;
  Expr x = g.input("x", Shape({2, 3}, DType::F64));
  g.set_outputs({x * 1.0, g.param("w", Shape({2}, DType::F64)) + 1.0});
  // x is given as [2, 3, B], the result is [2, B, 3], and w does not depend on the batch.
  TransformResult r = vmap(g, {{"x", -1}}, 2, {1, std::nullopt});
  CHECK(r.graph.shape(r.graph.find_leaf(OpKind::Input, "x")) == Shape({2, 3, 2}, DType::F64));
  std::vector<Tensor> y = evaluate(
      r.graph, {{"x", doubles({2, 3, 2}, {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15})}, {"w", doubles({2}, {1, 2})}});
  CHECK(y[0].dims() == std::vector<std::int64_t>{2, 2, 3});
  expect_close(y[0], {0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15}, 0);
  CHECK(y[1].dims() == std::vector<std::int64_t>{2});
  // By default every output has the axis.
  CHECK(
      evaluate(vmap(g, {{"x", 0}}, 2).graph, {{"x", sequence({2, 2, 3})}, {"w", doubles({2}, {1, 2})}}).at(1).dims() ==
      std::vector<std::int64_t>{2, 2});
}

TEST_CASE("vmap: nested, symbolic, and with gradients inside and outside") {
  Graph g;
  Expr x = g.input("x", Shape({2}, DType::F64)), w = g.param("w", Shape({2}, DType::F64));
  g.set_outputs({g.sum(g.square(x * w))});
  NamedTensors values{{"x", doubles({3, 2}, {1, 2, 3, 4, 5, 6})}, {"w", doubles({2}, {1, 2})}};
  // Per-example gradients: 2 x^2 w.
  TransformResult each = vmap(value_and_grad(g, {"w"}).graph, {{"x", 0}}, Dim::symbol("batch"));
  expect_close(evaluate(each.graph, values).at(1), {2, 16, 18, 64, 50, 144}, 1e-12);
  // The gradient of the sum over the batch is the sum of these gradients.
  Graph all = vmap(g, {{"x", 0}}, 3).graph;
  all.set_outputs({all.sum(all.expr(all.outputs()[0]))});
  expect_close(evaluate(value_and_grad(all, {"w"}).graph, values).at(1), {70, 224}, 1e-12);
  // Two batch axes: x by rows, w by columns.
  Graph outer = vmap(vmap(g, {{"x", 0}}, 3).graph, {{"w", 0}}, 2).graph;
  values["w"] = doubles({2, 2}, {1, 0, 0, 1});
  Tensor y = evaluate(outer, values).at(0);
  CHECK(y.dims() == std::vector<std::int64_t>{2, 3});
  expect_close(y, {1, 9, 25, 4, 16, 36}, 1e-12);
}

TEST_CASE("vmap: errors") {
  Graph g;
  Expr x = g.input("x", Shape({2}, DType::F64)), s = g.state("s", doubles({2}, {0, 0}));
  g.set_state("s", s + x);
  g.set_outputs({x});
  CHECK(contains(error_text([&] { vmap(g, {{"x", 0}}, 2); }), "the update of state 's' depends on the batch"));
  CHECK(contains(error_text([&] { vmap(g, {{"y", 0}}, 2); }), "no input, param or state 'y'"));
  CHECK(contains(error_text([&] { vmap(g, {{"s", 0}}, 2); }), "state 's' cannot be batched"));
  CHECK(contains(error_text([&] { vmap(g, {{"x", 2}}, 2); }), "in_axes of 'x'"));
  CHECK(contains(error_text([&] { vmap(g, {{"x", 0}}, 2, {0, 0}); }), "2 out_axes for 1 outputs"));
  Graph h;
  h.set_outputs({h.input("x", Shape({2}, DType::F64))});
  CHECK(contains(error_text([&] { vmap(h, {{"x", 0}}, 2, {std::nullopt}); }), "output 0 depends on the batch"));
}

}  // namespace
}  // namespace rlx::test
