// Matmuls and convolutions of quantized values, and learned scales: known values, rounding, derivatives.
#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/text.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Tensor quantized_values_of(std::vector<std::int64_t> dims, const std::vector<double>& v, DType t = DType::I8) {
  return doubles(std::move(dims), v).cast(t);
}

}  // namespace

TEST_CASE("q_matmul: zero points, halves to even, saturation, a factor for each column") {
  ops::QMatMul op;
  op.mult = {0.5};
  // 1 * 3 = 3 -> 1.5 -> 2; 1 * 5 = 5 -> 2.5 -> 2; -3 -> -1.5 -> -2.
  CHECK(run_op(op, {quantized_values_of({2, 1}, {1, -1}), quantized_values_of({1, 2}, {3, 5})})[0].to_f64() ==
        std::vector<double>{2, 2, -2, -2});
  op.mult = {1}, op.out_zp = 100;
  CHECK(run_op(op, {quantized_values_of({1, 2}, {127, 127}), quantized_values_of({2, 2}, {127, -128, 127, -128})})[0]
            .to_f64() == std::vector<double>{127, -128});
  // (1 - 2)(4 - 3) + (5 - 2)(1 - 3) + 10 = 3; in units of 2 and of 0.25.
  op.x_zp = 2, op.w_zp = 3, op.out_zp = 0, op.mult = {2, 0.25}, op.present.bits = 1U << 2;
  const Tensor bias = doubles({2}, {10, 10}).cast(DType::I32);
  CHECK(
      run_op(op, {quantized_values_of({1, 2}, {1, 5}), quantized_values_of({2, 2}, {4, 4, 1, 1}), bias})[0].to_f64() ==
      std::vector<double>{6, 1});
  // The result equals the quantized matmul of the dequantized operands.
  ops::QMatMul u8;
  u8.x_zp = 128, u8.w_zp = 0, u8.out_zp = 7, u8.mult = {0.02 * 0.01 / 0.05}, u8.dtype = DType::U8;
  const Tensor y = run_op(
      u8, {quantized_values_of({1, 3}, {130, 200, 0}, DType::U8), quantized_values_of({3, 1}, {50, -20, 33})})[0];
  const double product = (2 * 50 + 72 * -20 + -128 * 33) * 0.02 * 0.01;
  CHECK(y.at(0) == std::max(0.0, std::nearbyint(product / 0.05) + 7));
}

TEST_CASE("q_conv: what lies outside is the code of 0") {
  ops::QConv op;
  op.low = {1, 1}, op.high = {1, 1}, op.x_zp = 5, op.mult = {1};
  // All elements dequantize to 1, so the sum is the number of positions inside.
  const Tensor x = quantized_values_of({1, 1, 3, 3}, std::vector<double>(9, 6)),
               w = quantized_values_of({1, 1, 3, 3}, std::vector<double>(9, 1));
  CHECK(run_op(op, {x, w})[0].to_f64() == std::vector<double>{4, 6, 4, 6, 9, 6, 4, 6, 4});
  ops::QConv line;
  line.strides = {2}, line.dilations = {2}, line.mult = {0.5};
  // x[0] - x[2], x[2] - x[4].
  CHECK(run_op(line, {quantized_values_of({1, 1, 5}, {9, 0, 4, 0, 1}), quantized_values_of({1, 1, 2}, {1, -1})})[0]
            .to_f64() == std::vector<double>{2, 2});
}

TEST_CASE("fake_quantize_lsq: the rounding, and psi for the scale of each channel") {
  Graph g;
  const Expr x = g.input("x", Shape({2, 2}, DType::F32)), s = g.input("s", Shape({2}, DType::F32));
  const Expr w = g.input("w", Shape({2, 2}, DType::F32));
  g.set_outputs({g.sum(g.fake_quantize_lsq(x, s, ops::FakeQuantizeLsq{3, -1}) * w)});
  const GradResult d = value_and_grad(g, {"x", "s"});
  const auto f32 = [](std::vector<std::int64_t> dims, const std::vector<double>& v) {
    return doubles(std::move(dims), v).cast(DType::F32);
  };
  // q_max 3. Column 0, scale 0.5: 0.6 -> z 1.2, 4 -> z 8; column 1, scale 2: -1.8 -> z -0.9, 7 -> z 3.5.
  const auto out = evaluate(
      d.graph, {{"x", f32({2, 2}, {0.6, -1.8, 4, 7})}, {"s", f32({2}, {0.5, 2})}, {"w", f32({2, 2}, {1, 2, 3, 4})}});
  CHECK(out[0].at(0) == doctest::Approx(0.5 * 1 + -2 * 2 + 1.5 * 3 + 6 * 4));
  CHECK(out[1].to_f64() == std::vector<double>{1, 2, 0, 0});
  CHECK(out[2].at(0) == doctest::Approx((1 - 1.2) * 1 + 3 * 3));
  CHECK(out[2].at(1) == doctest::Approx((-1 + 0.9) * 2 + 3 * 4));
}

TEST_CASE("fake_quantize: the derivative has the scale of the forward pass in every mode") {
  // With a given scale the range is 127 * 0.01, whatever the batch holds; the same with a moving average that starts
  // there.
  for (const ScaleMode mode : {ScaleMode::Fixed, ScaleMode::Ema, ScaleMode::Learned}) {
    Graph g;
    const Expr x = g.input("x", Shape({3}, DType::F32)), s = g.input("s", Shape({}, DType::F32));
    ops::FakeQuantize op;
    op.mode = mode;
    g.set_outputs({g.sum(g.fake_quantize(x, op, s).y)});
    const auto out = evaluate(value_and_grad(g, {"x"}).graph, {{"x", doubles({3}, {0.5, -1.2, 2}).cast(DType::F32)},
                                                               {"s", Tensor::full(Shape({}, DType::F32), 0.01)}});
    CHECK(out[1].to_f64() == std::vector<double>{1, 1, 0});
  }
}

TEST_CASE("ops of codes are written with their attributes") {
  Graph g("g");
  const Expr x = g.input("x", Shape({2, 3}, DType::I8)), w = g.input("w", Shape({3, 2}, DType::U8));
  ops::QMatMul op;
  op.x_zp = -3, op.mult = {0.5, 0.25};
  g.set_outputs({g.q_matmul(op, {x, w, g.input("b", Shape({2}, DType::I32))})});
  const std::string text = print_text(g);
  CHECK(print_text(parse_text(text)) == text);
}
