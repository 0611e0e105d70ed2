// Quantized values: known numbers (some of ONNX), derivatives, refusals of shape rules, and text form.
#include <doctest/doctest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Tensor f32_values(std::vector<std::int64_t> dims, const std::vector<double>& v) {
  return doubles(std::move(dims), v).cast(DType::F32);
}
Tensor number(double v, DType t = DType::F32) { return Tensor::full(Shape({}, t), v); }
Tensor of(DType t, std::vector<std::int64_t> dims, const std::vector<double>& v) {
  return doubles(std::move(dims), v).cast(t);
}
std::vector<double> values(const Tensor& t) { return t.to_f64(); }

constexpr std::uint32_t kScale = 1U << 1, kZero = 1U << 2;
ops::Quantize quantize(DType t, bool zero = false, std::optional<std::int64_t> axis = {}, std::int64_t block = 0) {
  ops::Quantize q;
  q.dtype = t, q.axis = axis, q.block = block, q.present.bits = zero ? kScale | kZero : kScale;
  return q;
}
ops::Dequantize dequantize(std::uint32_t present, std::optional<std::int64_t> axis = {}, std::int64_t block = 0) {
  ops::Dequantize d;
  d.present.bits = present, d.axis = axis, d.block = block;
  return d;
}

}  // namespace

TEST_CASE("quantize: halves go to even, values saturate, NaN is 0") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(values(run_op(quantize(DType::I8), {f32_values({8}, {0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -inf, nan}),
                                            number(1)})[0]) == std::vector<double>{0, 2, 2, 0, -2, 127, -128, 0});
  // The example of ONNX QuantizeLinear.
  CHECK(values(run_op(quantize(DType::U8, true),
                      {f32_values({6}, {0, 2, 3, 1000, -254, -1000}), number(2), number(128, DType::U8)})[0]) ==
        std::vector<double>{128, 129, 130, 255, 1, 0});
  CHECK(values(run_op(quantize(DType::I4), {f32_values({4}, {-100, -7.5, 6.4, 100}), number(1)})[0]) ==
        std::vector<double>{-8, -8, 6, 7});
  CHECK(values(run_op(quantize(DType::U4, true), {f32_values({4}, {-100, -1, 6.4, 100}), number(1),
                                                  number(3, DType::U4)})[0]) == std::vector<double>{0, 2, 9, 15});
  CHECK(values(run_op(quantize(DType::F8E4M3), {f32_values({4}, {1000, 0.3, -448, 17}), number(1)})[0]) ==
        std::vector<double>{448, 0.3125, -448, 16});
  CHECK(values(run_op(quantize(DType::I32), {f32_values({3}, {3e9, -3e9, 2.5}), number(1)})[0]) ==
        std::vector<double>{2147483647, -2147483648.0, 2});
}

TEST_CASE("quantize and dequantize: scales of a channel and of blocks") {
  const Tensor x = f32_values({2, 3}, {1, 10, 100, -1, -10, -100});
  CHECK(values(run_op(quantize(DType::I8, false, 1), {x, f32_values({3}, {0.5, 5, 50})})[0]) ==
        std::vector<double>{2, 2, 2, -2, -2, -2});
  CHECK(values(run_op(quantize(DType::I8, false, 0), {x, f32_values({2}, {1, 2})})[0]) ==
        std::vector<double>{1, 10, 100, 0, -5, -50});
  // Blocks of 2 along axis 1, the last one is short.
  CHECK(values(run_op(quantize(DType::I8, false, 1, 2), {x, f32_values({2, 2}, {1, 4, 0.5, 1})})[0]) ==
        std::vector<double>{1, 10, 25, -2, -20, -100});
  const Tensor codes = of(DType::I8, {2, 3}, {1, 2, 3, -1, -2, -3});
  CHECK(values(run_op(dequantize(kScale | kZero, 1),
                      {codes, f32_values({3}, {1, 2, 4}), of(DType::I8, {3}, {1, 0, -1})})[0]) ==
        std::vector<double>{0, 4, 16, -2, -4, -8});
  CHECK(values(run_op(dequantize(kScale, 1, 2), {codes, f32_values({2, 2}, {1, 2, 4, 8})})[0]) ==
        std::vector<double>{1, 2, 6, -4, -8, -24});
  // The difference of quantized values is exact before scaling.
  CHECK(values(run_op(dequantize(kScale | kZero), {of(DType::U8, {2}, {255, 0}), number(0.5),
                                                   number(128, DType::U8)})[0]) == std::vector<double>{63.5, -64});
  ops::Dequantize nvfp4 = dequantize(kScale | 1U << 3, 1, 2);
  CHECK(values(run_op(nvfp4, {of(DType::F4E2M1, {1, 4}, {0.5, 6, -1.5, 3}), of(DType::F8E4M3, {1, 2}, {2, 16}),
                              number(0.25)})[0]) == std::vector<double>{0.25, 3, -6, 12});
}

TEST_CASE("dynamic_quantize: ONNX's DynamicQuantizeLinear, and symmetric codes") {
  ops::DynamicQuantize onnx;
  onnx.dtype = DType::U8, onnx.symmetric = false;
  const auto expect = [&](const std::vector<double>& x, const std::vector<double>& codes, double scale, double zero) {
    const auto got = run_op(onnx, {f32_values({static_cast<std::int64_t>(x.size())}, x)});
    CHECK(values(got[0]) == codes);
    CHECK(got[1].at(0) == doctest::Approx(scale));
    CHECK(got[2].at(0) == zero);
  };
  expect({0, 2, -3, -2.5, 1.34, 0.5}, {153, 255, 0, 26, 221, 179}, 0.0196078438, 153);
  expect({-1, -2.1, -1.3, -2.5, -3.34, -4}, {191, 121, 172, 96, 42, 0}, 0.0156862754, 255);
  expect({1, 2.1, 1.3, 2.5, 3.34, 4, 1.5, 2.6, 3.9, 4, 3, 2.345},
         {64, 134, 83, 159, 213, 255, 96, 166, 249, 255, 191, 149}, 0.0156862754, 0);
  expect({0, 0}, {0, 0}, 1 / 255.0, 0);
  const auto symmetric = run_op(ops::DynamicQuantize{}, {f32_values({4}, {1, -2, 0.5, 0})});
  CHECK(values(symmetric[0]) == std::vector<double>{64, -127, 32, 0});  // 63.5 and 31.75
  CHECK(symmetric[1].at(0) == doctest::Approx(2 / 127.0));
  CHECK(symmetric[2].at_i64(0) == 0);
  ops::DynamicQuantize rows;
  rows.axis = 1, rows.block = 2;
  const auto each = run_op(rows, {f32_values({2, 2}, {1, -127, 0.5, 0.25})});
  CHECK(values(each[0]) == std::vector<double>{1, -127, 127, 64});
  CHECK(each[1].dims() == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("fake_quantize: the forward equals dequantize of quantize") {
  const Tensor x = f32_values({2, 4}, {0.1, -0.26, 0.9, 1.4, -1.6, 0.5, 0.75, 0.25});
  ops::FakeQuantize op;
  op.bits = 8, op.mode = ScaleMode::Fixed;
  for (const double s : {0.01, 0.125, 0.004}) {
    const Tensor y = run_op(op, {x, number(s)})[0];
    const Tensor codes = run_op(quantize(DType::I8), {x, number(s)})[0];
    const Tensor back = run_op(dequantize(kScale), {codes, number(s)})[0];
    for (std::int64_t i = 0; i < x.num_elements(); ++i)
      if (codes.at_i64(i) != -128) CHECK(y.at(i) == back.at(i));  // its range is symmetric
  }
  op.mode = ScaleMode::PerBatch, op.bits = 4;
  const auto got = run_op(op, {f32_values({3}, {7, -1.4, 2.5})});
  CHECK(values(got[0]) == std::vector<double>{7, -1, 2});
  CHECK(got[1].at(0) == 1);
  CHECK(run_op(op, {f32_values({2}, {0, 0})})[1].at(0) == doctest::Approx(1e-12));
  op.mode = ScaleMode::Ema, op.decay = 0.75;
  CHECK(run_op(op, {f32_values({1}, {14}), number(1)})[1].at(0) == doctest::Approx(0.75 * 1 + 0.25 * 2));
  CHECK(run_op(op, {f32_values({1}, {14}), number(0)})[1].at(0) == 2);  // the first batch initializes it
}

namespace {
// d sum(w * y) of fake_quantize by x and by scale.
std::vector<std::vector<double>> gradients(ops::FakeQuantize op, const Tensor& x, const Tensor& scale,
                                           const Tensor& w) {
  Graph g;
  Expr xs = g.input("x", x.shape()), s = g.input("s", scale.shape()), ws = g.input("w", w.shape());
  auto y = g.fake_quantize(xs, op, op.mode == ScaleMode::PerBatch ? std::nullopt : std::optional<Operand>(s));
  g.set_outputs({g.sum(y.y * ws)});
  const bool by_scale = op.mode == ScaleMode::Learned;
  const GradResult r = by_scale ? grad(g, {"x", "s"}) : grad(g, {"x"});
  NamedTensors in{{"x", x}, {"s", scale}, {"w", w}, {"d_output", number(1)}};
  const auto out = evaluate(r.graph, in);
  std::vector<std::vector<double>> back;
  for (std::size_t i = out.size() - (by_scale ? 2 : 1); i < out.size(); ++i) back.push_back(out[i].to_f64());
  return back;
}
}  // namespace

TEST_CASE("fake_quantize: the derivative passes through the rounding as asked") {
  const Tensor x = f32_values({4}, {0.3, -0.8, 1.0, 4.0}), s = number(0.5), w = f32_values({4}, {1, 2, 3, 4});
  ops::FakeQuantize op;
  op.bits = 2, op.mode = ScaleMode::Fixed;  // the range is [-0.5, 0.5]
  op.ste = StraightThrough::Identity;
  CHECK(gradients(op, x, s, w)[0] == std::vector<double>{1, 2, 3, 4});
  op.ste = StraightThrough::ClippedIdentity;
  CHECK(gradients(op, x, s, w)[0] == std::vector<double>{1, 0, 0, 0});
  op.ste = StraightThrough::HardTanh;
  CHECK(gradients(op, x, s, w)[0][0] == doctest::Approx(1 - 0.3 / 0.5));
  CHECK(gradients(op, x, s, w)[0][3] == 0);
  op.ste = StraightThrough::Tanh;
  const double t = std::tanh(0.6);
  CHECK(gradients(op, x, s, w)[0][0] == doctest::Approx(1 - t * t));
  // LSQ: round(z) - z inside the range, sign(z) q_max outside.
  op.bits = 3, op.mode = ScaleMode::Learned, op.ste = StraightThrough::ClippedIdentity;  // q_max 3, range 1.5
  const auto learned = gradients(op, x, s, w);
  CHECK(learned[0] == std::vector<double>{1, 2, 3, 0});
  CHECK(learned[1][0] == doctest::Approx(1 * (1 - 0.6) + 2 * (-2 + 1.6) + 3 * 0 + 4 * 3));
}

TEST_CASE("fake_quantize: vmap keeps the derivative, and gives each of the batch its scale") {
  Graph g;
  Expr x = g.input("x", Shape({3}, DType::F32));
  ops::FakeQuantize op;
  op.bits = 4;
  g.set_outputs({g.sum(g.fake_quantize(x, op).y)});
  const Tensor xs = f32_values({2, 3}, {7, 1.3, -2, 70, 13, -20});
  const GradResult one = grad(g, {"x"});
  const auto all = evaluate(vmap(one.graph, {{"x", 0}}, 2).graph, {{"x", xs}, {"d_output", number(1)}});
  CHECK(values(all.back()) == std::vector<double>{1, 1, 1, 1, 1, 1});
  const auto forward = evaluate(vmap(g, {{"x", 0}}, 2).graph, {{"x", xs}});
  CHECK(values(forward.front()) == std::vector<double>{7 + 1 - 2, 70 + 10 - 20});
}

TEST_CASE("dequantize: derivatives reach the scale") {
  Graph g;
  Expr q = g.input("q", Shape({2, 2}, DType::I8)), s = g.input("s", Shape({2}, DType::F32));
  ops::Dequantize op;
  op.axis = -1;
  g.set_outputs({g.sum(g.dequantize(q, s, op))});
  const GradResult r = grad(g, {"s"});
  const auto out = evaluate(
      r.graph, {{"q", of(DType::I8, {2, 2}, {1, 2, 3, 4})}, {"s", f32_values({2}, {1, 1})}, {"d_output", number(1)}});
  CHECK(values(out.back()) == std::vector<double>{4, 6});
}

TEST_CASE("dequantize: products with quantised weights") {
  Graph g;
  Expr x = g.input("x", Shape({1, 2}, DType::F32)), q = g.input("q", Shape({2, 3}, DType::I8)),
       s = g.input("s", Shape({3}, DType::F32));
  ops::Dequantize op;
  op.axis = 1;
  Expr b = g.input("b", Shape({5, 34}, DType::U8)), wide = g.input("wide", Shape({1, 4, 32}, DType::F32));
  g.set_outputs({g.dequant_matmul(x, q, s, op), g.dequant_matmul(wide, b, QuantScheme::Q8_0)});
  CHECK(g.shape(g.outputs()[1]).dims() == Dims{1, 4, 5});
  std::vector<double> block(5 * 34, 1);
  for (std::size_t r = 0; r < 5; ++r) block[r * 34] = 0, block[r * 34 + 1] = 0x3c;  // d = 1
  const auto out = evaluate(g, {{"x", f32_values({1, 2}, {1, 2})},
                                {"q", of(DType::I8, {2, 3}, {1, 2, 3, 4, 5, 6})},
                                {"s", f32_values({3}, {1, 10, 100})},
                                {"b", of(DType::U8, {5, 34}, block)},
                                {"wide", Tensor::full(Shape({1, 4, 32}, DType::F32), 0.5)}});
  CHECK(values(out[0]) == std::vector<double>{9, 120, 1500});
  for (double v : values(out[1])) CHECK(v == 16);
}

TEST_CASE("quantize: blocks as ops are those of the host, bit for bit") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 1; i < kNumQuantSchemes; ++i) {
    ops::Quantize op;
    op.scheme = static_cast<QuantScheme>(i), op.dtype = DType::U8;
    if (!makes_blocks(op.scheme) || block_layout(op.scheme).scales != GroupScales::None) continue;
    INFO(enum_name(op.scheme));
    for (const double size : {1.0, 1e-6, 1e5, 1e-9, 0.0}) {
      Tensor x = sequence({3, 64}, size, size / 3, DType::F32);
      x.set(5, size * 7.7);
      run_op(op, {x}, 0);
      x.set(70, nan);
      x.set(130, -inf);
      run_op(op, {x}, 0);
    }
  }
}

TEST_CASE("shape rules of quantised values name the operand") {
  const Shape q({2, 6}, DType::I8), one({}, DType::F32), x({2, 6}, DType::F32);
  CHECK(infer_error(dequantize(kScale), {q, one}).empty());
  CHECK(contains(infer_error(dequantize(kScale), {q}), "got 1 operands, takes (codes, scale)"));
  CHECK(contains(infer_error(dequantize(1U << 5), {q}), "the mask of optional operands is 32"));
  CHECK(contains(infer_error(dequantize(kScale), {x, one}), "codes must be integers"));
  CHECK(contains(infer_error(dequantize(kScale, 1), {q, one}), "scale must be [6] (axis 1 of [2, 6] i8), got [] f32"));
  CHECK(contains(infer_error(dequantize(kScale, 1, 4), {q, Shape({2, 1}, DType::F32)}),
                 "scale must be [2, 2] (axis 1, block 4 of [2, 6] i8)"));
  CHECK(contains(infer_error(dequantize(kScale, 2), {q, one}), "axis 2 is outside"));
  CHECK(contains(infer_error(dequantize(kScale, {}, 4), {q, one}), "needs an axis"));
  CHECK(contains(infer_error(dequantize(kScale), {q, Shape({}, DType::F64)}), "at most f32"));
  CHECK(contains(infer_error(dequantize(kScale | kZero), {q, one, Shape({}, DType::U8)}),
                 "zero_point must have the dtype of codes"));
  CHECK(contains(infer_error(dequantize(0, 1), {q}), "axis 1 needs a scale"));
  ops::Dequantize b;
  b.scheme = QuantScheme::Q4_K, b.dims = {2, 256};
  CHECK(infer_error(b, {Shape({2, 144}, DType::U8)}).empty());
  CHECK(contains(infer_error(b, {Shape({2, 143}, DType::U8)}), "needs 144 bytes for each 256"));
  CHECK(contains(infer_error(b, {Shape({3, 144}, DType::U8)}), "differ in the number of rows"));
  CHECK(contains(infer_error(b, {q}), "codes of q4_k must be u8"));
  b.present.bits = kScale;
  CHECK(contains(infer_error(b, {Shape({2, 144}, DType::U8), one}), "takes no scale"));
  b.present.bits = 0, b.dims = {2, 100};
  CHECK(contains(infer_error(b, {Shape({2, 144}, DType::U8)}), "must be a multiple of 256"));
  CHECK(contains(infer_error(quantize(DType::I64), {x, one}), "quantized values must be i4"));
  CHECK(contains(infer_error(quantize(DType::I32, true), {x, one, Shape({}, DType::I32)}), "takes no zero_point"));
  ops::Quantize k;
  k.scheme = QuantScheme::Q4_K;
  CHECK(contains(infer_error(k, {x}), "can be encoded only on the host"));
  k.scheme = QuantScheme::IQ2_XS;
  CHECK(contains(infer_error(k, {x}), "blocks of iq2_xs can be decoded, but not encoded"));
  k.scheme = QuantScheme::Q8_0;
  CHECK(contains(infer_error(k, {Shape({2, 32}, DType::F32)}), "blocks of q8_0 must be u8, got i8"));
  k.dtype = DType::U8;
  CHECK(infer_error(k, {Shape({2, 32}, DType::F32)}).empty());
  CHECK(contains(infer_error(k, {x}), "must be a multiple of 32"));
  k.present.bits = kScale;
  CHECK(contains(infer_error(k, {Shape({2, 32}, DType::F32), one}), "takes no scale"));
  CHECK(contains(infer_error(ops::Quantize{}, {x}), "affine quantization needs a scale"));
  ops::DynamicQuantize d;
  d.dtype = DType::U8;
  CHECK(contains(infer_error(d, {x}), "symmetric quantization needs a signed dtype"));
  ops::FakeQuantize f;
  CHECK(contains(infer_error(f, {x, one}), "got 2 operands, takes (x)"));
  f.mode = ScaleMode::Fixed;
  CHECK(contains(infer_error(f, {x}), "got 1 operands, takes (x, scale)"));
  f.bits = 9;
  CHECK(contains(infer_error(f, {x, one}), "bits must be in [2, 8]"));
}

TEST_CASE("optional operands are written by name") {
  const char* text = R"(graph @g {
  %0 = input() {name = "q"} : [2, 4] u8
  %1 = input() {name = "z"} : [] u8
  %2 = input() {name = "s"} : [] f32
  %3 = dequantize(%0, zero_point=%1, scale=%2) : [2, 4] f32
  %4 = dequantize(%0, zero_point=%1) : [2, 4] bf16
  return %3, %4
}
)";
  const Graph g = parse_text(text);
  const std::string printed = print_text(g);
  CHECK(contains(printed, "%3 = dequantize(%0, scale=%2, zero_point=%1) : [2, 4] f32"));
  CHECK(contains(printed, "%4 = dequantize(%0, zero_point=%1) : [2, 4] bf16"));
  CHECK(same_graph(parse_text(printed), g));
  CHECK(same_graph(from_bytes(to_bytes(g)), g));
  const auto refused = [&](const std::string& line) {
    const std::string all = R"(graph @g {
  %0 = input() {name = "q"} : [2, 4] u8
  %2 = input() {name = "s"} : [] f32
  )" + line + "\n}\n";
    return error_text([&] { parse_text(all); });
  };
  CHECK(contains(refused("%3 = dequantize(%0, %2) : [2, 4] f32"), "too many operands without a name"));
  CHECK(contains(refused("%3 = dequantize(%0, scales=%2) : [2, 4] f32"), "there is no operand 'scales'"));
  CHECK(contains(refused("%3 = dequantize(%0, scale=%2, scale=%2) : [2, 4] f32"), "operand 'scale' is given twice"));
  CHECK(contains(refused("%3 = dequantize(scale=%2) : [2, 4] f32"), "operand 'codes' is missing"));
  CHECK(contains(refused("%3 = dequantize(%0, scale %2) : [2, 4] f32"), "expected '=' after the operand's name scale"));
}
