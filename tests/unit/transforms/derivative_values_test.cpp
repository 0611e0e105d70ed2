// Derivatives with hand-computed values, in both modes.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

// The tangent of the one output for tangents of the named leaves.
Tensor tangent(const Graph& g, NamedTensors values, const NamedTensors& directions) {
  std::vector<Wrt> wrt;
  for (const auto& [name, t] : directions) wrt.push_back(name);
  TransformResult r = jvp(g, wrt);
  for (const auto& [name, t] : directions) values.emplace("tangent_" + name, t);
  return evaluate(r.graph, values).at(1);
}
// The gradients for cotangent `ct` of the one output.
std::vector<Tensor> gradients(const Graph& g, NamedTensors values, const std::vector<Wrt>& wrt, const Tensor& ct) {
  values.emplace("d_output", ct);
  return evaluate(grad(g, wrt).graph, values);
}
Tensor scalar(double v) { return doubles({}, {v}); }

Graph unary(ActivationKind fn, Shape shape = Shape({}, DType::F64)) {
  Graph g;
  g.set_outputs({g.activation(fn, g.input("x", std::move(shape)))});
  return g;
}
void expect_slope(ActivationKind fn, double x, double slope) {
  INFO(std::string(enum_name(fn)), " at ", x);
  Graph g = unary(fn);
  expect_close(tangent(g, {{"x", scalar(x)}}, {{"x", scalar(1)}}), {slope}, 1e-12);
  expect_close(gradients(g, {{"x", scalar(x)}}, {"x"}, scalar(1)).at(0), {slope}, 1e-12);
}

TEST_CASE("activations: slopes at chosen points") {
  expect_slope(ActivationKind::Gelu, 0.5, 0.8674951246561629);  // cdf + x pdf, not the slope of the tanh form
  expect_slope(ActivationKind::GeluApprox, 0.5, 0.8673699035346424);
  Graph far = unary(ActivationKind::GeluApprox, Shape({}, DType::F32));  // where 1 + tanh cancels
  const Tensor slope = tangent(far, {{"x", Tensor::scalar(DType::F32, -5)}}, {{"x", Tensor::scalar(DType::F32, 1)}});
  CHECK(slope.at(0) == doctest::Approx(-1.5463619875325933e-06).epsilon(1e-5));
  expect_slope(ActivationKind::Tan, 0.5, 1.2984464104095248);  // 1 + tan^2, not 1 - tanh^2
  expect_slope(ActivationKind::Abs, 0, 0);
  expect_slope(ActivationKind::Abs, -2, -1);
  expect_slope(ActivationKind::Relu, 0, 0);
  expect_slope(ActivationKind::Relu, 3, 1);
  expect_slope(ActivationKind::Round, 1.2, 0);
  expect_slope(ActivationKind::Floor, 1.2, 0);
  expect_slope(ActivationKind::Sign, 1.2, 0);
  expect_slope(ActivationKind::Elu, 0, 1);
  expect_slope(ActivationKind::HardSwish, -4, 0);
  expect_slope(ActivationKind::HardSwish, 4, 1);
  expect_slope(ActivationKind::HardSwish, 1, 5.0 / 6);
  expect_slope(ActivationKind::Softsign, -1, 0.25);
}

TEST_CASE("RMS norm: the input gradient") {
  // r = 1 / sqrt(mean(x^2)) = sqrt(0.4); dx = r dy - x r^3 mean(dy x).
  Graph g;
  Expr x = g.input("x", Shape({1, 2}, DType::F64)), gamma = g.param("gamma", Shape({2}, DType::F64)),
       beta = g.param("beta", Shape({2}, DType::F64));
  g.set_outputs({g.rms_norm(x, gamma, beta, 0.0)});
  NamedTensors values{{"x", doubles({1, 2}, {1, 2})}, {"gamma", doubles({2}, {1, 1})}, {"beta", doubles({2}, {0, 0})}};
  std::vector<Tensor> d = gradients(g, values, {"x", "gamma", "beta"}, doubles({1, 2}, {1, 0}));
  const double r = std::sqrt(0.4);
  expect_close(d[0], {r - r * r * r * 0.5, -2 * r * r * r * 0.5}, 1e-14);
  expect_close(d[1], {r, 0}, 1e-14);
  expect_close(d[2], {1, 0}, 1e-14);
}

TEST_CASE("norms: forward mode moves the statistics and the weights") {
  Graph ln, rms;
  for (Graph* g : {&ln, &rms}) {
    Expr x = g->input("x", Shape({1, 3}, DType::F64)), gamma = g->param("gamma", Shape({3}, DType::F64)),
         beta = g->param("beta", Shape({3}, DType::F64));
    g->set_outputs({g == &ln ? g->layer_norm(x, gamma, beta, 0.0) : g->rms_norm(x, gamma, beta, 0.0)});
  }
  NamedTensors values{
      {"x", doubles({1, 3}, {1, 2, 6})}, {"gamma", doubles({3}, {1, 2, 3})}, {"beta", doubles({3}, {0, 0, 0})}};
  // Layer norm is invariant to a common shift, and both norms to a common factor.
  expect_close(tangent(ln, values, {{"x", doubles({1, 3}, {1, 1, 1})}}), {0, 0, 0}, 1e-14);
  expect_close(tangent(ln, values, {{"x", doubles({1, 3}, {1, 2, 6})}}), {0, 0, 0}, 1e-14);
  expect_close(tangent(rms, values, {{"x", doubles({1, 3}, {1, 2, 6})}}), {0, 0, 0}, 1e-14);
  const double sd = std::sqrt(14.0 / 3), rm = std::sqrt(41.0 / 3);
  expect_close(tangent(ln, values, {{"gamma", doubles({3}, {1, 0, 1})}}), {-2 / sd, 0, 3 / sd}, 1e-14);
  expect_close(tangent(rms, values, {{"gamma", doubles({3}, {1, 0, 1})}, {"beta", doubles({3}, {5, 5, 5})}}),
               {1 / rm + 5, 5, 6 / rm + 5}, 1e-14);
}

TEST_CASE("reductions: extrema, ties and products") {
  auto reduction = [](ReduceKind fn) {
    Graph g;
    g.set_outputs({g.reduce(fn, g.input("x", Shape({2, 3}, DType::F64)), {1})});
    return g;
  };
  NamedTensors x{{"x", doubles({2, 3}, {3, 1, 3, 5, 7, 6})}};
  const Tensor t = doubles({2, 3}, {1, 10, 100, 1, 10, 100});
  // Two equal maxima share the derivative, in forward and reverse mode.
  expect_close(tangent(reduction(ReduceKind::Max), x, {{"x", t}}), {50.5, 10}, 1e-14);
  expect_close(gradients(reduction(ReduceKind::Max), x, {"x"}, doubles({2}, {1, 2})).at(0), {0.5, 0, 0.5, 0, 2, 0},
               1e-14);
  expect_close(tangent(reduction(ReduceKind::Min), x, {{"x", t}}), {10, 1}, 1e-14);
  // d(xyz) = yz dx + ..
  expect_close(tangent(reduction(ReduceKind::Prod), x, {{"x", t}}),
               {3 * 1 + 9 * 10 + 3 * 100, 42 * 1 + 30 * 10 + 35 * 100}, 1e-12);
  // A zero factor does not make the other derivatives wrong.
  expect_close(
      gradients(reduction(ReduceKind::Prod), {{"x", doubles({2, 3}, {0, 2, 3, 0, 0, 4})}}, {"x"}, doubles({2}, {1, 1}))
          .at(0),
      {6, 0, 0, 0, 0, 0}, 1e-14);
}

TEST_CASE("max and min: ties share, in both modes") {
  Graph g;
  Expr a = g.input("a", Shape({3}, DType::F64)), b = g.input("b", Shape({3}, DType::F64));
  g.set_outputs({g.max(a, b)});
  NamedTensors values{{"a", doubles({3}, {1, 2, 3})}, {"b", doubles({3}, {2, 2, 2})}};
  std::vector<Tensor> d = gradients(g, values, {"a", "b"}, doubles({3}, {1, 1, 1}));
  expect_close(d[0], {0, 0.5, 1}, 0);
  expect_close(d[1], {1, 0.5, 0}, 0);
  expect_close(tangent(g, values, {{"a", doubles({3}, {1, 1, 1})}}), {0, 0.5, 1}, 0);
}

TEST_CASE("pow: finite where the textbook formulas are not") {
  Graph g;
  Expr a = g.input("a", Shape({4}, DType::F64)), b = g.input("b", Shape({4}, DType::F64));
  g.set_outputs({g.pow(a, b)});
  NamedTensors values{{"a", doubles({4}, {0, 0, -2, 3})}, {"b", doubles({4}, {2, 0, 3, 2})}};
  std::vector<Tensor> d = gradients(g, values, {"a", "b"}, doubles({4}, {1, 1, 1, 1}));
  expect_close(d[0], {0, 0, 12, 6}, 1e-14);
  expect_close(d[1], {0, 0, 0, 9 * std::log(3.0)}, 1e-14);
}

TEST_CASE("derivatives keep the dtype of their operand") {
  for (DType t : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
    Graph g;
    Expr x = g.input("x", Shape({3}, t)), y = g.input("y", Shape({3}, t));
    Expr z = g.where(g.gt(x, y), x * y, g.min(g.max(x, 0.25), y));
    g.set_outputs({g.mean(z * z, {0}) + g.reduce_prod(z, {0}) + g.reduce_max(z, {0})});
    NamedTensors values{{"x", doubles({3}, {1, 2, 0.5}).cast(t)},
                        {"y", doubles({3}, {0.5, 3, 1}).cast(t)},
                        {"d_output", scalar(1).cast(t)}};
    std::vector<Tensor> d = evaluate(grad(g, {"x", "y"}).graph, values);
    CHECK(d[0].shape() == Shape({3}, t));
    CHECK(d[1].shape() == Shape({3}, t));
    // z = (0.5, 2, 0.5): dz = 2 z / 3 + product of the others + 1 at the maximum; dx = dz * (y | 1).
    const double tolerance = t == DType::BF16 ? 2e-2 : t == DType::F16 ? 2e-3 : t == DType::F32 ? 1e-6 : 1e-14;
    expect_close(d[0], {0.5 * (1.0 / 3 + 1), 4.0 / 3 + 0.25 + 1, 1.0 / 3 + 1}, tolerance);
    expect_close(d[1], {1.0 / 3 + 1, 0, 0}, tolerance);
  }
}

TEST_CASE("attention: a row that sees no key has zero output and zero derivatives") {
  Graph g;
  const Shape shape({1, 2, 2}, DType::F64);
  Expr q = g.input("q", shape), k = g.input("k", shape), v = g.input("v", shape);
  Expr mask = g.input("mask", Shape({1, 1, 2, 2}, DType::F64));
  ops::Attention op;
  op.head_dim = 2;
  for (MaskKind kind : {MaskKind::Custom, MaskKind::Bias}) {
    op.mask = kind;
    g.set_outputs({g.attention(q, k, v, op, mask)});
    const double hidden = kind == MaskKind::Bias ? -HUGE_VAL : 0, visible = kind == MaskKind::Bias ? 0 : 1;
    NamedTensors values{{"q", sequence({1, 2, 2})},
                        {"k", sequence({1, 2, 2}, 2)},
                        {"v", sequence({1, 2, 2}, 3)},
                        {"mask", doubles({1, 1, 2, 2}, {hidden, hidden, visible, visible})}};
    std::vector<Tensor> d = gradients(g, values, {"q", "k", "v"}, doubles({1, 2, 2}, {1, 2, 3, 4}));
    expect_close(doubles({2}, {d[0].at(0), d[0].at(1)}), {0, 0}, 0);
    for (const Tensor& t : d)
      for (std::int64_t i = 0; i < t.num_elements(); ++i) CHECK(std::isfinite(t.at(i)));
    CHECK(std::fabs(d[0].at(2)) + std::fabs(d[0].at(3)) > 1e-3);  // the other row has a gradient
    const Tensor t = tangent(g, values, {{"q", sequence({1, 2, 2})}, {"v", sequence({1, 2, 2})}});
    CHECK(t.at(0) == 0);
    CHECK(t.at(1) == 0);
    CHECK(std::isfinite(t.at(2)));
  }
}

TEST_CASE("mod: the derivative by the divisor counts the quotient that the value has, also where a / b vanishes") {
  Graph g;
  const Shape six({6}, DType::F32);
  g.set_outputs({g.mod(g.input("a", six), g.input("b", six))});
  const NamedTensors values{{"a", Tensor::of<float>({6}, {-1, -1e-30F, 1e-30F, 7, 1, -3.4e38F})},
                            {"b", Tensor::of<float>({6}, {HUGE_VALF, 1e25F, -1e25F, 2, HUGE_VALF, 3.3e38F})}};
  const Tensor d = gradients(g, values, {"b"}, Tensor::full(six, 1)).at(0);
  CHECK(d.to_f32() == std::vector<float>{1, 1, 1, -3, 0, 2});
}

TEST_CASE("gelu: the derivative keeps its digits where 1 + erf cancels, and is smooth at 0") {
  Graph g;
  const Shape five({5}, DType::F32);
  g.set_outputs({g.gelu(g.input("x", five))});
  const Tensor x = Tensor::of<float>({5}, {-9, -6, -4, 0, 1});
  const Tensor d = gradients(g, {{"x", x}}, {"x"}, Tensor::full(five, 1)).at(0);
  for (std::int64_t i = 0; i < 5; ++i) {
    const double at = x.at(i), tail = 0.5 * std::erfc(-at / std::sqrt(2.0)),
                 exact = tail + at * std::exp(-at * at / 2) / std::sqrt(2 * std::acos(-1.0));
    CAPTURE(at);
    CHECK(std::fabs(d.at(i) - exact) <= 1e-4 * std::fabs(exact));
  }
}

TEST_CASE("complex values: the gradient is not conjugated") {
  // The cast gives Re(z^2) = a^2 - b^2. Its gradient is g = 2 z, and a tangent t changes the result by Re(g t).
  Graph g;
  Expr z = g.input("z", Shape({}, DType::C128));
  g.set_outputs({g.cast(z * z, DType::F64)});
  Tensor at = Tensor::zeros(Shape({}, DType::C128));
  reinterpret_cast<double*>(at.mutable_data())[0] = 1;
  reinterpret_cast<double*>(at.mutable_data())[1] = 1;
  Tensor d = gradients(g, {{"z", at}}, {"z"}, scalar(1)).at(0);
  CHECK(reinterpret_cast<const double*>(d.data())[0] == 2);
  CHECK(reinterpret_cast<const double*>(d.data())[1] == 2);
}

}  // namespace
}  // namespace rlx::test
