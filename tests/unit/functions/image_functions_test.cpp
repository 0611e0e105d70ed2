// Pools, resizes, pads and norms of images: values of PyTorch and NumPy, and known faults of the reference project.
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/functions/image.h"
#include "rlx/functions/norms.h"
#include "rlx/functions/pool.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::doubles;
using test::expect_close;
using test::sequence;

constexpr double kListed = 1e-11;  // numbers below have 12 digits

using OfValue = std::function<Expr(Graph&, Expr)>;
// fn of x by the reference rules, checked against the kernels of the cpu.
Tensor value_of(const Tensor& x, const OfValue& fn) {
  Graph g;
  const Expr in = g.input("x", x.shape());
  g.set_outputs({fn(g, in)});
  const Tensor y = evaluate(g, {{"x", x}}).at(0);
  Graph again;
  const Expr value = again.input("x", x.shape());
  again.set_outputs({fn(again, value)});
  auto f = Session(Device::Cpu).compile(std::move(again));
  expect_close(f.run_typed({{"x", x}}).at(0), y, 1e-12);
  return y;
}

const Tensor kImage = sequence({1, 2, 4, 5});

TEST_CASE("pools agree with PyTorch") {
  using nn::PoolOptions;
  const auto avg = [](PoolOptions o) { return value_of(kImage, [=](Graph&, Expr x) { return nn::avg_pool(x, o); }); };
  const PoolOptions three{.window = {3}, .strides = {2}, .low = {1}};
  PoolOptions o = three;
  expect_close(avg(o),
               {-0.055555555556, 0.138888888889, 0.138888888889, -0.194444444444, -0.111111111111, -0.055555555556,
                0.222222222222, -0.055555555556, 0.111111111111, 0.222222222222, 0.055555555556, 0.055555555556},
               kListed);
  o.count_include_pad = false;
  expect_close(avg(o),
               {-0.125, 0.208333333333, 0.3125, -0.291666666667, -0.111111111111, -0.083333333333, 0.5, -0.083333333333,
                0.25, 0.333333333333, 0.055555555556, 0.083333333333},
               kListed);
  o.ceil_mode = true;
  expect_close(
      avg(o),
      {-0.125, 0.208333333333, 0.3125, -0.291666666667, -0.111111111111, -0.083333333333, -0.25, 0.083333333333, -0.5,
       0.5, -0.083333333333, 0.25, 0.333333333333, 0.055555555556, 0.083333333333, 0.375, 0.25, 0.125},
      kListed);
  o.count_include_pad = true;
  expect_close(avg(o),
               {-0.055555555556, 0.138888888889, 0.138888888889, -0.194444444444, -0.111111111111, -0.055555555556,
                -0.083333333333, 0.041666666667, -0.166666666667, 0.222222222222, -0.055555555556, 0.111111111111,
                0.222222222222, 0.055555555556, 0.055555555556, 0.125, 0.125, 0.041666666667},
               kListed);
  expect_close(avg({.window = {2}, .ceil_mode = true}),
               {-0.125, -0.0625, 0.5, -0.5, 0.25, 0.125, 0.5, -0.125, -0.25, 0.125, -0.5, 0.75}, kListed);

  const auto max = [](PoolOptions p, bool indices) {
    return value_of(kImage, [=](Graph&, Expr x) {
      const nn::IndexedPool both = nn::max_pool_with_indices(x, p);
      return indices ? both.indices : both.values;
    });
  };
  const PoolOptions tall{.window = {3, 2}, .strides = {2, 1}, .low = {1, 1}};
  expect_close(max(tall, false), {-0.75, 1,    1,    1.25, 1.25, 0.75, 0.25, 1,    1,    1, 1.25, 1.25,
                                  1.25,  1.25, 0.25, 1,    1,    0,    1.25, 1.25, 1.25, 1, 1,    1},
               0);
  expect_close(max(tall, true), {5, 6, 6, 3, 3, 9, 15, 6, 6, 17, 14, 14, 5, 5, 6, 8, 8, 9, 5, 5, 16, 8, 8, 19}, 0);
  const PoolOptions wide{.window = {2}, .strides = {2}, .dilation = {2}, .ceil_mode = true};
  expect_close(max(wide, false), {0.5, 1.25, 0.5, 1.25, 0.75, 0.5, -0.25, 0.5}, 0);
  expect_close(max(wide, true), {12, 14, 12, 14, 0, 14, 12, 14}, 0);
  expect_close(value_of(kImage,
                        [](Graph&, Expr x) {
                          const nn::IndexedPool both = nn::max_pool_with_indices(x, {.window = {2}});
                          return nn::max_unpool(both.values, both.indices, {4, 5});
                        }),
               {0, 0, 0, 1.25, 0, 0,    1, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0,    1,    0, 0,
                0, 0, 0, 0,    0, 1.25, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,    1.25, 0.25, 0, 0},
               0);
  expect_close(value_of(kImage, [](Graph&, Expr x) { return nn::lp_pool(x, 3, {.window = {2}, .strides = {1}}); }),
               {1.518294485938, 1.077217345016, 1.454661966874, 1.502311251729, 1.502311251729, 1.454661966874,
                1.077217345016, 1.518294485938, 1.340027102741, 1.518294485938, 1.077217345016, 1.454661966874,
                1.340027102741, 1.340027102741, 1.518294485938, 1.077217345016, 1.502311251729, 0.956465591386,
                1.502311251729, 1.454661966874, 1.518294485938, 1.340027102741, 1.340027102741, 1.518294485938},
               kListed);
  expect_close(value_of(kImage,
                        [](Graph&, Expr x) {
                          return nn::adaptive_avg_pool(x, {3, 2});
                        }),
               {-0.166666666667, 0.125, -0.125, 0.166666666667, -0.083333333333, 0.208333333333, 0, -0.166666666667,
                0.041666666667, -0.125, 0.083333333333, -0.083333333333},
               kListed);
  expect_close(value_of(kImage,
                        [](Graph&, Expr x) {
                          return nn::adaptive_max_pool(x, {3, 2});
                        }),
               {1, 1.25, 1, 1.25, 1, 1.25, 1.25, 1, 1.25, 1, 1.25, 1}, 0);
}

TEST_CASE("pools of every kind are what their names say") {  // A27: sum, min and product pools gave means, or zeros
  const Tensor x = doubles({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, -8});
  const auto of = [&](ReduceKind fn) {
    return value_of(x, [fn](Graph&, Expr v) { return nn::pool(fn, v, {.window = {2}}); });
  };
  expect_close(of(ReduceKind::Sum), {14, 6}, 0);
  expect_close(of(ReduceKind::Mean), {3.5, 1.5}, 0);
  expect_close(of(ReduceKind::Max), {6, 7}, 0);
  expect_close(of(ReduceKind::Min), {1, -8}, 0);
  expect_close(of(ReduceKind::Prod), {60, -672}, 0);
  const auto named = [&](Expr (*fn)(Operand, const nn::PoolOptions&)) {
    return value_of(x, [fn](Graph&, Expr v) { return fn(v, {.window = {2}}); });
  };
  expect_close(named(nn::sum_pool), {14, 6}, 0);
  expect_close(named(nn::min_pool), {1, -8}, 0);
  expect_close(named(nn::max_pool), {6, 7}, 0);
  expect_close(named(nn::prod_pool), {60, -672}, 0);
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::global_pool(ReduceKind::Prod, v); }), {40320.0 * -1}, 0);
}

TEST_CASE("channels may be last, and padding as much as same sizes take") {
  const Tensor x = sequence({2, 5, 4, 3});
  const nn::PoolOptions o{.window = {3, 2}, .strides = {2, 1}, .padding = nn::PoolPadding::Same, .channels_last = true};
  nn::PoolOptions first = o;
  first.channels_last = false;
  for (ReduceKind fn : {ReduceKind::Max, ReduceKind::Mean, ReduceKind::Prod}) {
    const Tensor last = value_of(x, [&](Graph&, Expr v) { return nn::pool(fn, v, o); });
    CHECK(last.dims() == std::vector<std::int64_t>{2, 3, 4, 3});
    expect_close(last,
                 value_of(x,
                          [&](Graph& g, Expr v) {
                            return g.transpose(nn::pool(fn, g.transpose(v, {0, 3, 1, 2}), first), {0, 2, 3, 1});
                          }),
                 1e-15);
  }
  const Tensor last = value_of(x, [&](Graph&, Expr v) { return nn::max_pool_with_indices(v, o).indices; });
  expect_close(
      last,
      value_of(
          x,
          [&](Graph& g, Expr v) {
            return g.transpose(nn::max_pool_with_indices(g.transpose(v, {0, 3, 1, 2}), first).indices, {0, 2, 3, 1});
          }),
      0);
}

TEST_CASE("resizes agree with PyTorch") {
  const Tensor x = sequence({1, 1, 3, 4});
  const auto with = [&](ResizeKind kind, bool corners, bool smooth) {
    return value_of(x, [=](Graph&, Expr v) { return nn::interpolate(v, {2, 7}, kind, corners, smooth); });
  };
  expect_close(with(ResizeKind::Nearest, false, false),
               {-1.25, -1.25, 0.5, 0.5, -0.5, -0.5, 1.25, 0.25, 0.25, -0.75, -0.75, 1, 1, 0}, 0);
  expect_close(value_of(x,
                        [](Graph&, Expr v) {
                          return nn::resize(v, {3, 2}, {7, 2}, {.kind = ResizeKind::Nearest});
                        }),
               {-1.25, -1.25, 0.5, -0.5, -0.5, 1.25, 1.25, -1, -1, 0.75, -0.25, -0.25, -1.25, -1.25}, 0);
  expect_close(with(ResizeKind::Linear, false, false),
               {-0.875, -0.495535714286, 0.111607142857, 0.03125, -0.049107142857, 0.558035714286, 0.9375, -0.6875,
                -0.308035714286, 0.299107142857, 0.21875, -0.008928571429, -0.580357142857, -0.9375},
               kListed);
  expect_close(with(ResizeKind::Linear, true, false),
               {-1.25, -0.375, 0.5, 0, -0.5, 0.375, 1.25, -1, -0.125, 0.75, 0.25, -0.25, -0.75, -1.25}, kListed);
  expect_close(with(ResizeKind::Cubic, false, false),
               {-0.968431033476, -0.497915818462, 0.118060943337, 0.014862060547, -0.064677780641, 0.609504099142,
                1.122554501014, -0.766282595976, -0.295767380962, 0.320209380837, 0.425476074219, 0.010243852354,
                -0.654291981511, -1.11955087734},
               kListed);
  expect_close(with(ResizeKind::Cubic, true, false),
               {-1.25, -0.28125, 0.5, 0, -0.5, 0.28125, 1.25, -1, -0.03125, 0.75, 0.5078125, -0.25, -0.84375, -1.25},
               kListed);
  expect_close(with(ResizeKind::Area, false, false),
               {-0.5, -0.3125, -0.125, 0.0625, 0.25, 0.4375, 0.625, -0.375, -0.1875, 0, 0.1875, 0.375, -0.125, -0.625},
               kListed);
  expect_close(with(ResizeKind::Linear, false, true),
               {-0.6875, -0.430803571429, -0.020089285714, 0.046875, 0.113839285714, 0.524553571429, 0.78125, -0.53125,
                -0.274553571429, 0.136160714286, 0.203125, 0.147321428571, -0.424107142857, -0.78125},
               kListed);
  expect_close(with(ResizeKind::Cubic, false, true),
               {-0.728693357205, -0.473131941779, -0.030484388801, 0.031826845907, 0.112927300829, 0.627600379589,
                0.925248294543, -0.55614119027, -0.300579774845, 0.142067778133, 0.323008627608, 0.199564109604,
                -0.524601855072, -0.950841732004},
               kListed);
  expect_close(
      value_of(sequence({1, 1, 4}),
               [](Graph&, Expr v) { return nn::interpolate(v, {6}, ResizeKind::Linear, false, false, {1.7}); }),
      {-1.25, -0.580882352941, 0.448529411765, -0.058823529412, -0.242647058824, 0.786764705882}, kListed);
}

TEST_CASE("twice as large repeats elements") {  // A9: the image was tiled instead
  const Tensor x = doubles({1, 1, 2, 2}, {1, 2, 3, 4});
  const std::vector<double> want{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::resize_nearest2x(v); }), want, 0);
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::interpolate(v, {4, 4}); }), want, 0);
}

TEST_CASE("pads, rolls, tiles and triangles are NumPy's") {
  const Tensor row = doubles({4}, {1, 2, 3, 4});
  const auto padded = [&](std::int64_t low, std::int64_t high, nn::PadMode mode) {
    return value_of(row, [=](Graph&, Expr v) { return nn::pad(v, {low}, {high}, mode); });
  };
  using nn::PadMode;
  expect_close(padded(2, 1, PadMode::Edge), {1, 1, 1, 2, 3, 4, 4}, 0);
  expect_close(padded(2, 3, PadMode::Reflect), {3, 2, 1, 2, 3, 4, 3, 2, 1}, 0);
  expect_close(padded(2, 1, PadMode::Symmetric), {2, 1, 1, 2, 3, 4, 4}, 0);
  expect_close(padded(1, 2, PadMode::Wrap), {4, 1, 2, 3, 4, 1, 2}, 0);
  expect_close(padded(5, 0, PadMode::Reflect), {2, 3, 4, 3, 2, 1, 2, 3, 4}, 0);  // wraps around more than once
  expect_close(padded(0, 6, PadMode::Symmetric), {1, 2, 3, 4, 4, 3, 2, 1, 1, 2}, 0);
  expect_close(padded(5, 5, PadMode::Wrap), {4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1}, 0);
  const Tensor x = doubles({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::roll(v, {1, -4}, {0, -1}); }), {5, 6, 4, 2, 3, 1}, 0);
  expect_close(value_of(x,
                        [](Graph&, Expr v) {
                          return nn::tile(v, {1, 2});
                        }),
               {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, 0);
  CHECK(value_of(x, [](Graph&, Expr v) {
          return nn::tile(v, {2, 1, 1});
        }).dims() == std::vector<std::int64_t>{2, 2, 3});
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::tril(v); }), {1, 0, 0, 4, 5, 0}, 0);
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::triu(v, 1); }), {0, 2, 3, 0, 0, 6}, 0);
}

TEST_CASE("norms of images agree with PyTorch") {
  const auto vector = [](Graph& g, std::int64_t n, double scale, double offset) {
    return g.constant(sequence({n}, scale, offset));
  };
  expect_close(
      value_of(sequence({2, 4, 3}),
               [&](Graph& g, Expr x) { return g.group_norm(x, 2, vector(g, 4, 1, 0.1), vector(g, 4, 0.5, 0), 1e-3); }),
      {0.975869069124,  -1.425434534562, -0.053261046742, 1.204555469788, 0.488638867447,  -0.227277734894,
       -0.794389138501, -0.310487682056, 0.17341377439,   2.054021488565, 0.420854073062,  -1.212313342441,
       -0.95393358915,  0.62494763877,   -2.13809451009,  0.215676495045, -0.60808762387,  0.833499584231,
       -0.364411683183, 0.184764396094,  -0.77629374264,  0.547772113852, -1.305697153707, 1.937874064521},
      kListed);
  const Tensor x = sequence({2, 3, 4});
  expect_close(value_of(x,
                        [&](Graph& g, Expr v) {
                          return nn::batch_norm_training(v, vector(g, 3, 1, 0.1), vector(g, 3, 0.5, 0), 1e-3).y;
                        }),
               {1.372971223036,  -1.059341570225, 0.330551454495,  -2.101761338766, 0.483239253191,  -0.346055869266,
                1.105210595034,  0.275915472577,  0.124524830454,  -0.749366440605, -0.25,           0.249366440605,
                -1.059341570225, 0.330551454495,  -2.101761338766, -0.711868314045, -0.346055869266, 1.105210595034,
                0.275915472577,  -0.55337964988,  -0.749366440605, -0.25,           0.249366440605,  -0.624524830454},
               kListed);
  const auto running = [&](bool variance) {
    return value_of(x, [&](Graph& g, Expr v) {
      const auto fresh = nn::batch_norm_training(v);
      const auto r = nn::running_statistics(g.constant(doubles({3}, {0, 0, 0})), g.constant(doubles({3}, {1, 1, 1})),
                                            fresh, 8, 0.3);
      return variance ? r.var : r.mean;
    });
  };
  expect_close(running(false), {0.05625, -0.009375, -0.075}, kListed);
  expect_close(running(true), {0.934375, 0.879129464286, 0.919642857143}, kListed);
  // Batch statistics that are passed in give the same result as computed ones.
  expect_close(value_of(x,
                        [&](Graph&, Expr v) {
                          const auto t = nn::batch_norm_training(v);
                          return v.graph().sub(nn::batch_norm(v, t.mean, t.var), t.y);
                        }),
               std::vector<double>(24, 0.0), 1e-12);
  expect_close(value_of(x, [](Graph&, Expr v) { return nn::instance_norm(v); }),
               value_of(x, [](Graph& g, Expr v) { return g.layer_norm(v); }), 1e-12);
  expect_close(
      value_of(sequence({1, 5, 2}), [](Graph&, Expr v) { return nn::local_response_norm(v, 3, 0.1, 0.75, 1.5); }),
      {-0.895322662966, 0.358129065187, -0.3577708764, 0.887337910835, 0.180512499885, -0.534519658195, 0.713402613284,
       0, -0.714114000347, 0.548209484809},
      kListed);
  expect_close(
      value_of(sequence({1, 5, 2}), [](Graph&, Expr v) { return nn::local_response_norm(v, 4, 0.1, 0.75, 1.5); }),
      {-0.901877962048, 0.360751184819, -0.360477853945, 0.89577118397, 0.178084656783, -0.537462710382, 0.717155959567,
       0, -0.719321504759, 0.545685109184},
      kListed);
  expect_close(value_of(sequence({2, 3}), [](Graph&, Expr v) { return nn::lp_normalize(v, 3); }),
               {-0.960646563389, 0.384258625356, -0.384258625356, 0.934844823134, 0.186968964627, -0.56090689388},
               kListed);
}

TEST_CASE("conditioned norms and gates broadcast over the sequence") {
  const Tensor x = sequence({2, 3, 4});
  const auto rows = [](Graph& g, double scale) { return g.constant(sequence({2, 4}, scale)); };
  expect_close(value_of(x, [&](Graph& g, Expr v) { return nn::ada_layer_norm(v, rows(g, 0.5), rows(g, 1)); }),
               value_of(x,
                        [&](Graph& g, Expr v) {
                          const Expr by = g.reshape(rows(g, 0.5), {2, 1, 4}), shift = g.reshape(rows(g, 1), {2, 1, 4});
                          return g.layer_norm(v) * (by + 1) + shift;
                        }),
               1e-12);
  expect_close(value_of(x, [&](Graph& g, Expr v) { return nn::gated_residual(v, rows(g, 1), v); }),
               value_of(x,
                        [&](Graph& g, Expr v) {
                          return v + g.reshape(rows(g, 1), {2, 1, 4}) * v;
                        }),
               1e-12);
}

TEST_CASE("the tangent of a group norm moves its mean and variance") {  // A7: the statistics were constants
  Graph g;
  const Expr x = g.input("x", Shape({1, 2, 3}, DType::F64));
  g.set_outputs({g.group_norm(x, 1)});
  const Tensor at = sequence({1, 2, 3});
  // A tangent along x, or along ones, gives 0 (up to eps).
  const Graph t = jvp(g, {"x"}).graph;
  NamedTensors in{{"x", at}};
  for (const Tensor& direction : {at, Tensor::of<double>({1, 2, 3}, std::vector<double>(6, 1.0))}) {
    for (NodeId id : t.leaves(OpKind::Input))
      if (t.leaf_name(id) != "x") in.insert_or_assign(t.leaf_name(id), direction);
    const Tensor moved = evaluate(t, in).back();
    expect_close(moved, std::vector<double>(6, 0.0), 1e-4);
  }
}

}  // namespace
}  // namespace rlx
