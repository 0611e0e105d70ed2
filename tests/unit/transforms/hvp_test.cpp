// Second order: a small network, an encoder layer and a decoder layer against differences of their gradients;
// Jacobians.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/samples.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// Random values for every leaf of `g`.
NamedTensors draw_leaves(const Graph& g) {
  NamedTensors out;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind)) out.emplace(g.leaf_name(id), draw(g.shape(id), Fill::Unit, 1, 17 + out.size()));
  return out;
}

// Gradients against differences of the loss, Hv against differences of the gradients, and u.Hv = v.Hu.
void check_second_order(const Graph& g, const std::vector<std::string>& names) {
  const NamedTensors values = draw_leaves(g);
  std::vector<Wrt> wrt(names.begin(), names.end());
  GradResult first = value_and_grad(g, wrt);
  TransformResult second = hvp(g, wrt);
  auto run = [&](const NamedTensors& direction) {
    NamedTensors all = values;
    all.emplace("d_output", Tensor::scalar(DType::F64, 1));
    for (const auto& [name, v] : direction) all.emplace("tangent_" + name, v);
    return evaluate(second.graph, all);
  };
  NamedTensors u, v;
  for (const std::string& name : names) {
    u.emplace(name, draw(values.at(name).shape(), Fill::Unit, 1, 300 + u.size()));
    v.emplace(name, draw(values.at(name).shape(), Fill::Unit, 1, 400 + v.size()));
  }
  const std::size_t n = names.size();
  std::vector<Tensor> with_v = run(v), with_u = run(u);
  REQUIRE(with_v.size() == 2 * (1 + n));
  constexpr double kStep = 1e-5;
  NamedTensors up = values, down = values;
  for (const auto& [name, d] : v) {
    up[name] = add_scaled(values.at(name), kStep, d);
    down[name] = add_scaled(values.at(name), -kStep, d);
  }
  std::vector<Tensor> above = evaluate(first.graph, up), below = evaluate(first.graph, down),
                      here = evaluate(first.graph, values);
  double slope = 0, v_hu = 0, u_hv = 0;
  for (std::size_t i = 0; i < n; ++i) {
    INFO("leaf ", names[i]);
    CHECK(distance(with_v[1 + i], here[1 + i]) < 1e-13);
    Tensor difference = add_scaled(above[1 + i], -1, below[1 + i]);
    difference = add_scaled(Tensor::zeros(difference.shape()), 0.5 / kStep, difference);
    CHECK(distance(with_v[2 + n + i], difference) < 1e-6);
    slope += dot(here[1 + i], v.at(names[i]));
    u_hv += dot(with_v[2 + n + i], u.at(names[i]));
    v_hu += dot(with_u[2 + n + i], v.at(names[i]));
  }
  CHECK(std::fabs(with_v[1 + n].at(0) - slope) < 1e-11);
  CHECK(std::fabs(slope - (above[0].at(0) - below[0].at(0)) / (2 * kStep)) < 1e-7);
  CHECK(std::fabs(u_hv - v_hu) < 1e-11);
  CHECK(std::fabs(u_hv) > 1e-6);  // the second derivative is not 0 here
}

TEST_CASE("hvp: a small network") {
  for (ActivationKind fn : {ActivationKind::Gelu, ActivationKind::Relu, ActivationKind::Tanh}) {
    Graph g;
    Expr x = g.input("x", Shape({3, 4}, DType::F64)), y = g.input("y", Shape({3, 2}, DType::F64));
    Expr w1 = g.param("w1", Shape({4, 5}, DType::F64)), b1 = g.param("b1", Shape({5}, DType::F64)),
         w2 = g.param("w2", Shape({5, 2}, DType::F64));
    Expr out = g.matmul(g.activation(fn, g.matmul(x, w1) + b1), w2);
    g.set_outputs({g.mean(g.square(g.log_softmax(out) - y))});
    check_second_order(g, {"w1", "b1", "w2", "x"});
  }
}

TEST_CASE("hvp: an encoder layer") {
  Graph g;
  auto f = [&](const char* name, Dims dims) { return g.param(name, Shape(std::move(dims), DType::F64)); };
  Expr x = g.input("x", Shape({1, 3, 4}, DType::F64));
  std::vector<Expr> operands{x,
                             f("w_q", {4, 4}),
                             f("b_q", {4}),
                             f("w_k", {4, 4}),
                             f("b_k", {4}),
                             f("w_v", {4, 4}),
                             f("b_v", {4}),
                             f("w_o", {4, 4}),
                             f("b_o", {4}),
                             f("ln1_gamma", {4}),
                             f("ln1_beta", {4}),
                             f("w_up", {4, 6}),
                             f("b_up", {6}),
                             f("w_down", {6, 4}),
                             f("b_down", {4}),
                             f("ln2_gamma", {4}),
                             f("ln2_beta", {4})};
  Expr out = g.encoder_block({.num_heads = 2, .head_dim = 2, .eps = 1e-3}, operands);
  g.set_outputs({g.mean(g.square(out + 0.5))});
  check_second_order(g, {"x", "w_q", "b_k", "w_v", "w_o", "ln1_gamma", "ln1_beta", "w_up", "b_down", "ln2_gamma"});
}

TEST_CASE("hvp: a decoder layer") {
  Graph g;
  auto f = [&](const char* name, Dims dims) { return g.param(name, Shape(std::move(dims), DType::F64)); };
  Expr x = g.input("x", Shape({1, 3, 4}, DType::F64));
  std::vector<Expr> operands{x,
                             f("ln1_gamma", {4}),
                             f("w_q", {4, 4}),
                             f("w_k", {4, 2}),
                             f("w_v", {4, 2}),
                             f("w_o", {4, 4}),
                             f("ln2_gamma", {4}),
                             f("w_gate", {4, 6}),
                             f("w_up", {4, 6}),
                             f("w_down", {6, 4}),
                             f("cos", {3, 1}),
                             f("sin", {3, 1})};
  Expr out = g.llama_decoder_block({.num_heads = 2, .kv_heads = 1, .head_dim = 2, .eps = 1e-3}, operands);
  g.set_outputs({g.mean(g.square(out + 0.5))});
  check_second_order(g, {"x", "ln1_gamma", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_down", "cos"});
}

TEST_CASE("Jacobians and Hessians") {
  // y = (a b, a + b^2); J = [[b, a], [1, 2 b]].
  Graph g;
  Expr x = g.input("x", Shape({2}, DType::F64));
  Expr a = g.narrow(x, 0, 0, 1), b = g.narrow(x, 0, 1, 1);
  g.set_outputs({g.concat({a * b, a + g.square(b)}, 0)});
  NamedTensors values{{"x", doubles({2}, {3, 5})}};
  expect_close(evaluate(jacrev(g, {"x"}).graph, values).at(0), {5, 3, 1, 10}, 1e-12);
  expect_close(evaluate(jacfwd(g, {"x"}).graph, values).at(0), {5, 3, 1, 10}, 1e-12);
  // f = a^2 b + b^3; H = [[2 b, 2 a], [2 a, 6 b]].
  Graph f;
  Expr p = f.input("p", Shape({1}, DType::F64)), q = f.input("q", Shape({1}, DType::F64));
  f.set_outputs({f.sum(p * p * q + q * q * q)});
  std::vector<Tensor> h = evaluate(hessian(f, {"p", "q"}).graph, {{"p", doubles({1}, {3})}, {"q", doubles({1}, {5})}});
  REQUIRE(h.size() == 4);
  CHECK(h[1].dims() == std::vector<std::int64_t>{1, 1});
  const double expected[] = {10, 6, 6, 30};
  for (std::size_t i = 0; i < 4; ++i) expect_close(h[i], {expected[i]}, 1e-12);
  // The shapes of a Jacobian are the output dims, then the leaf dims.
  Graph m;
  Expr w = m.param("w", Shape({2, 3}, DType::F64));
  m.set_outputs({m.sum(m.tanh(w), {1})});
  NamedTensors wv{{"w", sequence({2, 3})}};
  Tensor rev = evaluate(jacrev(m, {"w"}).graph, wv).at(0), fwd = evaluate(jacfwd(m, {"w"}).graph, wv).at(0);
  CHECK(rev.dims() == std::vector<std::int64_t>{2, 2, 3});
  expect_close(rev, fwd, 1e-14);
}

}  // namespace
}  // namespace rlx::test
