// Misuse of convolutions: operands and options that do not fit.
#include <doctest/doctest.h>

#include "rlx/functions/conv.h"
#include "rlx/ir/ops/conv.h"
#include "tests/support/error_text.h"

using namespace rlx;
using namespace rlx::test;

TEST_CASE("misuse: convolutions") {
  Graph g;
  const Expr x = g.input("x", Shape({1, 4, 6, 6}, DType::F32)), w = g.input("w", Shape({4, 4, 3, 3}, DType::F32));
  const Expr line = g.input("line", Shape({1, 6, 4}, DType::F32)), taps = g.input("taps", Shape({3, 4}, DType::F32));
  const auto refused = [](auto call) { return error_text(call); };
  CHECK(contains(refused([&] { nn::conv1d(x, w); }), "conv1d: x and w must have 3 axes"));
  CHECK(contains(refused([&] { nn::conv3d(x, w); }), "conv3d: x and w must have 5 axes"));
  CHECK(contains(refused([&] { nn::conv2d(x, w, {.strides = {1, 2, 3}}); }), "strides has 3 entries"));
  CHECK(contains(refused([&] { nn::conv2d(x, w, {.dilation = {0}}); }), "dilation holds 0"));
  CHECK(contains(refused([&] { nn::conv2d(x, w, {.padding = nn::ConvPadding::of({1, 2, 3})}); }), "padding"));
  CHECK(contains(refused([&] { g.conv2d(x, w, Builder::ConvOptions{.padding = {-1}}); }), "padding holds -1"));
  CHECK(contains(refused([&] { g.conv2d(x, w, Builder::ConvOptions{.output_padding = {1}}); }),
                 "only for conv_transpose2d"));
  CHECK(contains(refused([&] { g.conv_transpose2d(x, w, Builder::ConvOptions{.output_padding = {1}}); }),
                 "must be less than the stride"));
  CHECK(contains(refused([&] { nn::conv_transpose2d(x, w, {.groups = 3}); }), "cannot be divided into 3 groups"));
  CHECK(contains(refused([&] { nn::conv_transpose1d(x, w); }), "3 axes"));
  CHECK(contains(refused([&] { nn::conv_transpose3d(x, w); }), "5 axes"));
  CHECK(contains(refused([&] { nn::depthwise_conv1d(line, w); }), "needs x [B, S, C] and w [K, C]"));
  CHECK(contains(refused([&] { nn::depthwise_conv1d(line, g.t(taps)); }), "has 4 channels"));
  CHECK(contains(refused([&] { nn::im2col(x, {3}); }), "1 extents for 2 spatial axes"));
  CHECK(contains(refused([&] { nn::im2col(x, {3, 0}); }), "window holds 0"));
  const Expr symbolic = g.input("s", Shape({Dim(1), Dim(4), g.symbol("h"), Dim(6)}, DType::F32));
  CHECK(contains(refused([&] { nn::conv2d(symbolic, w, {.strides = {2}, .padding = nn::ConvPadding::same()}); }),
                 "an extent is symbolic"));
  const Expr none;
  CHECK(contains(refused([&] { nn::conv2d(none, w); }), "value"));
  CHECK(contains(refused([&] { g.conv(x, line, ops::Conv{}); }), "with the same rank"));
  CHECK(contains(refused([&] { g.conv(x, w, ops::Conv{.lhs_spec = {0, 1, 2, 9}}); }), "9"));
}
