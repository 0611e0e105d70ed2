// Microscaling formats and matmuls with expert weights: known values, and the same by other ops.
#include <cmath>

#include <doctest/doctest.h>

#include "rlx/functions/quantized.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

std::vector<std::vector<double>> results_of(Graph& g, const std::vector<Expr>& outputs) {
  g.set_outputs(outputs);
  std::vector<std::vector<double>> out;
  for (const Tensor& t : evaluate(g, {})) out.push_back(t.to_f64());
  return out;
}
Expr f32_in(Graph& g, std::vector<std::int64_t> dims, const std::vector<double>& v) {
  return g.constant(doubles(std::move(dims), v).cast(DType::F32));
}

}  // namespace

TEST_CASE("scaled values: the exponent of the largest, codes to the nearest") {
  Graph g("g");
  const quantized::ScaledFormat f{DType::F8E4M3, 4, -1};
  // The largest magnitude 7 has exponent 2, so the scale is 2^(2 - 8). 8 has exponent 3, and the number below it 2.
  const Expr x = f32_in(g, {4, 4}, {7, -1, 0.3, 0, 8, 1, 2, 4, std::nextafter(8.0F, 0.0F), 0, 0, 0, 0, 0, 0, 0});
  const quantized::ScaledValue q = quantized::scaled_quantize(x, f);
  const auto r = results_of(g, {q.scale, g.cast(q.codes, DType::F32), quantized::scaled_dequantize(q, f)});
  CHECK(r[0] == std::vector<double>{0x1p-6, 0x1p-5, 0x1p-6, 1});
  CHECK(r[1][0] == 448);
  CHECK(r[1][1] == -64);
  CHECK(r[1][2] == 20);  // 19.2 rounded to three fraction bits
  CHECK(r[1][4] == 256);
  CHECK(r[2][2] == 20.0 / 64);
  CHECK(r[2][8] == 7);  // saturated
  Graph h("h");
  const Expr odd = f32_in(h, {6, 1}, {HUGE_VAL, std::nan(""), 1e-45, 0x1p-126, 3e38, 1});
  const auto s = results_of(h, {quantized::scaled_quant_scale(odd, {DType::F4E2M1, 1, -1}),
                                quantized::scaled_quant_scale(odd, {DType::F8E5M2, 2, 0})});
  CHECK(std::isnan(s[0][0]));
  CHECK(std::isnan(s[0][1]));
  CHECK(s[0][2] == 0x1p-126);
  CHECK(s[0][4] == 0x1p125);
  CHECK(s[0][5] == 0.25);
  CHECK(s[1].size() == 3);
  CHECK(s[1][2] == 0x1p112);
}

TEST_CASE("scaled products are those of the numbers that stand behind") {
  Graph g("g");
  std::vector<double> a, b;
  for (int i = 0; i < 8; ++i) a.push_back(i % 5 - 2);
  for (int i = 0; i < 12; ++i) b.push_back(i % 7 - 3);
  const Expr x = f32_in(g, {2, 4}, a), w = f32_in(g, {4, 3}, b), stack = g.reshape(w, {1, 4, 3});
  const auto qx = quantized::scaled_quantize(x, {DType::F8E4M3, 2, -1}),
             qw = quantized::scaled_quantize(w, {DType::F8E4M3, 2, 0});
  const auto qs = quantized::scaled_quantize(stack, {DType::F8E4M3, 2, 1});
  const Tensor ids = Tensor::zeros(Shape({2}, DType::I32));
  const auto r = results_of(g, {quantized::scaled_matmul(qx, qw, 2), g.matmul(x, w),
                                quantized::scaled_grouped_matmul(qx, qs, g.constant(ids), 2)});
  CHECK(r[0] == r[1]);
  CHECK(r[2] == r[1]);
}

TEST_CASE("products with experts' weights in blocks") {
  Graph g("g");
  std::vector<double> v;
  for (int i = 0; i < 2 * 3 * 32; ++i) v.push_back(i % 17 - 8);
  const Expr w = f32_in(g, {2, 3, 32}, v), codes = g.quantize(w, QuantScheme::Q8_0);
  std::vector<double> rows;
  for (int i = 0; i < 64; ++i) rows.push_back(i % 3 - 1);
  const Expr x = f32_in(g, {2, 32}, rows);
  Tensor ids = Tensor::zeros(Shape({2}, DType::I32));
  ids.set_i64(0, 1);
  const Expr which = g.constant(ids), decoded = g.transpose(g.dequantize(codes, QuantScheme::Q8_0), {0, 2, 1});
  const auto r = results_of(
      g, {quantized::dequant_moe_weights(codes, QuantScheme::Q8_0), decoded,
          quantized::dequant_grouped_matmul(x, codes, which, QuantScheme::Q8_0), g.grouped_dot(x, decoded, which)});
  CHECK(r[0] == r[1]);
  CHECK(r[2] == r[3]);
  // Affine quantized values: value * scale + bias.
  Graph h("h");
  const Expr small = h.constant(doubles({1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}).cast(DType::U8));
  const Expr scale = f32_in(h, {1, 2, 2}, {1, 2, 0.5, 1}), bias = f32_in(h, {1, 2, 2}, {0, -1, 1, 0});
  const auto s =
      results_of(h, {quantized::dequant_grouped_matmul(f32_in(h, {1, 4}, {1, 1, 1, 1}), small, scale, bias,
                                                       h.constant(Tensor::zeros(Shape({1}, DType::I32))), 2)});
  CHECK(s[0] == std::vector<double>{0 + 1 + 3 + 5, 3 + 3.5 + 6 + 7});
}
