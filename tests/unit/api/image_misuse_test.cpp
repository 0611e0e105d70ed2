// Misuse of the functions of images: invalid operands and options of pools, resize and norms.
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "rlx/functions/image.h"
#include "rlx/functions/norms.h"
#include "rlx/functions/pool.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

TEST_CASE("misuse: functions of images") {
  Graph g;
  const Expr x = g.input("x", Shape({1, 2, 4, 4}, DType::F32)), i = g.input("i", Shape({1, 2, 4, 4}, DType::I32)),
             v = g.input("v", Shape({3}, DType::F32));
  const auto refused = [&](const std::function<Expr()>& call, const char* why) {
    const std::string text = error_text([&] { (void)call(); });
    CAPTURE(text);
    CHECK(contains(text, why));
  };
  refused([&] { return nn::max_pool(x, {}); }, "the window is empty");
  refused([&] { return nn::max_pool(x, {.window = {0}}); }, "window 0 is below 1");
  refused([&] { return nn::max_pool(x, {.window = {2}, .strides = {0}}); }, "strides 0 is below 1");
  refused([&] { return nn::max_pool(x, {.window = {2}, .low = {-1}}); }, "low -1 is below 0");
  refused(
      [&] {
        return nn::max_pool(x, {.window = {2, 2}, .strides = {1, 1, 1}});
      },
      "window has 2 entries for 3 spatial axes");
  refused([&] { return nn::max_pool(v, {.window = {2}}); }, "no spatial axes");
  refused([&] { return nn::max_pool(1.0, {.window = {2}}); }, "x must be a value of a graph");
  refused([&] { return nn::avg_pool(i, {.window = {2}}); }, "must be float or complex");
  refused([&] { return nn::lp_pool(x, 0, {.window = {2}}); }, "p must be a finite number > 0");
  refused([&] { return nn::max_unpool(x, x, {8, 8}); }, "indices must be integers");
  refused([&] { return nn::adaptive_avg_pool(x, {0}); }, "sizes 0 is below 1");
  refused([&] { return nn::adaptive_max_pool(x, {2, 2, 2, 2, 2}); }, "spatial axes");
  refused([&] { return nn::global_pool(ReduceKind::Sum, v); }, "no spatial axes");
  refused([&] { return nn::resize(x, {2}, {1, 2}); }, "2 sizes for 1 axes");
  refused([&] { return nn::resize(x, {2}, {0}); }, "size 0 of axis 2");
  refused([&] { return nn::resize(i, {2}, {3}); }, "must be float or complex");
  refused([&] { return nn::resize(x, {4}, {3}); }, "axis 4");
  refused([&] { return nn::interpolate(x, {}); }, "0 sizes");
  refused([&] { return nn::resize_nearest2x(v); }, "[N, C, H, W]");
  refused([&] { return nn::pad(x, {1}, {1}, nn::PadMode::Edge); }, "amounts for the axes of x");
  refused([&] { return nn::pad(v, {-1}, {1}, nn::PadMode::Edge); }, "is negative");
  refused([&] { return nn::roll(v, {1, 2}, {0}); }, "2 shifts for 1 axes");
  refused([&] { return nn::tile(v, {-1}); }, "-1 repeats");
  refused([&] { return nn::tril(v); }, "[.., M, N]");
  refused([&] { return nn::triu(1.0); }, "x must be a value of a graph");
  refused([&] { return g.group_norm(x, 3); }, "not a multiple of 3 groups");
  refused([&] { return g.group_norm(v, 1); }, "[N, C, ..]");
  refused([&] { return nn::instance_norm(v); }, "[N, C, ..]");
  refused([&] { return nn::batch_norm(x, v, v); }, "mean must be");
  refused([&] { return nn::batch_norm_training(i).y; }, "must be float");
  refused([&] { return nn::running_statistics(v, v, {v, v, v}, 1).mean; }, "needs at least 2");
  refused([&] { return nn::local_response_norm(x, 0); }, "size must be at least 1");
  refused([&] { return nn::lp_normalize(x, -1); }, "p must be");
  refused([&] { return nn::ada_layer_norm(i, x, x); }, "must be float");
  refused([&] { return nn::gated_residual(i, x, x); }, "must be float");
  refused([&] { return nn::min_pool(v, {.window = {2}}); }, "no spatial axes");
  refused([&] { return nn::sum_pool(v, {.window = {2}}); }, "no spatial axes");
  refused([&] { return nn::prod_pool(v, {.window = {2}}); }, "no spatial axes");
  refused([&] { return nn::pool(ReduceKind::Sum, v, {.window = {2}}); }, "no spatial axes");
  refused([&] { return nn::max_pool_with_indices(v, {.window = {2}}).indices; }, "no spatial axes");
  refused([&] { return g.reduce_window(x, {}); }, "window has 0 numbers");
  refused([&] { return g.select_and_scatter(x, x, {}); }, "window has 0 numbers");
  refused([&] { return g.layer_norm2d(x, v, v); }, "gamma must be");
}

}  // namespace
}  // namespace rlx
