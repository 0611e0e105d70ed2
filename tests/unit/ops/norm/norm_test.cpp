// LayerNorm, RmsNorm, their cotangents and the residual ops against results of NumPy.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {
// gamma and beta are among the operands of a norm; gamma among those of its cotangents.
constexpr OperandMask kBoth{0b110}, kGammaOnly{0b100};
const Tensor kGamma = doubles({4}, {1, 0.5, -1, 2}), kBeta = doubles({4}, {0.1, -0.2, 0.3, 0});
// The cotangent of the 2x4 cases; derivatives by central differences in NumPy.
const Tensor kDy = doubles({2, 4}, {0.375, -0.125, 0.75, 0.25, -0.375, 0.5, 0.0, 0.875});
}  // namespace

TEST_CASE("layer_norm subtracts the mean and uses the biased variance") {
  auto y = run_op(ops::LayerNorm{{1}, 0.01, kBoth}, {sequence({2, 4}), kGamma, kBeta});
  expect_close(y[0], {-1.2058792441, 0.0611758488, 0.8223516977, 2.6117584883, 0.2974881264, -0.8912084423,
                      -1.0824168847, -0.3949762528});
}

TEST_CASE("rms_norm divides by the root of the mean square") {
  auto y = run_op(ops::RmsNorm{{1}, 0.01, kBoth}, {sequence({2, 4}), kGamma, kBeta});
  expect_close(
      y[0], {-1.2058792441, 0.0611758488, 0.8223516977, 2.6117584883, 0.4874921291, -0.7812381937, -1.2499685166, 0.0});
}

TEST_CASE("norms take any axis") {
  auto y =
      run_op(ops::LayerNorm{{0}, 0.5, kBoth}, {sequence({3, 2}), doubles({3}, {1, 2, 3}), doubles({3}, {0, 1, 0})});
  expect_close(y[0], {-0.8017837257, 0.1533929978, 1.0, 2.6873229755, 2.4053511772, -2.9911634565});
}

TEST_CASE("norms over several axes take gamma and beta of their dims, and do without them") {
  // NumPy: x = sequence([2, 2, 2]) over axes 0 and 2, gamma and beta [2, 2].
  const Tensor x = doubles({2, 2, 2}, {1, 2, 3, 5, 4, -1, 0, 2});
  const auto y = run_op(ops::LayerNorm{{0, 2}, 0.25, {}}, {x});
  // Groups {1, 2, 4, -1}: mean 1.5, variance 3.25; {3, 5, 0, 2}: mean 2.5, variance 3.25.
  const double r = 1 / std::sqrt(3.5);
  expect_close(y[0], {-0.5 * r, 0.5 * r, 0.5 * r, 2.5 * r, 2.5 * r, -2.5 * r, -2.5 * r, -0.5 * r});
  CHECK(y[1].dims() == std::vector<std::int64_t>{1, 2, 1});
  expect_close(y[1], {1.5, 2.5});
  expect_close(y[2], {r, r});
  const auto scaled = run_op(ops::LayerNorm{{0, 2}, 0.25, kBoth},
                             {x, doubles({2, 2}, {1, 2, 3, 4}), doubles({2, 2}, {10, 20, 30, 40})});
  expect_close(scaled[0],
               {10 - 0.5 * r, 20 + r, 10 + 0.5 * r, 20 + 5 * r, 30 + 7.5 * r, 40 - 10 * r, 30 - 7.5 * r, 40 - 2 * r});
  const auto rms = run_op(ops::RmsNorm{{0, 2}, 0.5, {0b100}}, {x, doubles({2, 2}, {0, 0, 1, 1})});
  const double first = 1 / std::sqrt(22 / 4. + 0.5), second = 1 / std::sqrt(38 / 4. + 0.5);
  expect_close(rms[0],
               {first, 2 * first, 3 * second, 5 * second, 4 * first + 1, -first + 1, 0 * second + 1, 2 * second + 1});
  expect_close(rms[1], {first, second});
}

TEST_CASE("norms of empty rows: nothing, and the mean of nothing") {
  Graph g;
  const Expr y = g.layer_norm(g.input("x", Shape({2, 0}, DType::F32)));
  g.set_outputs({y, y.result(1), y.result(2)});
  const NamedTensors in{{"x", Tensor::zeros(Shape({2, 0}, DType::F32))}};
  for (const std::vector<Tensor>& out : {evaluate(g, in), Session().compile(Graph(g)).run_typed(in)}) {
    CHECK(out[0].num_elements() == 0);
    for (int r : {1, 2})
      for (int i : {0, 1}) CHECK(std::isnan(out[static_cast<std::size_t>(r)].at(i)));
  }
}

TEST_CASE("norms of half-precision rows give their mean and rstd in f32") {
  const Shape x({2, 4}, DType::BF16);
  const auto shapes = infer_shapes(ops::LayerNorm{{1}, 1e-5, {}}, std::vector<Shape>{x});
  REQUIRE(shapes.ok());
  CHECK((*shapes)[1] == Shape({2, 1}, DType::F32));
  CHECK((*shapes)[2] == Shape({2, 1}, DType::F32));
}

TEST_CASE("layer_norm_backward gives the three cotangents") {
  auto d = run_op(ops::LayerNormBackward{{1}, 0.01, kGammaOnly}, {sequence({2, 4}), kDy, kGamma});
  expect_close(d[0], {0.5535957, -0.1528796, -0.7285889, 0.3278728, -1.1746076, -0.6647124, -0.2239842, 2.0633042},
               2e-7);
  expect_close(d[1], {-0.5637628, -0.7565024, -0.3917638, 0.1536677}, 2e-7);
  expect_close(d[2], {0.0, 0.375, 0.75, 1.125});
}

TEST_CASE("rms_norm_backward has the mean term once, without a further 1/r") {
  auto d = run_op(ops::RmsNormBackward{{1}, 0.01, kGammaOnly}, {sequence({2, 4}), kDy, kGamma});
  expect_close(d[0], {0.5699192, -0.1365561, -0.7122654, 0.3441963, -0.5157834, 0.1911279, 0.261819, 2.7124449}, 2e-7);
  expect_close(d[1], {-0.6350143, -0.6465322, -0.3917638, 0.3264698}, 2e-7);
  expect_close(d[2], {0.0, 0.375, 0.75, 1.125});
}

TEST_CASE("norms of half-precision rows round once") {
  // 1000 + i in f16 has an exact mean, but its squares overflow f16, so the variance must be computed in F32.
  Tensor x = Tensor::zeros(Shape({1, 4}, DType::F16));
  for (int i = 0; i < 4; ++i) x.set(i, 1000 + i);
  Tensor one = Tensor::full(Shape({4}, DType::F16), 1), zero = Tensor::zeros(Shape({4}, DType::F16));
  expect_close(run_op(ops::LayerNorm{{1}, 1e-5, kBoth}, {x, one, zero}, 1e-3)[0], {-1.3416, -0.4472, 0.4472, 1.3416},
               1e-3);
}

TEST_CASE("NaN and infinity reach the whole row and no other row") {
  Tensor x = sequence({2, 4});
  x.set(1, std::numeric_limits<double>::quiet_NaN());
  Tensor y = evaluate_op(ops::LayerNorm{{1}, 0.01, kBoth}, std::vector<Tensor>{x, kGamma, kBeta})[0];
  for (int i = 0; i < 4; ++i) CHECK(std::isnan(y.at(i)));
  CHECK(y.at(4) == doctest::Approx(0.2974881264));
}

TEST_CASE("fused_residual_ln adds the residual and the bias before the norm") {
  ops::FusedResidualLN op{0.01, {0b11100}};
  auto y =
      run_op(op, {sequence({2, 4}), sequence({2, 4}, 0.5, 0.2), doubles({4}, {0.1, 0.2, 0.3, 0.4}), kGamma, kBeta});
  expect_close(y[0], {-1.2337060615, 0.030517097, 0.7610341941, 2.667412123, 0.1387008187, -0.9030648735, -1.106129747,
                      -0.0774016374});
}

TEST_CASE("fused_residual_rms_norm also gives the sum") {
  ops::FusedResidualRmsNorm op{0.01, {0b11000}};
  auto y = run_op(op, {sequence({2, 4}), sequence({2, 4}, 0.5, 0.2), kGamma, kBeta});
  expect_close(y[0], {-1.0588816728, 0.1286380863, 0.6805283105, 2.8712590699, 0.6640881923, -0.6537231112,
                      -1.3677390034, 0.3924091773});
  expect_close(y[1], {-1.675, 0.95, -0.55, 2.075, 0.575, -0.925, 1.7, 0.2});
}

TEST_CASE("a vector is no residual: the shape rule refuses it instead of broadcasting") {
  const Shape x({2, 4}, DType::F32), v({4}, DType::F32);
  CHECK(infer_error(ops::FusedResidualLN{1e-5, {0b11000}}, {x, x, v, v}).empty());
  CHECK(contains(infer_error(ops::FusedResidualLN{1e-5, {0b11000}}, {x, v, v, v}), "residual"));
  CHECK(contains(infer_error(ops::FusedResidualLN{1e-5, {0b11100}}, {x, x, v, v}), "bias"));
  CHECK(contains(infer_error(ops::FusedResidualRmsNorm{1e-5, {0b11000}}, {x, x, v, v, v}), "got 5 operands"));
}

TEST_CASE("norm shape rules name the operand") {
  const Shape x({2, 4}, DType::F32), v({4}, DType::F32), short_v({3}, DType::F32);
  CHECK(contains(infer_error(ops::LayerNorm{{2}, 1e-5, kBoth}, {x, v, v}), "axis 2"));
  CHECK(contains(infer_error(ops::LayerNorm{{-1}, 1e-5, kBoth}, {x, v, v}), "axis -1"));
  CHECK(contains(infer_error(ops::LayerNorm{{1}, 1e-5, kBoth}, {x, short_v, v}), "gamma must be [4]"));
  CHECK(contains(infer_error(ops::RmsNorm{{1}, 1e-5, kBoth}, {x, v, short_v}), "beta must be [4]"));
  CHECK(contains(infer_error(ops::RmsNorm{{1}, -1, kBoth}, {x, v, v}), "eps"));
  CHECK(contains(infer_error(ops::RmsNorm{{1}, std::numeric_limits<double>::quiet_NaN(), kBoth}, {x, v, v}), "eps"));
  CHECK(contains(infer_error(ops::LayerNorm{{1}, 1e-5, kBoth}, {x.with_dtype(DType::I32), v, v}), "must be float"));
  CHECK(contains(infer_error(ops::LayerNormBackward{{1}, 1e-5, kGammaOnly}, {x, v, v}), "dy"));
  CHECK(contains(infer_error(ops::LayerNorm{{}, 1e-5, {}}, {x}), "at least one axis"));
  CHECK(contains(infer_error(ops::LayerNorm{{1, 0}, 1e-5, {}}, {x}), "must be sorted"));
  CHECK(contains(infer_error(ops::LayerNorm{{0, 1}, 1e-5, kBoth}, {x, v, v}), "gamma must be [2, 4]"));
  CHECK(contains(infer_error(ops::RmsNorm{{1}, 1e-5, kBoth}, {x, v.with_dtype(DType::F16), v}), "gamma must be f32"));
  CHECK(contains(infer_error(ops::RmsNormBackward{{1}, 1e-5, {0b1000}}, {x, x, v}), "rstd must be [2, 1]"));
}
