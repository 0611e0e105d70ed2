// Linear algebra functions: hand-computed values, and derivatives against differences. tests/python/test_linalg.py
// compares with NumPy and JAX.
#include <cmath>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/functions/linalg.h"
#include "rlx/ir/evaluate.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/samples.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::doubles;
using test::expect_close;
using MatrixFn = std::function<ExprList(Expr)>;

std::vector<Tensor> values_of(const Tensor& a, const MatrixFn& fn) {
  Graph g;
  const Expr x = g.input("x", a.shape());
  const ExprList out = fn(x);
  g.set_outputs(std::vector<Value>(out.begin(), out.end()));
  return evaluate(g, {{"x", a}});
}

const Tensor kTwo = doubles({2, 2}, {4, 1, 2, 3});

}  // namespace

TEST_CASE("linalg: values by hand") {
  expect_close(values_of(kTwo, [](Expr x) { return linalg::inv(x); })[0], {0.3, -0.1, -0.2, 0.4}, 1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::det(x); })[0], {10}, 1e-15);
  expect_close(values_of(kTwo,
                         [](Expr x) {
                           const auto s = linalg::slogdet(-x);
                           return ExprList{s.sign, s.logabsdet};
                         })[1],
               {std::log(10)}, 1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::matrix_power(x, -2); })[0], {0.11, -0.07, -0.14, 0.18},
               1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::matrix_norm(x, linalg::MatrixNorm::One); })[0], {6}, 1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::matrix_norm(x, linalg::MatrixNorm::Infinity); })[0], {5},
               1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::matrix_norm(x); })[0], {std::sqrt(30)}, 1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::vector_norm(x, 3, {1}); })[0],
               {std::cbrt(65), std::cbrt(35)}, 1e-14);
  const double e = std::exp(1);  // the exponential of a nilpotent matrix plus the identity
  expect_close(values_of(doubles({2, 2}, {1, 3, 0, 1}), [](Expr x) { return linalg::expm(x); })[0], {e, 3 * e, 0, e},
               1e-14);
  expect_close(values_of(doubles({2, 2}, {30, 0, 0, -30}), [](Expr x) { return linalg::expm(x); })[0],
               {std::exp(30), 0, 0, std::exp(-30)}, 1e-13);
  expect_close(values_of(doubles({3, 2}, {1, 0, 0, 2, 0, 0}), [](Expr x) { return linalg::pinv(x); })[0],
               {1, 0, 0, 0, 0.5, 0}, 1e-15);
  expect_close(values_of(kTwo, [](Expr x) { return linalg::multi_dot({x, x, x}); })[0], {86, 39, 78, 47}, 1e-14);
}

TEST_CASE("linalg: vectors, columns and batches on the right") {
  const auto solved = [](const Tensor& a, const Tensor& b, bool batched) {
    Graph g;
    const Expr x = g.input("a", a.shape()), y = g.input("b", b.shape());
    g.set_outputs({batched ? linalg::batched_dense_solve(x, y) : linalg::dense_solve(x, y)});
    return evaluate(g, {{"a", a}, {"b", b}})[0];
  };
  expect_close(solved(kTwo, doubles({2}, {10, 10}), false), doubles({2}, {2, 2}), 1e-14);
  expect_close(solved(kTwo, doubles({2, 1}, {10, 0}), false), doubles({2, 1}, {3, -2}), 1e-14);
  const Tensor two = doubles({2, 2, 2}, {4, 1, 2, 3, 1, 0, 0, 2});
  expect_close(solved(two, doubles({2, 2}, {10, 10, 3, 4}), true), doubles({2, 2}, {2, 2, 3, 2}), 1e-14);
  expect_close(solved(two, doubles({2, 2, 1}, {10, 10, 3, 4}), true), doubles({2, 2, 1}, {2, 2, 3, 2}), 1e-14);
}

TEST_CASE("linalg: derivatives in both modes agree with differences, also of singular matrices") {
  const std::vector<std::pair<const char*, MatrixFn>> all = {
      {"solve", [](Expr x) { return linalg::solve(x, x * x); }},
      {"det", [](Expr x) { return linalg::det(x); }},
      {"logdet", [](Expr x) { return linalg::logdet(x); }},
      {"pinv", [](Expr x) { return linalg::pinv(x.graph().narrow(x, 1, 0, 2)); }},
      {"expm", [](Expr x) { return linalg::expm(x); }},
      {"cond", [](Expr x) { return linalg::cond(x, linalg::MatrixNorm::Frobenius); }},
      {"cholesky_solve", [](Expr x) {
         Graph& g = x.graph();
         return linalg::cholesky_solve(g.cholesky(g.matmul(x, g.t(x))), x);
       }}};
  const Tensor a = test::draw(Shape({3, 3}, DType::F64), Fill::Normal, 1, 5),
               u = test::draw(a.shape(), Fill::Unit, 1, 6), singular = doubles({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
               first_pivot = doubles({3, 3}, {0, 0, 1, 0, 2, 1, 0, 1, 3});
  for (const auto& entry : all) {
    INFO(entry.first);
    const bool is_det = std::string(entry.first) == "det";
    for (const Tensor& at : is_det ? std::vector<Tensor>{a, singular, first_pivot} : std::vector<Tensor>{a}) {
      Graph g;
      const Expr x = g.input("x", at.shape());
      g.set_outputs({g.sum(entry.second(x)[0])});
      constexpr double kStep = 1e-5;
      const auto value = [&](double by) { return evaluate(g, {{"x", test::add_scaled(at, by, u)}})[0].at(0); };
      const double expected = (value(kStep) - value(-kStep)) / (2 * kStep), scale = 1 + std::fabs(expected);
      const GradResult back = grad(g, {Wrt("x")});
      const Tensor gradient =
          evaluate(back.graph, {{"x", at}, {back.added_inputs[0], Tensor::scalar(DType::F64, 1)}}).back();
      CHECK(std::fabs(test::dot(gradient, u) - expected) <= 1e-6 * scale);
      const TransformResult forward = jvp(g, {Wrt("x")});
      const Tensor tangent = evaluate(forward.graph, {{"x", at}, {forward.added_inputs[0], u}}).back();
      CHECK(std::fabs(tangent.at(0) - expected) <= 1e-6 * scale);
    }
  }
}

// det of a [4, 4] with a zero pivot that is not the last: the cofactors, and the second derivative by a00 and a11.
TEST_CASE("linalg: det of order 4 has its cofactors at a zero pivot, and a finite second derivative") {
  Graph g;
  const Expr x = g.input("x", Shape({4, 4}, DType::F64));
  g.set_outputs({linalg::det(x)});
  const Tensor at = doubles({4, 4}, {0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 5});
  const GradResult first = value_and_grad(g, {Wrt("x")});
  const std::vector<Tensor> got = evaluate(first.graph, {{"x", at}});
  CHECK(got[0].at(0) == 0);
  for (int i = 0; i < 16; ++i) CHECK(std::fabs(got[1].at(i) - (i == 0 ? 30 : 0)) <= 1e-12);
  const TransformResult second = jvp(first.graph, {Wrt("x")});
  Tensor along = Tensor::zeros(at.shape());
  along.set(0, 1);
  const Tensor row = evaluate(second.graph, {{"x", at}, {second.added_inputs[0], along}}).back();
  for (int i = 0; i < 16; ++i) CHECK(std::fabs(row.at(i) - (i == 5 ? 15 : i == 10 ? 10 : i == 15 ? 6 : 0)) <= 1e-11);
}

}  // namespace rlx
