// Special functions, bit functions and bitcast: known answers (mpmath, 40 digits), ends of domains, refusals.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/closeness.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

using Fn = ActivationKind;
using Pair = BinaryKind;

double one_value(Fn fn, double x, std::optional<double> alpha = {}) {
  return run_op(ops::Activation{fn, alpha}, {doubles({1}, {x})}).at(0).at(0);
}
double pair_value(Pair fn, double a, double b) {
  return run_op(ops::Binary{fn}, {doubles({1}, {a}), doubles({1}, {b})}).at(0).at(0);
}

TEST_CASE("special functions at -2.5, -0.5, 0.25, 1.5, 7.25 and 30") {
  const Tensor x = doubles({6}, {-2.5, -0.5, 0.25, 1.5, 7.25, 30});
  const auto expect = [&](const ops::Activation& op, const std::vector<double>& want) {
    INFO(std::string(enum_name(op.fn)));
    expect_close(run_op(op, {x}).at(0), want, 2e-15);
  };
  expect({Fn::Erfc}, {1.999593047982555, 1.5204998778130465, 0.7236736098317631, 0.033894853524689274,
                      1.1466900814815012e-24, 0.0});
  expect({Fn::Lgamma}, {-0.056243716497674054, 1.2655121234846454, 1.2880225246980774, -0.12078223763524522,
                        7.0521854507385395, 71.25703896716801});
  expect({Fn::Digamma}, {1.103156640645243, 0.03648997397857652, -4.2274535333762655, 0.03648997397857652,
                         1.910453526883736, 3.384438132685525});
  expect({Fn::Polygamma}, {9.539246644989124, 8.934802200544679, 17.19732915450711, 0.9348022005446793,
                           0.14787923315893217, 0.033895060357739946});
  expect({Fn::Polygamma, 2.0}, {-0.1082040516417274, -0.82879664423432, -129.32773993753693, -0.82879664423432,
                                -0.02182895229519774, -0.0011487652037286});
  expect({Fn::Polygamma, 5.0}, {15382.140048026304, 15371.113548602436, 491552.5137676813, 11.113548602435497,
                                0.001667357519228256, 1.0726994936161623e-06});
  expect({Fn::Polygamma, 0.0}, {1.103156640645243, 0.03648997397857652, -4.2274535333762655, 0.03648997397857652,
                                1.910453526883736, 3.384438132685525});
  expect({Fn::Sinc},
         {0.12732395447351627, 0.6366197723675814, 0.9003163161571061, -0.2122065907891938, -0.031045390212314002, 0});
}

TEST_CASE("incomplete gamma functions, P, 1 - P and dP/da") {
  const Tensor a = doubles({6}, {0.5, 1, 3, 10, 10, 200}), x = doubles({6}, {0.25, 2, 0.5, 12, 3, 210});
  const auto expect = [&](Pair fn, const std::vector<double>& want) {
    INFO(std::string(enum_name(fn)));
    const Tensor got = run_op(ops::Binary{fn}, {a, x}).at(0);
    for (std::int64_t i = 0; i < 6; ++i)
      CHECK(difference(got.at(i), want[static_cast<std::size_t>(i)]) <=
            4e-14 * std::fabs(want[static_cast<std::size_t>(i)]));
  };
  expect(Pair::Igamma, {0.5204998778130465, 0.8646647167633873, 0.014387677966970687, 0.7576078383294876,
                        0.0011024881301154798, 0.7639696745011538});
  expect(Pair::Igammac, {0.4795001221869535, 0.1353352832366127, 0.9856123220330293, 0.24239216167051233,
                         0.9988975118698845, 0.23603032549884614});
  expect(Pair::IgammaGradA, {-0.797947316783223, -0.2208254262118595, -0.02852023587882894, -0.09717797203717965,
                             -0.0014156364605752093, -0.021619881014598382});
}

TEST_CASE("special functions at the ends of their domains") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(one_value(Fn::Erfc, -inf) == 2);
  CHECK(one_value(Fn::Erfc, inf) == 0);
  for (double pole : {0.0, -1.0, -7.0}) CHECK(one_value(Fn::Lgamma, pole) == inf);
  CHECK(one_value(Fn::Lgamma, inf) == inf);
  CHECK(one_value(Fn::Digamma, 0.0) == -inf);
  CHECK(one_value(Fn::Digamma, -0.0) == inf);
  CHECK(std::isnan(one_value(Fn::Digamma, -3)));
  CHECK(one_value(Fn::Digamma, inf) == inf);
  CHECK(std::isnan(one_value(Fn::Digamma, -inf)));
  for (double order : {1.0, 3.0}) {
    CHECK(one_value(Fn::Polygamma, -2, order) == inf);
    CHECK(one_value(Fn::Polygamma, 0, order) == inf);
  }
  CHECK(one_value(Fn::Polygamma, 0.0, 2) == -inf);
  CHECK(one_value(Fn::Polygamma, -0.0, 2) == inf);
  CHECK(std::isnan(one_value(Fn::Polygamma, -2, 2)));
  CHECK(one_value(Fn::Polygamma, inf, 1) == 0);
  CHECK(one_value(Fn::Polygamma, -1e-20, 1) == doctest::Approx(1e40));
  CHECK(one_value(Fn::Sinc, 0) == 1);
  CHECK(one_value(Fn::Sinc, 3) == 0);
  CHECK(std::isnan(one_value(Fn::Sinc, inf)));
  CHECK(pair_value(Pair::Hypot, inf, NAN) == inf);
  CHECK(pair_value(Pair::Hypot, 3e300, 4e300) == 5e300);
  CHECK(pair_value(Pair::LogAddExp, -inf, -inf) == -inf);
  CHECK(pair_value(Pair::LogAddExp, inf, -inf) == inf);
  CHECK(pair_value(Pair::LogAddExp, 1000, 1000) == doctest::Approx(1000 + std::log(2.0)));
  CHECK(std::isnan(pair_value(Pair::LogAddExp, inf, NAN)));
  CHECK(pair_value(Pair::Igamma, 0, 1) == 1);
  CHECK(pair_value(Pair::Igammac, 0, 1) == 0);
  CHECK(pair_value(Pair::Igamma, 2, 0) == 0);
  CHECK(pair_value(Pair::Igamma, 2, inf) == 1);
  CHECK(pair_value(Pair::Igamma, inf, 2) == 0);
  for (Pair fn : {Pair::Igamma, Pair::Igammac, Pair::IgammaGradA}) {
    for (const auto& [a, x] : {std::pair{-1.0, 1.0}, {1.0, -1.0}, {0.0, 0.0}, {inf, inf}})
      CHECK(std::isnan(pair_value(fn, a, x)));
  }
  // Where the series, the continued fraction and the expansion for large a meet: P around x = a, with median a - 1/3.
  for (double a : {9.9e5, 1.01e6, 1e9, 1e14})
    CHECK(pair_value(Pair::Igamma, a, a) == doctest::Approx(0.5).epsilon(1e-3));
}

TEST_CASE("erfinv keeps its digits up to the last number below 1") {
  const Tensor x = doubles({5}, {1 - 0x1p-53, 1 - 0x1p-50, 1 - 0x1p-44, 1 - 0x1p-30, -1 + 0x1p-53});
  expect_close(run_op(ops::Activation{Fn::Erfinv}, {x}).at(0),
               {5.863584748755168, 5.686128441310391, 5.314017270169747, 4.3280282758009465, -5.863584748755168},
               9e-16);
}

TEST_CASE("remainders have the sign of the dividend; integers by 0 give 0") {
  CHECK(pair_value(Pair::Rem, 5.5, -3) == 2.5);
  CHECK(pair_value(Pair::Rem, -5.5, 3) == -2.5);
  CHECK(std::signbit(pair_value(Pair::Rem, -6, 3)));
  CHECK(std::isnan(pair_value(Pair::Rem, 1, 0)));
  const auto ints = [](DType t, std::vector<std::int64_t> v) {
    Tensor out = Tensor::zeros(Shape({static_cast<std::int64_t>(v.size())}, t));
    for (std::size_t i = 0; i < v.size(); ++i) out.set_i64(static_cast<std::int64_t>(i), v[i]);
    return out;
  };
  const auto expect = [](const Tensor& got, std::vector<std::int64_t> want) {
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got.at_i64(static_cast<std::int64_t>(i)) == want[i]);
  };
  for (DType t : {DType::I8, DType::I16, DType::I32, DType::I64}) {
    const std::int64_t low = std::numeric_limits<std::int64_t>::min() >> (64 - dtype_bits(t));
    const Tensor a = ints(t, {7, -7, 7, -7, 5, low, low}), b = ints(t, {3, 3, -3, -3, 0, -1, 0});
    expect(run_op(ops::Binary{Pair::Rem}, {a, b}).at(0), {1, -1, 1, -1, 0, 0, 0});
    expect(run_op(ops::Binary{Pair::Mod}, {a, b}).at(0), {1, 2, -2, -1, 0, 0, 0});
    expect(run_op(ops::Binary{Pair::Div}, {a, b}).at(0), {2, -2, -2, 2, 0, low, 0});
    const Tensor x = ints(t, {1, -1, low, -3, 1, 1}), n = ints(t, {dtype_bits(t) - 1, 1, 1, -1, dtype_bits(t), -1});
    expect(run_op(ops::Binary{Pair::Shl}, {x, n}).at(0), {low, -2, 0, 0, 0, 0});
    expect(run_op(ops::Binary{Pair::Shr}, {x, n}).at(0), {0, -1, low / 2, -1, 0, 0});
    expect(run_op(ops::Activation{Fn::Popcount}, {ints(t, {0, 1, -1, low, 6})}).at(0), {0, 1, dtype_bits(t), 1, 2});
    expect(run_op(ops::Activation{Fn::Clz}, {ints(t, {0, 1, -1, low, 6})}).at(0),
           {dtype_bits(t), dtype_bits(t) - 1, 0, 0, dtype_bits(t) - 3});
  }
  for (DType t : {DType::U8, DType::U16, DType::U32}) {
    const std::int64_t high = (std::int64_t{1} << dtype_bits(t)) - 1;
    expect(run_op(ops::Binary{Pair::Rem}, {ints(t, {high, 7, 7}), ints(t, {10, 0, 3})}).at(0), {high % 10, 0, 1});
    expect(run_op(ops::Activation{Fn::Popcount}, {ints(t, {high, 0, 6})}).at(0), {dtype_bits(t), 0, 2});
    expect(run_op(ops::Activation{Fn::Clz}, {ints(t, {high, 0, 6})}).at(0), {0, dtype_bits(t), dtype_bits(t) - 3});
  }
}

// Cases that samples cannot have, because second derivatives by a do not exist.
TEST_CASE("derivatives of the incomplete gamma functions") {
  Graph g("loss");
  const Expr a = g.input("a", {{4}, DType::F64}), x = g.input("x", {{4}, DType::F64});
  g.set_outputs({g.sum(g.igamma(a, x)) + g.sum(g.igammac(a, x)) * 3.0});
  const Graph slopes = grad(g, {"a", "x"}).graph;
  const Tensor at_a = doubles({4}, {0.5, 1, 3, 20}), at_x = doubles({4}, {0.25, 2, 0.5, 25});
  const std::vector<Tensor> got =
      evaluate(slopes, {{"a", at_a}, {"x", at_x}, {"d_output", Tensor::scalar(DType::F64, 1)}});
  Graph slope_graph("slope");
  const Expr p0 = slope_graph.input("a", {{4}, DType::F64}), x0 = slope_graph.input("x", {{4}, DType::F64});
  slope_graph.set_outputs({slope_graph.igamma_grad_a(p0, x0)});
  const auto forward = jvp(slope_graph, {"x"});
  const std::vector<Tensor> mixed_slopes = evaluate(
      forward.graph, {{"a", at_a}, {"x", at_x}, {forward.added_inputs[0], Tensor::full(Shape({4}, DType::F64), 1)}});
  const double h = 1e-5;
  for (std::int64_t i = 0; i < 4; ++i) {
    const double p = at_a.at(i), q = at_x.at(i);
    const auto slope = [&](auto f) { return (f(h) - f(-h)) / (2 * h); };
    const double by_a = slope([&](double d) { return pair_value(Pair::Igamma, p + d, q); });
    const double by_x = slope([&](double d) { return pair_value(Pair::Igamma, p, q + d); });
    const double mixed = slope([&](double d) { return pair_value(Pair::IgammaGradA, p, q + d); });
    CHECK(got[got.size() - 2].at(i) == doctest::Approx(-2 * by_a).epsilon(1e-6));
    CHECK(got[got.size() - 1].at(i) == doctest::Approx(-2 * by_x).epsilon(1e-6));
    CHECK(mixed_slopes.back().at(i) == doctest::Approx(mixed).epsilon(1e-6));
  }
  Graph twice("twice");
  const Expr v = twice.input("a", {{}, DType::F64});
  twice.set_outputs({twice.igamma_grad_a(v, twice.scalar(1.0, DType::F64))});
  CHECK(contains(error_text([&] { (void)grad(twice, {"a"}); }), "igamma_grad_a has no derivative with respect to a"));
}

TEST_CASE("an order that polygamma does not have is refused") {
  const Shape x({2}, DType::F32);
  for (double order : {-1.0, 0.5, 171.0})
    CHECK(contains(infer_error(ops::Activation{Fn::Polygamma, order}, {x}), "whole number from 0 to 170"));
  CHECK(infer_error(ops::Activation{Fn::Polygamma, 170.0}, {x}) == "");
  CHECK(contains(infer_error(ops::Activation{Fn::Popcount}, {x}), "needs a integer operand"));
}

TEST_CASE("bitcast: bits as another dtype, the last axis for other widths") {
  const Tensor x = Tensor::of<float>({2}, std::vector<float>{1.0F, -0.0F});
  const auto cast_to = [](DType t, const Tensor& v) { return run_op(ops::Bitcast{t}, {v}).at(0); };
  const Tensor words = cast_to(DType::U32, x);
  CHECK(words.shape() == Shape({2}, DType::U32));
  CHECK(words.at_i64(0) == 0x3f800000);
  CHECK(words.at_i64(1) == 0x80000000);
  const Tensor bytes = cast_to(DType::U8, x);
  CHECK(bytes.shape() == Shape({2, 4}, DType::U8));
  CHECK(bytes.at_i64(2) == 0x80);
  CHECK(bytes.at_i64(3) == 0x3f);
  CHECK(cast_to(DType::F32, bytes).shape() == x.shape());
  CHECK(cast_to(DType::F32, bytes).at(0) == 1);
  CHECK(cast_to(DType::U16, words).shape() == Shape({2, 2}, DType::U16));
  const Tensor halves = cast_to(DType::I4, Tensor::of<std::uint8_t>({1}, std::vector<std::uint8_t>{0x7e}));
  CHECK(halves.shape() == Shape({1, 2}, DType::I4));
  CHECK(halves.at_i64(0) == -2);
  CHECK(halves.at_i64(1) == 7);

  const Shape f({2, 3}, DType::F32), b({2}, DType::Bool), c({2}, DType::C64);
  CHECK(contains(infer_error(ops::Bitcast{DType::F64}, {f}), "made of 2 elements of f32"));
  CHECK(contains(infer_error(ops::Bitcast{DType::F64}, {Shape({}, DType::F32)}), "made of 2 elements of f32"));
  CHECK(contains(infer_error(ops::Bitcast{DType::U8}, {b}), "cannot reinterpret bool as u8"));
  CHECK(contains(infer_error(ops::Bitcast{DType::F32}, {c}), "use the real and imaginary parts"));
  CHECK(contains(infer_error(ops::Bitcast{DType::Bool}, {Shape({2}, DType::U8)}), "use cast for Bool"));
  CHECK(infer_error(ops::Bitcast{DType::Bool}, {b}) == "");
  CHECK(infer_error(ops::Bitcast{static_cast<DType>(99)}, {f}) != "");
}

TEST_CASE("bitcast of symbolic extents, and its derivative, which is 0") {
  Graph g("g");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  const Expr x = g.input("x", {{n, Dim(2)}, DType::F32});
  CHECK(g.bitcast(x, DType::F64).shape() == Shape({n}, DType::F64));
  CHECK(g.bitcast(x, DType::U8).shape() == Shape({n, Dim(2), Dim(4)}, DType::U8));
  CHECK(contains(error_text([&] {
                   (void)g.bitcast(g.input("y", {{Dim(2), n}, DType::F32}), DType::F64);
                 }),
                 "must be the last axis"));
  Graph loss("loss");
  const Expr v = loss.input("x", {{2}, DType::F32});
  loss.set_outputs({loss.sum(v * loss.cast(loss.bitcast(v, DType::I32), DType::F32))});
  const Tensor at = Tensor::of<float>({2}, std::vector<float>{1, 2});
  const std::vector<Tensor> got =
      evaluate(grad(loss, {"x"}).graph, {{"x", at}, {"d_output", Tensor::scalar(DType::F32, 1)}});
  CHECK(got.back().at(0) == static_cast<double>(0x3f800000));
  CHECK(got.back().at(1) == static_cast<double>(0x40000000));
}

}  // namespace
}  // namespace rlx::test
