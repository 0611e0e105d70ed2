// Conv and the functions composed of it: known values, layouts, refusals.
#include <doctest/doctest.h>

#include "rlx/functions/conv.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"

using namespace rlx;
using namespace rlx::test;

namespace {

ops::Conv conv_with(auto change) {
  ops::Conv op;
  change(op);
  return op;
}

// The value of `build(x, w)` for F64 operands.
template <class F>
Tensor conv_value(const Tensor& x, const Tensor& w, F build) {
  Graph g;
  const Expr a = g.input("x", x.shape()), b = g.input("w", w.shape());
  g.set_outputs({build(g, a, b)});
  return evaluate(g, {{"x", x}, {"w", w}})[0];
}

const std::vector<double> kNine{1, 2, 3, 4, 5, 6, 7, 8, 9}, kFour{1, 2, 3, 4};

}  // namespace

TEST_CASE("conv multiplies windows by filters as they are, not turned round") {
  const Tensor x = doubles({1, 1, 3, 3}, kNine), w = doubles({1, 1, 2, 2}, kFour);
  expect_close(run(ops::Conv{}, {x, w}), {37, 47, 67, 77});
  const auto strided = conv_with([](auto& op) { op.strides = {2, 2}, op.low = op.high = {1, 1}; });
  expect_close(run(strided, {x, w}), {4, 18, 36, 77});
  const auto dilated = conv_with([](auto& op) { op.rhs_dilation = {2, 2}; });
  expect_close(run(dilated, {x, w}), {1 * 1 + 2 * 3 + 3 * 7 + 4 * 9});
  const auto cropped = conv_with([](auto& op) { op.low = {-1, 0}, op.high = {0, -1}; });
  expect_close(run(cropped, {x, w}), {67});
}

TEST_CASE("conv spreads x by lhs_dilation: a transposed convolution") {
  const Tensor x = doubles({1, 1, 2, 2}, kFour), w = doubles({1, 1, 2, 2}, kFour);
  const Tensor y = conv_value(
      x, w, [](Graph& g, Expr a, Expr b) { return g.conv_transpose2d(a, b, Builder::ConvOptions{.strides = {2}}); });
  expect_close(y, {1, 2, 2, 4, 3, 4, 6, 8, 3, 6, 4, 8, 9, 12, 12, 16});
  const Tensor longer = conv_value(x, w, [](Graph&, Expr a, Expr b) {
    return nn::conv_transpose2d(a, b, {.strides = {2}, .padding = {1}, .output_padding = {1}});
  });
  CHECK(longer.dims() == std::vector<std::int64_t>{1, 1, 3, 3});
  expect_close(longer, {4, 6, 8, 6, 4, 8, 12, 12, 16});
}

TEST_CASE("groups of features and of the batch are convolutions side by side") {
  const Tensor x = doubles({1, 2, 2}, {1, 2, 3, 4}), w = doubles({4, 1, 1}, {1, 10, 100, 1000});
  expect_close(run(conv_with([](auto& op) { op.groups = 2; }), {x, w}), {1, 2, 10, 20, 300, 400, 3000, 4000});
  const Tensor two = doubles({2, 1, 2}, {1, 2, 3, 4}), filters = doubles({2, 1, 1}, {1, 10});
  expect_close(run(conv_with([](auto& op) { op.batch_groups = 2; }), {two, filters}), {1, 2, 30, 40});
}

TEST_CASE("a window that does not fit gives an empty result, as in JAX") {
  const auto y =
      run(ops::Conv{}, {Tensor::zeros(Shape({1, 2, 3}, DType::F32)), Tensor::zeros(Shape({4, 2, 5}, DType::F32))});
  CHECK(y.dims() == std::vector<std::int64_t>{1, 4, 0});
}

TEST_CASE("conv of bytes gives I32, of integers wraps, of half floats rounds once") {
  auto i8 = Tensor::of<std::int8_t>({1, 1, 2}, std::vector<std::int8_t>{-128, 127});
  auto u8 = Tensor::of<std::uint8_t>({1, 1, 2}, std::vector<std::uint8_t>{255, 255});
  const auto into = [](DType t) { return conv_with([&](auto& op) { op.out = t; }); };
  CHECK(run(into(DType::I32), {i8, u8}).at_i64(0) == -255);
  CHECK(run(ops::Conv{}, {u8, u8}).at_i64(0) == (2 * 255 * 255) % 256);
  Tensor a = Tensor::full(Shape({1, 1, 4}, DType::BF16), 1), b = Tensor::full(Shape({1, 1, 4}, DType::BF16), 0.5);
  b.set(0, 256);
  CHECK(run(ops::Conv{}, {a, b}).at(0) == 258);
  CHECK(run(into(DType::F32), {a, b}).at(0) == 257.5);
}

TEST_CASE("conv functions: paddings, channels last, depthwise, im2col") {
  const Tensor x = doubles({1, 3, 3, 1}, kNine), w = doubles({2, 2, 1, 1}, kFour);
  const auto last = [](nn::ConvPadding padding) {
    return [padding](Graph&, Expr a, Expr b) { return nn::conv2d(a, b, {.padding = padding, .channels_last = true}); };
  };
  expect_close(conv_value(x, w, last(nn::ConvPadding::valid())), {37, 47, 67, 77});
  expect_close(conv_value(x, w, last(nn::ConvPadding::same())), {37, 47, 21, 67, 77, 33, 23, 26, 9});
  expect_close(conv_value(x, w, last(nn::ConvPadding::same_lower())), {4, 11, 18, 18, 37, 47, 36, 67, 77});
  expect_close(conv_value(x, w, last(nn::ConvPadding::of({-1}, {0}))), {77});
  expect_close(conv_value(doubles({1, 2, 2}, kFour), doubles({1, 2}, {1, 10}),
                          [](Graph&, Expr a, Expr b) { return nn::depthwise_conv1d(a, b); }),
               {1, 20, 3, 40});
  expect_close(conv_value(doubles({1, 1, 3}, {1, 2, 3}), doubles({1, 1, 2}, {1, 10}),
                          [](Graph&, Expr a, Expr b) { return nn::conv1d(a, b, {.strides = {1}}); }),
               {21, 32});
  expect_close(conv_value(doubles({1, 1, 1, 1, 2}, {1, 2}), doubles({1, 1, 1, 1, 2}, {1, 10}),
                          [](Graph&, Expr a, Expr b) { return nn::conv3d(a, b); }),
               {21});
  expect_close(conv_value(doubles({1, 1, 2}, {1, 2}), doubles({1, 1, 2}, {1, 10}),
                          [](Graph&, Expr a, Expr b) { return nn::conv_transpose1d(a, b); }),
               {1, 12, 20});
  expect_close(conv_value(doubles({1, 1, 1, 1, 2}, {1, 2}), doubles({1, 1, 1, 1, 2}, {1, 10}),
                          [](Graph&, Expr a, Expr b) { return nn::conv_transpose3d(a, b); }),
               {1, 12, 20});
  const Tensor unread = doubles({1}, {0});
  const auto patches = [](Graph&, Expr a, Expr) { return nn::im2col(a, {2, 2}); };
  const Tensor p = conv_value(doubles({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), unread, patches);
  CHECK(p.dims() == std::vector<std::int64_t>{1, 4, 1, 2});
  expect_close(p, {1, 2, 2, 3, 4, 5, 5, 6});
  const auto spread = [](Graph&, Expr a, Expr) {
    return nn::im2col(a, {3}, {.strides = {2}, .dilation = {2}, .padding = nn::ConvPadding::of({1})}, {2});
  };
  // 0 1 0 2 0 3 0: the positions 0, 2 and 4 in the window are zeros.
  CHECK(conv_value(doubles({1, 1, 3}, {1, 2, 3}), unread, spread).dims() == std::vector<std::int64_t>{1, 3, 2});
}

TEST_CASE("im2col then a product is a convolution") {
  const Tensor x = sequence({2, 3, 5, 4}), w = sequence({4, 3, 3, 2}, 0.25);
  const Tensor direct = conv_value(x, w, [](Graph& g, Expr a, Expr b) { return g.conv2d(a, b); });
  const Tensor by_patches = conv_value(x, w, [](Graph& g, Expr a, Expr b) {
    const Expr p = nn::im2col(a, {3, 2});  // [2, 18, 3, 3]
    const Expr y = g.dot_general(g.reshape(b, {4, 18}), p, ops::DotGeneral{{1}, {1}, {}, {}});
    return g.transpose(y, {1, 0, 2, 3});
  });
  expect_close(direct, by_patches, 1e-12);
}

TEST_CASE("conv refuses attributes and operands that do not fit, and says which") {
  const Shape x({2, 4, 6, 6}, DType::F32), w({6, 4, 3, 3}, DType::F32);
  const auto refused = [&](auto change) { return infer_error(conv_with(change), {x, w}); };
  CHECK(refused([](auto&) {}).empty());
  CHECK(contains(refused([](auto& op) { op.strides = {1}; }), "strides has 1 entries for 2 spatial axes"));
  CHECK(contains(refused([](auto& op) { op.strides = {0, 1}; }), "strides holds 0"));
  CHECK(contains(refused([](auto& op) { op.lhs_dilation = {1, -1}; }), "lhs_dilation holds -1"));
  CHECK(contains(refused([](auto& op) { op.low = {-4, 0}, op.high = {-3, 0}; }), "crop more elements than axis 2"));
  CHECK(contains(refused([](auto& op) { op.groups = 3; }), "cannot be divided into 3 groups"));
  CHECK(contains(refused([](auto& op) { op.groups = 0; }), "groups is 0"));
  CHECK(contains(refused([](auto& op) { op.groups = 2; }), "filters w"));
  CHECK(contains(refused([](auto& op) { op.batch_groups = 4; }), "cannot be divided into 4 batch_groups"));
  CHECK(contains(refused([](auto& op) { op.groups = op.batch_groups = 2; }), "only one of them may be above 1"));
  CHECK(contains(refused([](auto& op) { op.lhs_spec = {0, 1, 2, 2}; }), "lhs_spec must list each of the 4 axes once"));
  CHECK(contains(refused([](auto& op) { op.out_spec = {0, 1}; }), "out_spec must list"));
  CHECK(contains(infer_error(ops::Conv{}, {x, Shape({6, 4, 3}, DType::F32)}), "with the same rank"));
  CHECK(contains(infer_error(ops::Conv{}, {x, Shape({6, 4, 0, 3}, DType::F32)}), "have extent 0"));
  CHECK(contains(infer_error(ops::Conv{}, {x, Shape({6, 4, 3, 3}, DType::F64)}), "f64"));
}

TEST_CASE("conv over symbolic extents: forward, derivatives and a batch of members") {
  Graph g;
  const Dim n = g.symbol("n"), h = g.symbol("h", {.min = 3, .max = 64});
  const Expr x = g.input("x", Shape({n, Dim(2), h, Dim(5)}, DType::F32));
  const Expr w = g.input("w", Shape({3, 2, 3, 3}, DType::F32));
  ops::Conv op;
  op.strides = {2, 1}, op.low = op.high = {1, 1};
  const Expr y = g.conv(x, w, op);
  g.set_outputs({g.sum(g.binary(BinaryKind::Mul, y, y))});
  const GradResult d = grad(g, {"x", "w"});
  for (std::int64_t height : {3, 4, 7, 8}) {
    const Tensor xs = sequence({2, 2, height, 5}).cast(DType::F32), ws = sequence({3, 2, 3, 3}, 0.5).cast(DType::F32);
    const NamedTensors values{{"x", xs}, {"w", ws}, {"d_output", Tensor::scalar(DType::F32, 1)}};
    const auto symbolic = Session().compile(Graph(d.graph)).run_typed(values);
    Graph fixed;
    const Expr a = fixed.input("x", xs.shape()), b = fixed.input("w", ws.shape()), z = fixed.conv(a, b, op);
    fixed.set_outputs({fixed.sum(fixed.binary(BinaryKind::Mul, z, z))});
    const auto known = evaluate(grad(fixed, {"x", "w"}).graph, values);
    REQUIRE(symbolic.size() == known.size());
    for (std::size_t i = 0; i < known.size(); ++i) expect_close(symbolic[i], known[i], 1e-4);
  }
  Graph one;
  const Expr xi = one.input("x", Shape({1, 2, 6}, DType::F32)), wi = one.input("w", Shape({3, 2, 3}, DType::F32));
  one.set_outputs({one.conv(xi, wi, ops::Conv{})});
  const Graph many = vmap(one, {{"x", 0}}, one.symbol("b", {.min = 1, .max = 4})).graph;
  const Tensor xs = sequence({3, 1, 2, 6}).cast(DType::F32), ws = sequence({3, 2, 3}).cast(DType::F32);
  const Tensor got = Session().compile(Graph(many)).run_typed({{"x", xs}, {"w", ws}}).at(0);
  CHECK(got.dims() == std::vector<std::int64_t>{3, 1, 3, 4});
  CHECK(contains(error_text([&] { (void)vmap(one, {{"x", 0}, {"w", 0}}, one.symbol("b")); }), "a known batch size"));
}
