// Derivatives and batching of shape, indexing and reduction ops in cases where a simple rule is wrong: zeros, ties,
// masked rows, clamped and dropped indices. Values are hand-computed.
#include <cmath>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::doubles;
using test::expect_close;

// The gradient of sum(f(x) * cotangent) by x; the default cotangent is ones.
Tensor gradient(const Tensor& x, const std::function<Expr(Graph&, Expr)>& f,
                const std::vector<double>& cotangent = {}) {
  Graph g;
  const Expr y = f(g, g.input("x", x.shape()));
  g.set_outputs({y});
  Tensor ct = Tensor::full(y.shape(), 1);
  for (std::size_t i = 0; i < cotangent.size(); ++i) ct.set(static_cast<std::int64_t>(i), cotangent[i]);
  return evaluate(grad(g, {"x"}).graph, {{"x", x}, {"d_output", ct}}).at(0);
}

Tensor ids(std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
  return Tensor::of<std::int32_t>(std::move(dims), values);
}

TEST_CASE("the gradient of a product is right where factors are zero") {
  auto prod = [](Graph& g, Expr x) { return g.reduce_prod(x); };
  expect_close(gradient(doubles({3}, {2, 0, 3}), prod), {0, 6, 0}, 0);
  expect_close(gradient(doubles({3}, {0, 0, 3}), prod), {0, 0, 0}, 0);
  expect_close(gradient(doubles({3}, {2, 5, 3}), prod), {15, 6, 10}, 0);
  // Over axes 0 and 2 of [2, 2, 2]: groups {1, 2, 5, 0} and {3, 4, 6, 7}.
  expect_close(gradient(doubles({2, 2, 2}, {1, 2, 3, 4, 5, 0, 6, 7}),
                        [](Graph& g, Expr x) {
                          return g.reduce_prod(x, {0, 2});
                        }),
               {0, 0, 4 * 6 * 7, 3 * 6 * 7, 0, 10, 3 * 4 * 7, 3 * 4 * 6}, 0);
}

TEST_CASE("the Hessian of a product with a zero factor") {
  Graph g;
  g.set_outputs({g.reduce_prod(g.input("x", Shape({3}, DType::F64)))});
  const Tensor h = evaluate(hessian(g, {"x"}).graph, {{"x", doubles({3}, {2, 0, 3})}}).at(0);
  expect_close(h, {0, 3, 0, 3, 0, 2, 0, 2, 0}, 0);
}

TEST_CASE("tied extrema share their gradient equally") {
  const Tensor x = doubles({4}, {1, 3, 3, 0});
  expect_close(gradient(x, [](Graph& g, Expr v) { return g.reduce_max(v); }, {6}), {0, 3, 3, 0}, 0);
  expect_close(gradient(doubles({2, 2}, {5, 5, 1, 2}), [](Graph& g, Expr v) { return g.reduce_min(v, {1}); }, {4, 8}),
               {2, 2, 8, 0}, 0);
}

TEST_CASE("running products with zeros") {
  const Tensor x = doubles({3}, {2, 0, 3});  // y = {2, 0, 0}
  auto scan = [](bool exclusive, bool reverse) {
    return [=](Graph& g, Expr v) { return g.cumulative(CumulativeKind::Prod, v, 0, exclusive, reverse); };
  };
  expect_close(gradient(x, scan(false, false)), {1 + 0 + 0, 2 + 6, 0}, 0);
  expect_close(gradient(x, scan(true, false)), {1 + 0, 2, 0}, 0);          // y = {1, a, ab}
  expect_close(gradient(x, scan(false, true)), {0, 6 + 3, 0 + 0 + 1}, 0);  // y = {abc, bc, c}
  expect_close(gradient(x, scan(true, true)), {0, 3, 0 + 1}, 0);           // y = {bc, c, 1}
}

TEST_CASE("a running maximum passes its gradient to the sources of each value") {
  // y = {1, 3, 3, 3}: y1 from x1, y2 and y3 from x1 and x2.
  const auto cummax = [](Graph& g, Expr v) { return g.cumulative(CumulativeKind::Max, v, 0); };
  expect_close(gradient(doubles({4}, {1, 3, 3, 2}), cummax, {10, 1, 4, 8}), {10, 1 + 2 + 4, 2 + 4, 0}, 0);
}

TEST_CASE("softmax: the gradient of a fully masked row is zero") {
  const Tensor x = doubles({2, 2}, {-HUGE_VAL, -HUGE_VAL, 0, std::log(3.0)});
  // y = {1/4, 3/4}; dx = y (g - sum(g y)) with g = {1, 5}: sum = 4
  expect_close(gradient(x, [](Graph& g, Expr v) { return g.softmax(v); }, {1, 5, 1, 5}), {0, 0, -0.75, 0.75}, 1e-15);
}

TEST_CASE("gather's gradient goes to the row that was read, scatter_add's to the updates that arrived") {
  const Tensor table = doubles({3}, {1, 2, 3});
  expect_close(gradient(table,
                        [](Graph& g, Expr v) {
                          return g.gather(v, g.constant(ids({4}, {-4, 1, 1, 9})));
                        },
                        {1, 2, 4, 8}),
               {1, 6, 8}, 0);
  const Tensor updates = doubles({4}, {1, 1, 1, 1});
  const auto scatter = [](Graph& g, Expr v) {
    return g.scatter_add(g.constant(doubles({3}, {0, 0, 0})), g.constant(ids({4}, {-1, 2, 0, 3})), v);
  };
  expect_close(gradient(updates, scatter, {10, 20, 30}), {0, 30, 10, 0}, 0);
}

TEST_CASE("the padding value collects the cotangents of the padding") {
  Graph g;
  const Expr x = g.constant(doubles({2}, {1, 2})), value = g.input("x", Shape({}, DType::F64));
  g.set_outputs({g.pad(x, {1}, {-1}, value, {1})});  // v, x0, v
  const Tensor d =
      evaluate(grad(g, {"x"}).graph, {{"x", Tensor::scalar(DType::F64, 9)}, {"d_output", doubles({3}, {1, 2, 4})}})
          .at(0);
  expect_close(d, {5}, 0);
}

TEST_CASE("strided slices and top_k put their cotangents back") {
  expect_close(
      gradient(doubles({5}, {0, 1, 2, 3, 4}), [](Graph& g, Expr v) { return g.slice(v, {1}, {5}, {2}); }, {7, 9}),
      {0, 7, 0, 9, 0}, 0);
  expect_close(gradient(doubles({2, 3}, {1, 9, 5, 7, 2, 8}), [](Graph& g, Expr v) { return g.top_k(v, 2).values; },
                        {1, 2, 3, 4}),
               {0, 1, 2, 4, 0, 3}, 0);
}

TEST_CASE("a batched softmax normalises within each member, not over the batch") {
  Graph g;
  g.set_outputs({g.softmax(g.input("x", Shape({2}, DType::F64)), -1)});
  const Tensor y = evaluate(vmap(g, {{"x", 0}}, 2).graph, {{"x", doubles({2, 2}, {0, 0, 0, std::log(3.0)})}}).at(0);
  expect_close(y, {0.5, 0.5, 0.25, 0.75}, 1e-15);
}

TEST_CASE("batched tables with batched indices") {
  Graph g;
  const Expr table = g.input("table", Shape({3}, DType::F64)), at = g.input("at", Shape({2}, DType::I32));
  g.set_outputs({g.gather(table, at), g.scatter_add(table, at, g.constant(doubles({2}, {10, 20})))});
  const auto out = evaluate(vmap(g, {{"table", 0}, {"at", 0}}, 2).graph,
                            {{"table", doubles({2, 3}, {1, 2, 3, 4, 5, 6})}, {"at", ids({2, 2}, {2, 0, -1, 5})}});
  expect_close(out[0], {3, 1, 4, 6}, 0);          // clamped within their own batch entry
  expect_close(out[1], {21, 2, 13, 4, 5, 6}, 0);  // dropped, not added to a neighbour
}

TEST_CASE("dynamic windows at batched positions") {
  Graph g;
  const Expr x = g.input("x", Shape({4}, DType::F64)), at = g.input("at", Shape({1}, DType::I32));
  g.set_outputs({g.dynamic_slice(x, at, {2}), g.dynamic_update_slice(x, g.constant(doubles({2}, {8, 9})), at)});
  const auto out =
      evaluate(vmap(g, {{"at", 0}}, 3).graph, {{"x", doubles({4}, {0, 1, 2, 3})}, {"at", ids({3, 1}, {-5, 1, 7})}});
  expect_close(out[0], {0, 1, 1, 2, 2, 3}, 0);
  expect_close(out[1], {8, 9, 2, 3, 0, 8, 9, 3, 0, 1, 8, 9}, 0);
}

TEST_CASE("x^0 is flat, at the infinities and 0 too") {
  for (double a : {HUGE_VAL, -HUGE_VAL, 0.0, 3.0}) {
    Graph g;
    g.set_outputs({g.pow(g.input("x", Shape({1}, DType::F64)), g.input("b", Shape({1}, DType::F64)))});
    const Graph d = grad(g, {"x"}).graph;
    expect_close(
        evaluate(d, {{"x", doubles({1}, {a})}, {"b", doubles({1}, {0})}, {"d_output", doubles({1}, {1})}}).at(0), {0},
        0);
    expect_close(gradient(doubles({1}, {a}), [](Graph& h, Expr x) { return h.pow(x, 0.0); }), {0}, 0);
  }
}

TEST_CASE("derivatives of running and reduced products and extrema hold where a symbol is 0") {
  using Function = Expr (*)(Graph&, Expr);
  const Function functions[] = {
      [](Graph& g, Expr x) { return g.cumprod(x, 0); },
      [](Graph& g, Expr x) { return g.cumprod(x, 0, true, true); },
      [](Graph& g, Expr x) { return g.cummax(x, 0); },
      [](Graph& g, Expr x) { return g.cummin(x, 0, false, true); },
      [](Graph& g, Expr x) { return g.reduce_prod(x, {0}, true); },
  };
  for (Function f : functions)
    for (std::int64_t n : {0, 1, 3}) {
      Graph g;
      const Expr x = g.input("x", Shape({g.symbol("n"), 2}, DType::F64));
      g.set_outputs({g.sum(f(g, x))});
      const Graph first = grad(g, {"x"}).graph;
      const Graph second = hvp(g, {"x"}).graph;  // reverse mode of the derivative rule of the product
      const Tensor v = test::sequence({n, 2});
      CHECK(evaluate(first, {{"x", v}, {"d_output", doubles({}, {1})}}).at(0).num_elements() == 2 * n);
      const NamedTensors values = {{"x", v}, {"tangent_x", v}, {"d_output", doubles({}, {1})}};
      for (const Tensor& t : evaluate(second, values))
        for (std::int64_t i = 0; i < t.num_elements(); ++i) CHECK(std::isfinite(t.at(i)));
    }
}

TEST_CASE("the gradient of a running extremum: ties share equally up to each position, NaN passes nothing on") {
  auto up = [](Graph& g, Expr x) { return g.cummax(x, 0); };
  // y = 1 3 3 3 3 5: the third 3 ties with the first from position 3 on.
  expect_close(gradient(doubles({6}, {1, 3, 2, 3, 0, 5}), up, {1, 10, 20, 30, 40, 7}), {1, 10 + 20 + 35, 0, 35, 0, 7},
               0);
  expect_close(gradient(doubles({3}, {2, 2, 2}), up, {6, 6, 6}), {6 + 3 + 2, 3 + 2, 2}, 1e-15);
  expect_close(gradient(doubles({4}, {1, NAN, 3, 4}), up, {1, 10, 100, 1000}), {1, 0, 0, 0}, 0);
  expect_close(gradient(doubles({3}, {NAN, 1, 2}), up), {0, 0, 0}, 0);
  expect_close(gradient(doubles({2}, {-HUGE_VAL, -HUGE_VAL}), up, {4, 4}), {6, 2}, 0);
  expect_close(
      gradient(doubles({4}, {1, 3, 3, 2}), [](Graph& g, Expr x) { return g.cummax(x, 0, true); }, {1, 2, 4, 8}),
      {2, 8, 4, 0}, 0);
  expect_close(
      gradient(doubles({4}, {2, 1, 1, 3}), [](Graph& g, Expr x) { return g.cummin(x, 0, false, true); }, {1, 2, 4, 8}),
      {0, 1.5, 5.5, 8}, 0);
  // Along the first of two axes.
  expect_close(gradient(doubles({2, 2}, {1, 5, 1, 6}), up, {1, 2, 4, 8}), {3, 2, 2, 8}, 0);
}

TEST_CASE("the gradient of a running maximum takes memory and time linear in its length") {
  const std::int64_t n = 80000;  // [n, n] would be 25 GB
  Tensor x = Tensor::zeros(Shape({n}, DType::F32));
  for (std::int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i / 7 % 3 == 0 ? i : 0));
  const Tensor d = gradient(x, [](Graph& g, Expr v) { return g.cummax(v, 0); });
  double total = 0;
  for (float v : d.to_f32()) total += static_cast<double>(v);
  CHECK(std::fabs(total - static_cast<double>(n)) < 1);
}

}  // namespace
}  // namespace rlx
