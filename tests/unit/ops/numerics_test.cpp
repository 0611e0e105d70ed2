// Every statement of docs/numerics.md, checked on the evaluator, and on the cpu if a kernel could differ.
#include <cmath>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::doubles;
using Function = std::function<Expr(Graph&, Expr)>;
using K = ActivationKind;

using test::kInf;

/// f of the values in dtype t, by the evaluator or by the cpu.
std::vector<double> apply(const std::vector<double>& x, const Function& f, DType t = DType::F64, bool cpu = false) {
  Graph g;
  const Tensor v = doubles({static_cast<std::int64_t>(x.size())}, x).cast(t);
  g.set_outputs({f(g, g.input("x", v.shape()))});
  if (cpu) return Session().compile(std::move(g)).run_typed({{"x", v}}).at(0).to_f64();
  return evaluate(g, {{"x", v}}).at(0).to_f64();
}

/// The derivative of f at x, of order 1 or 2.
double derivative(double x, const Function& f, int order = 1) {
  Graph g;
  g.set_outputs({g.sum(f(g, g.input("x", Shape({1}, DType::F64))))});
  if (order == 1)
    return evaluate(grad(g, {"x"}).graph, {{"x", doubles({1}, {x})}, {"d_output", doubles({}, {1})}}).at(0).at(0);
  return evaluate(hessian(g, {"x"}).graph, {{"x", doubles({1}, {x})}}).at(0).at(0);
}
Function fn(K kind) {
  return [kind](Graph& g, Expr x) { return g.activation(kind, x); };
}

void check_same_value(double got, double want) {
  const bool same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
  CHECK_MESSAGE(same, got, " instead of ", want);
}

constexpr DType kFloats[] = {DType::F64, DType::F32, DType::F16, DType::BF16};

TEST_CASE("numerics: activations at infinities and zeros") {
  for (DType t : kFloats)
    for (bool cpu : {false, true}) {
      for (K kind : {K::Gelu, K::GeluApprox, K::Silu, K::HardSwish, K::Mish}) {
        INFO(std::string(enum_name(kind)));
        const std::vector<double> y = apply({-kInf, kInf, -0.0, NAN}, fn(kind), t, cpu);
        check_same_value(y[0], -0.0);
        check_same_value(y[1], kInf);
        check_same_value(y[2], -0.0);
        check_same_value(y[3], NAN);
      }
      check_same_value(apply({-kInf}, fn(K::Softsign), t, cpu)[0], -1);
      check_same_value(apply({kInf}, fn(K::Softsign), t, cpu)[0], 1);
      for (K kind : {K::Sin, K::Cos, K::Tan})
        for (double y : apply({-kInf, kInf}, fn(kind), t, cpu)) check_same_value(y, NAN);
      check_same_value(apply({-0.0}, fn(K::Relu), t, cpu)[0], -0.0);
      check_same_value(apply({-0.0}, fn(K::Sign), t, cpu)[0], -0.0);
      check_same_value(apply({NAN}, fn(K::Sign), t, cpu)[0], NAN);
    }
  check_same_value(apply({3e38}, fn(K::HardSwish), DType::F32, true)[0], static_cast<double>(3e38F));
}

TEST_CASE("numerics: kinks of derivatives") {
  CHECK(derivative(0, fn(K::Abs)) == 0);
  CHECK(derivative(0, fn(K::Relu)) == 0);
  CHECK(derivative(0, fn(K::Elu)) == 1);
  CHECK(derivative(0, fn(K::Elu), 2) == 1);
  CHECK(derivative(-1, fn(K::Elu), 2) == doctest::Approx(std::exp(-1)));
  CHECK(derivative(1, fn(K::Elu), 2) == 0);
  CHECK(derivative(-3, fn(K::HardSigmoid)) == 0);
  CHECK(derivative(3, fn(K::HardSigmoid)) == 0);
  CHECK(derivative(-3, fn(K::HardSwish)) == 0);
  CHECK(derivative(3, fn(K::HardSwish)) == 1);
  for (K kind : {K::Sign, K::Round, K::Floor, K::Ceil}) CHECK(derivative(1, fn(kind)) == 0);
  for (double x : {-kInf, kInf}) {
    CHECK(derivative(x, fn(K::Softsign)) == 0);
    for (K kind : {K::Gelu, K::GeluApprox, K::Silu, K::Mish}) CHECK(derivative(x, fn(kind)) == (x > 0 ? 1 : 0));
  }
  for (K kind : {K::Asinh, K::Acosh}) CHECK(derivative(1e300, fn(kind)) == doctest::Approx(1e-300).epsilon(1e-14));
  CHECK(derivative(1e-9, fn(K::Asin), 2) == doctest::Approx(1e-9));
}

TEST_CASE("numerics: ties") {
  CHECK(derivative(2, [](Graph& g, Expr x) { return g.max(x, 2.0); }) == 0.5);
  CHECK(derivative(2, [](Graph& g, Expr x) { return g.min(x, 2.0); }) == 0.5);
  CHECK(derivative(2, [](Graph& g, Expr x) { return g.clamp(x, 0.0, 2.0); }) == 0.5);
  CHECK(derivative(2, [](Graph& g, Expr x) { return g.reduce_max(g.concat({x, g.stop_gradient(x)}, 0)); }) == 0.5);
  // Cumulative: position 0 is x alone (derivative 1), position 1 is a tie (derivative 0.5).
  CHECK(derivative(2, [](Graph& g, Expr x) { return g.cummax(g.concat({x, g.stop_gradient(x)}, 0), 0); }) == 1.5);
  for (bool cpu : {false, true}) {
    const std::vector<double> tied = {1, 4, 4, -2, -2};
    CHECK(apply(
              tied, [](Graph& g, Expr x) { return g.arg_max(x, 0); }, DType::F32, cpu)[0] == 1);
    CHECK(apply(
              tied, [](Graph& g, Expr x) { return g.arg_min(x, 0); }, DType::F32, cpu)[0] == 3);
    CHECK(apply(
              tied, [](Graph& g, Expr x) { return g.top_k(x, 2).indices; }, DType::F32, cpu) ==
          std::vector<double>{1, 2});
  }
}

TEST_CASE("numerics: powers") {
  struct Case {
    double a, b, y;
  };
  for (DType t : kFloats)
    for (bool cpu : {false, true})
      for (const Case& c : {Case{-8, 1.0 / 3, NAN},
                            {-2, 3, -8},
                            {-2, 2, 4},
                            {NAN, 0, 1},
                            {kInf, 0, 1},
                            {1, NAN, 1},
                            {0, -1, kInf},
                            {0, -2, kInf}}) {
        CAPTURE(c.a);
        CAPTURE(c.b);
        check_same_value(apply(
                       {c.a}, [&](Graph& g, Expr x) { return g.pow(x, c.b); }, t, cpu)[0],
                   c.y);
      }
  for (double x : {kInf, -kInf, 0.0, -2.0}) CHECK(derivative(x, [](Graph& g, Expr v) { return g.pow(v, 0.0); }) == 0);
  for (double base : {-2.0, 0.0}) CHECK(derivative(2, [&](Graph& g, Expr v) { return g.pow(base, v); }) == 0);
  for (bool cpu : {false, true}) {
    auto power = [&](std::int64_t exponent) {
      return apply(
          {-1, 0, 1, 2}, [=](Graph& g, Expr x) { return g.pow(x, exponent); }, DType::I32, cpu);
    };
    CHECK(power(-3) == std::vector<double>{-1, 0, 1, 0});
    CHECK(power(33) == std::vector<double>{-1, 0, 1, 0});  // 2^33 wraps
  }
}

TEST_CASE("numerics: casts") {
  auto cast = [](const std::vector<double>& x, DType from, DType to, bool cpu) {
    return apply(
        x, [=](Graph& g, Expr e) { return g.cast(g.cast(e, to), DType::F64); }, from, cpu);
  };
  using V = std::vector<double>;
  for (bool cpu : {false, true}) {
    CHECK(cast({-2.9, 2.9, -300, 300, kInf, NAN}, DType::F32, DType::I8, cpu) == V{-2, 2, -128, 127, 127, 0});
    CHECK(cast({-2.9, 2.9, -300, 300, -kInf, NAN}, DType::F32, DType::I4, cpu) == V{-2, 2, -8, 7, -8, 0});
    CHECK(cast({-1, 2.9, 300, NAN}, DType::F32, DType::U4, cpu) == V{0, 2, 15, 0});
    for (DType from : {DType::I8, DType::I32, DType::I64}) {
      CHECK(cast({9, 17, -9, 7, -8}, from, DType::I4, cpu) == V{-7, 1, 7, 7, -8});
      CHECK(cast({-1, 16, 15, 35}, from, DType::U4, cpu) == V{15, 0, 15, 3});
    }
    CHECK(cast({300, -300}, DType::I32, DType::U8, cpu) == V{44, 212});
    CHECK(cast({kInf, -kInf, 1e6, 448}, DType::F32, DType::F8E4M3, cpu) == V{448, -448, 448, 448});
    CHECK(cast({kInf, -kInf, 1e6, 57344}, DType::F32, DType::F8E5M2, cpu) == V{57344, -57344, 57344, 57344});
    CHECK(cast({kInf, -kInf, 7, NAN}, DType::F32, DType::F4E2M1, cpu) == V{6, -6, 6, 0});
    CHECK(std::isnan(cast({NAN}, DType::F32, DType::F8E4M3, cpu)[0]));
    CHECK(std::isnan(cast({NAN}, DType::F32, DType::F8E5M2, cpu)[0]));
    CHECK(cast({1e5, -1e5}, DType::F32, DType::F16, cpu) == V{kInf, -kInf});
    CHECK(cast({3.4e38, -1e39}, DType::F64, DType::BF16, cpu) == V{kInf, -kInf});
  }
}

TEST_CASE("numerics: reductions at overflow") {
  auto sum = [](Graph& g, Expr x) { return g.sum(x); };
  auto mean = [](Graph& g, Expr x) { return g.mean(x); };
  for (bool cpu : {false, true}) {
    CHECK(apply({6e4, 6e4, -6e4}, sum, DType::F16, cpu)[0] == 6e4);
    CHECK(apply({6e4, 6e4, 6e4}, sum, DType::F16, cpu)[0] == kInf);
    CHECK(apply({6e4, 6e4, 6e4, 6e4}, mean, DType::F16, cpu)[0] == 6e4);
    CHECK(apply({2e9, 2e9}, sum, DType::I32, cpu)[0] == 4e9 - 0x1p32);
    CHECK(apply(
              {1 << 16, 1 << 16}, [](Graph& g, Expr x) { return g.reduce_prod(x); }, DType::I32, cpu)[0] == 0);
    const std::vector<double> masked = {-kInf, -kInf};
    CHECK(apply(
              masked, [](Graph& g, Expr x) { return g.softmax(x); }, DType::F32, cpu) == std::vector<double>{0, 0});
    CHECK(apply(
              masked, [](Graph& g, Expr x) { return g.log_softmax(x); }, DType::F32, cpu) == masked);
    CHECK(std::isnan(apply(
        {1, kInf}, [](Graph& g, Expr x) { return g.softmax(x); }, DType::F32, cpu)[1]));
  }
  CHECK(apply({3e38, 3e38, 3e38, 3e38}, mean, DType::F32, true)[0] == kInf);
  CHECK(apply({3e38, 3e38, 3e38, 3e38}, mean, DType::F32, false)[0] == static_cast<double>(3e38F));
}

}  // namespace
}  // namespace rlx
