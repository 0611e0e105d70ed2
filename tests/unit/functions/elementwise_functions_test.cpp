// Elementwise functions composed of ops: known answers (mpmath, 40 digits), every float dtype, refusals.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "rlx/functions/activations.h"
#include "rlx/functions/floats.h"
#include "rlx/functions/special.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/closeness.h"
#include "tests/support/values.h"

namespace rlx::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr DType kFloatTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16};

using Build = std::function<Expr(const std::vector<Expr>&)>;

/// The values of the function for operands of dtype t on the cpu, which equal those of the evaluator.
Tensor values_of(const std::vector<std::vector<double>>& operands, DType t, const Build& build) {
  Graph g("function");
  std::vector<Expr> in;
  NamedTensors given;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    const Dims dims{Dim(static_cast<std::int64_t>(operands[i].size()))};
    in.push_back(g.input(name, {dims, t}));
    given.emplace(name, doubles({static_cast<std::int64_t>(operands[i].size())}, operands[i]).cast(t));
  }
  g.set_outputs({build(in)});
  const Tensor want = evaluate(g, given)[0];
  const Tensor got = Session().compile(std::move(g)).run_typed(given)[0];
  REQUIRE(got.shape() == want.shape());
  for (std::int64_t i = 0; i < got.num_elements(); ++i)
    CHECK(difference(got.at(i), want.at(i)) <=
          8 * epsilon_of(is_float(want.dtype()) ? want.dtype() : DType::F64) * std::max(1e-30, std::fabs(want.at(i))));
  return got;
}
void expect_values(const Tensor& got, const std::vector<double>& want, double relative) {
  REQUIRE(got.num_elements() == static_cast<std::int64_t>(want.size()));
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    CAPTURE(i);
    const double w = want[static_cast<std::size_t>(i)], apart = difference(got.at(i), w);
    CHECK((apart == 0 || apart <= relative * std::fabs(w)));
  }
}

TEST_CASE("functions: activations at -inf, -3, -0.5, 0, 0.75, 6 and inf") {
  const std::vector<std::vector<double>> x = {{-kInfinite, -3, -0.5, 0, 0.75, 6, kInfinite}};
  const auto expect = [&](const Build& build, const std::vector<double>& want) {
    expect_values(values_of(x, DType::F64, build), want, 1e-14);
  };
  const double scale = 1.0507009873554805, alpha = 1.6732632423543772;
  expect([](const auto& v) { return nn::selu(v[0]); },
         {-scale * alpha, scale * alpha * std::expm1(-3), scale * alpha * std::expm1(-0.5), 0, scale * 0.75, scale * 6,
          kInfinite});
  expect([](const auto& v) { return nn::celu(v[0], 2); },
         {-2, 2 * std::expm1(-1.5), 2 * std::expm1(-0.25), 0, 0.75, 6, kInfinite});
  expect([](const auto& v) { return nn::thresholded_relu(v[0], 0.75); }, {0, 0, 0, 0, 0, 6, kInfinite});
  expect([](const auto& v) { return nn::hard_tanh(v[0]); }, {-1, -1, -0.5, 0, 0.75, 1, 1});
  expect([](const auto& v) { return nn::hard_tanh(v[0], -2, 5); }, {-2, -2, -0.5, 0, 0.75, 5, 5});
  expect([](const auto& v) { return nn::relu6(v[0]); }, {0, 0, 0, 0, 0.75, 6, 6});
  expect([](const auto& v) { return nn::shrink(v[0], 0.5, 0.25); }, {-kInfinite, -2.75, 0, 0, 0.5, 5.75, kInfinite});
  expect_values(values_of({{-3, -0.5, 0, 0.75}}, DType::F64, [](const auto& v) { return nn::squareplus(v[0]); }),
                {(-3 + std::sqrt(13.0)) / 2, (-0.5 + std::sqrt(4.25)) / 2, 1, (0.75 + std::sqrt(4.5625)) / 2}, 1e-14);
  expect_values(values_of({{-3, 0.5}}, DType::F64, [](const auto& v) { return nn::tanh_shrink(v[0]); }),
                {-3 + std::tanh(3), 0.5 - std::tanh(0.5)}, 1e-14);
  expect_values(values_of({{-3, 2, -0.0}, {0.5}}, DType::F64, [](const auto& v) { return nn::prelu(v[0], v[1]); }),
                {-1.5, 2, 0}, 0);
  for (DType t : kFloatTypes)
    CHECK(std::isnan(values_of({{NAN}}, t, [](const auto& v) { return nn::shrink(v[0]); }).at(0)));
}

TEST_CASE("functions: parts of floating numbers in every dtype") {
  for (DType t : kFloatTypes) {
    const FloatFormat f = float_format(t);
    const double least = std::ldexp(1.0, f.min_exponent - f.precision + 1), most = f.largest;
    CAPTURE(dtype_name(t));
    const std::vector<double> some = {0.0, -0.0, 1.0, -1.5, least, most, -most, kInfinite, -kInfinite, NAN};
    expect_values(values_of({some}, t, [](const auto& v) { return floats::is_nan(v[0]); }),
                  {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0);
    expect_values(values_of({some}, t, [](const auto& v) { return floats::is_inf(v[0]); }),
                  {0, 0, 0, 0, 0, 0, 0, 1, 1, 0}, 0);
    expect_values(values_of({some}, t, [](const auto& v) { return floats::is_finite(v[0]); }),
                  {1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, 0);
    expect_values(
        values_of({{0.0, -0.0, 1.0, -1.5, -kInfinite, -NAN}}, t, [](const auto& v) { return floats::signbit(v[0]); }),
        {0, 1, 0, 1, 1, 1}, 0);
    const Tensor signs = values_of({{1, -2, 0, 3}, {-0.0, 5, -1, -kInfinite}}, t,
                                   [](const auto& v) { return floats::copysign(v[0], v[1]); });
    expect_values(signs, {-1, 2, -0.0, -3}, 0);
    CHECK(std::signbit(signs.at(2)));
    // Up and down from 1, around 0, at the ends.
    const double gap = std::ldexp(1.0, 1 - f.precision);
    expect_values(values_of({{1, 1, 0, -0.0, most, kInfinite, 2, 1, -1}, {2, 0, 1, -1, kInfinite, 0, 2, NAN, 0}}, t,
                            [](const auto& v) { return floats::nextafter(v[0], v[1]); }),
                  {1 + gap, 1 - gap / 2, least, -least, kInfinite, most, 2, NAN, -1 + gap / 2}, 0);
    const Tensor n =
        values_of({{8, -0.375, least, 0, kInfinite}}, t, [](const auto& v) { return floats::frexp(v[0]).mantissa; });
    expect_values(n, {0.5, -0.75, 0.5, 0, kInfinite}, 0);
    expect_values(
        values_of({{8, -0.375, least, 0, kInfinite}}, t, [](const auto& v) { return floats::frexp(v[0]).exponent; }),
        {4, -1, static_cast<double>(f.min_exponent - f.precision + 2), 0, 0}, 0);
    const auto scaled_by = [&](double x, std::int64_t by) {
      return values_of({{x}}, t,
                       [&](const auto& v) { return floats::ldexp(v[0], v[0].graph().scalar(by, DType::I64)); })
          .at(0);
    };
    CHECK(scaled_by(1.5, 3) == 12);
    CHECK(scaled_by(1, f.min_exponent - f.precision + 1) == least);
    CHECK(scaled_by(least, f.max_exponent - f.min_exponent + f.precision - 1) == std::ldexp(1.0, f.max_exponent));
    CHECK(scaled_by(1, 1 << 20) == kInfinite);
    CHECK(scaled_by(-1, std::int64_t{1} << 40) == -kInfinite);
    CHECK(scaled_by(3, -(std::int64_t{1} << 40)) == 0);
    CHECK(scaled_by(0, 5000) == 0);
  }
}

TEST_CASE("functions: special functions") {
  const auto of = [](const std::vector<std::vector<double>>& in, const Build& build) {
    return values_of(in, DType::F64, build);
  };
  expect_values(of({{0, 0.25, 1, 2}}, [](const auto& v) { return special::logit(v[0]); }),
                {-kInfinite, std::log(1.0 / 3), kInfinite, NAN}, 1e-14);
  expect_values(of({{0, 0, 2, 0}, {0, kInfinite, 3, NAN}}, [](const auto& v) { return special::xlogy(v[0], v[1]); }),
                {0, 0, 2 * std::log(3.0), NAN}, 1e-14);
  expect_values(of({{0, 2}, {-1, 3}}, [](const auto& v) { return special::xlog1py(v[0], v[1]); }),
                {0, 2 * std::log(4.0)}, 1e-14);
  expect_values(of({{0, 0.5, -1}}, [](const auto& v) { return special::entr(v[0]); }),
                {0, 0.5 * std::log(2.0), -kInfinite}, 1e-14);
  expect_values(of({{0, 1, 1, -1}, {0, 2, 0, 1}}, [](const auto& v) { return special::rel_entr(v[0], v[1]); }),
                {0, -std::log(2.0), kInfinite, kInfinite}, 1e-14);
  expect_values(of({{0, 1, 1}, {0.5, 2, 0}}, [](const auto& v) { return special::kl_div(v[0], v[1]); }),
                {0.5, 1 - std::log(2.0), kInfinite}, 1e-14);
  Graph halves;
  const Expr half = halves.input("x", {{2}, DType::F16});
  CHECK(special::rel_entr(half, half).dtype() == DType::F16);
  CHECK(special::kl_div(half, half).dtype() == DType::F16);
  expect_values(of({{-40, -10, -6, -4.5, -1, 0.5, 3}}, [](const auto& v) { return special::log_ndtr(v[0]); }),
                {-804.6084420137538, -53.23128515051247, -20.736768949974707, -12.59241973571308, -1.8410216450092636,
                 -0.3689464152886564, -0.0013508099647481938},
                1e-13);
  expect_values(of({{1e-3, 0.25, 0.9, 1, 2}}, [](const auto& v) { return special::ndtri(v[0]); }),
                {-3.0902323061678136, -0.6744897501960817, 1.2815515655446006, kInfinite, NAN}, 1e-13);
  expect_values(
      of({{0, 1e-300, 1e-17, 1e-15, 1e-6, 0.0749, 0.0751, 0.95}}, [](const auto& v) { return special::ndtri(v[0]); }),
      {-kInfinite, -37.0470962993612, -8.493793224109599, -7.941345326170998, -4.753424308822899, -1.4402382675279635,
       -1.4388253927525403, 1.6448536269514722},
      1e-13);
  expect_values(of({{-kInfinite, 0, 1}}, [](const auto& v) { return special::ndtr(v[0]); }),
                {0, 0.5, 0.8413447460685429}, 1e-14);
  expect_values(
      of({{-2.5, -0.5, 0.25, 1.5, 5, 20.5, 0.0, -0.0, -3}}, [](const auto& v) { return special::gamma(v[0]); }),
      {-0.9453087204829419, -3.544907701811032, 3.625609908221908, 0.886226925452758, 24.0, 5.406242982335075e+17,
       kInfinite, -kInfinite, NAN},
      1e-13);
  expect_values(of({{2.5}, {3}}, [](const auto& v) { return special::betaln(v[0], v[1]); }),
                {std::lgamma(2.5) + std::lgamma(3) - std::lgamma(5.5)}, 1e-14);
  expect_values(
      of({{3, -kInfinite, 5000}, {3, -kInfinite, 4999}}, [](const auto& v) { return special::logaddexp2(v[0], v[1]); }),
      {4, -kInfinite, 5000 + std::log2(1.5)}, 1e-14);
}

TEST_CASE("functions: the incomplete beta function and its derivatives") {
  const std::vector<std::vector<double>> in = {
      {0.5, 2, 10, 1, 100, 0.3}, {0.5, 3, 1, 5, 50, 8}, {0.25, 0.5, 0.9, 0.01, 0.7, 0.999}};
  expect_values(values_of(in, DType::F64, [](const auto& v) { return special::betainc(v[0], v[1], v[2]); }),
                {0.3333333333333333, 0.6875, 0.3486784401000001, 0.0490099501, 0.8054481662277535, 1.0}, 1e-13);
  expect_values(values_of({{1, 2, -1, 1, 1}, {1, 2, 1, 0, 1}, {0, 1, 0.5, 0.5, 1.5}}, DType::F32,
                          [](const auto& v) { return special::betainc(v[0], v[1], v[2]); }),
                {0, 1, NAN, NAN, NAN}, 0);
  Graph g("loss");
  std::vector<Expr> x;
  NamedTensors given{{"d_output", Tensor::scalar(DType::F64, 1)}};
  for (std::size_t i = 0; i < 3; ++i) {
    x.push_back(g.input("x" + std::to_string(i), {{6}, DType::F64}));
    given.emplace("x" + std::to_string(i), doubles({6}, in[i]));
  }
  g.set_outputs({g.sum(special::betainc(x[0], x[1], x[2]))});
  const std::vector<Tensor> got = evaluate(grad(g, {"x0", "x1", "x2"}).graph, given);
  const std::vector<double> want[] = {
      {-0.6461318944389011, -0.1952886866349624, -0.0367369402477025, -0.16329642914228407, -0.015262447328577929,
       -4.278196182909955e-25},
      {0.4307545962926007, 0.1541084939249829, 0.4022438016360113, 0.009557769394833094, 0.033010790416850275,
       5.384725676653245e-25},
      {0.7351051938957227, 1.5, 3.874204890000001, 4.80298005, 7.418926554447597, 6.16009967561388e-22}};
  for (std::size_t i = 0; i < 3; ++i) expect_values(got[got.size() - 3 + i], want[i], 1e-11);
}

TEST_CASE("functions: the incomplete beta function of large and of tiny parameters, against integrals by mpmath") {
  const std::vector<std::vector<double>> in = {
      {4, 5e5, 2e6, 3, 1e9, 1e9, 6e9, 1e12, 1e30, 1e-310},
      {1e6, 5e5, 1e6, 1e9, 3, 1e9, 2e9, 4e11, 1e30, 2},
      {1e-6, 0.5005, 0.6664, 2.5e-9, 1 - 2.5e-9, 0.5, 0.750002, 0.71428535, 0.5, 1e-5}};
  const std::vector<double> want = {0.0189882795028998877,
                                    0.841344746068546546,
                                    0.163592089578251045,
                                    0.456186885559570863,
                                    0.543813118337844762,
                                    0.5,
                                    0.66023869349240072,
                                    0.170010779203140873,
                                    0.5,
                                    1};
  const auto betainc = [](const auto& v) { return special::betainc(v[0], v[1], v[2]); };
  expect_values(values_of(in, DType::F64, betainc), want, 1e-10);  // 3e-17 sqrt(min(a, b)): x is rounded
  expect_values(values_of({{1e6, 1e300, 1e300, 5, 1e-310, 1e-310, HUGE_VAL, 2},
                           {1e6, 1e300, 5, 1e300, 0.1, 1e-310, 1, 1},
                           {0.6, 0.4, 0.5, 0.5, 0.2, 0.25, 0.5, 0.5}},
                          DType::F64, betainc),
                {1, 0, 0, 1, 1, 0.5, NAN, 0.25}, 1e-13);
  Graph g("loss");
  std::vector<Expr> x;
  NamedTensors given{{"d_output", Tensor::scalar(DType::F64, 1)}};
  for (const double v : {3e6, 1.5e6, 0.6668}) {
    const std::string name = "x" + std::to_string(x.size());
    x.push_back(g.input(name, {{}, DType::F64}));
    given.emplace(name, Tensor::scalar(DType::F64, v));
  }
  g.set_outputs({special::betainc(x[0], x[1], x[2])});
  const std::vector<Tensor> got = evaluate(grad(g, {"x0", "x1", "x2"}).graph, given);
  const double slopes[] = {-0.0001110611021253718, 0.0002221888688065959, 1499.77468672055};
  for (std::size_t i = 0; i < 3; ++i) expect_values(got[got.size() - 3 + i], {slopes[i]}, 1e-11);
}

}  // namespace
}  // namespace rlx::test
