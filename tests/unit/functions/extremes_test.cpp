// Functions with numbers of elements, steps or iterations, at both ends of the integer range. Each gives a result or an
// error at once, and never counts up to the number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/functions/conv.h"
#include "rlx/functions/fft.h"
#include "rlx/functions/image.h"
#include "rlx/functions/linalg.h"
#include "rlx/functions/pool.h"
#include "rlx/functions/random.h"
#include "rlx/functions/stats.h"
#include "rlx/functions/stft.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ir/ops/sequence.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/build_kind.h"
#include "tests/support/run_check.h"
#include "tests/unit/api/misuse.h"

namespace rlx {
namespace {

using test::kHigh;
using test::kLow;
constexpr std::int64_t kHuge = std::int64_t{1} << 40;

Tensor counted(const Shape& shape) {
  Tensor t = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, static_cast<double>(i));
  return t;
}
std::vector<Tensor> run_of(Graph g, const Tensor& x) { return Session().compile(std::move(g)).run_typed({{"x", x}}); }

}  // namespace

TEST_CASE("extremes: lengths that a transform is fast at") {
  const auto counted_up = [](std::int64_t n) {
    for (;; ++n) {
      std::int64_t rest = n;
      for (const std::int64_t p : {2, 3, 5, 7})
        while (rest % p == 0) rest /= p;
      if (rest == 1) return n;
    }
  };
  for (std::int64_t n = 1; n < 3000; ++n) CHECK(fft::next_fast_len(n) == counted_up(n));
  for (std::int64_t n : {1000003, 123456789}) CHECK(fft::next_fast_len(n) == counted_up(n));
  constexpr std::int64_t kTop = std::int64_t{1} << 62;
  CHECK(fft::next_fast_len(kTop) == kTop);
  const std::int64_t above = fft::next_fast_len(kTop + 1);
  CHECK(above > kTop);
  CHECK(fft::next_fast_len(above) == above);
  REFUSED("does not fit 64 bits", fft::next_fast_len(kHigh));
}

TEST_CASE("extremes: filters, powers and exponentials") {
#if !defined(RLX_ADDRESS_SANITIZER) && !defined(RLX_THREAD_SANITIZER)  // the allocators of sanitizers end the program
  REFUSED("no memory", fft::mel_filterbank({.n_mels = kHuge}));
#endif
  REFUSED("overflows", fft::mel_filterbank({.n_mels = kHigh}));
  Graph g;
  const Expr x = g.input("x", Shape({2, 2}, DType::F64));
  g.set_outputs({linalg::matrix_power(x, kLow), linalg::matrix_power(x, kHigh), linalg::expm(x, kHigh)});
  const Tensor turn = Tensor::of({2, 2}, std::vector<double>{0, 1, -1, 0});
  const std::vector<Tensor> out = run_of(std::move(g), turn);
  // A rotation by 90 degrees: its power 2^63 is 1, and the power 2^63 - 1 is -x. exp(x) rotates by one radian.
  const double want[3][4] = {{1, 0, 0, 1}, {0, -1, 1, 0}, {std::cos(1), std::sin(1), -std::sin(1), std::cos(1)}};
  for (std::size_t r = 0; r < 3; ++r)
    for (std::int64_t i = 0; i < 4; ++i) CHECK(test::difference(out[r].at(i), want[r][i]) < 1e-14);
}

TEST_CASE("extremes: pools") {
  Graph g;
  const Expr x = g.input("x", Shape({1, 1, 7}, DType::F32));
  g.set_outputs({nn::adaptive_max_pool(x, {10}), nn::adaptive_max_pool(x, {14})});  // more windows than elements
  const std::vector<Tensor> out = run_of(std::move(g), counted(Shape({1, 1, 7}, DType::F32)));
  for (std::int64_t o = 0; o < 10; ++o) CHECK(out[0].at(o) == static_cast<double>(((o + 1) * 7 + 9) / 10 - 1));
  for (std::int64_t o = 0; o < 14; ++o) CHECK(out[1].at(o) == static_cast<double>(o / 2));
}

TEST_CASE("extremes: amounts of windows and padding") {
  Graph g;
  const Expr x = g.input("x", Shape({1, 1, 8}, DType::F32)), w = g.input("w", Shape({1, 1, 3}, DType::F32)),
             v = g.input("v", Shape({4}, DType::F32));
  for (std::int64_t n : {kHuge, kHigh}) {
    CAPTURE(n);
    REFUSED("adaptive_max_pool: sizes", nn::adaptive_max_pool(x, {n}));
    REFUSED("strides", nn::avg_pool(x, {.window = {2}, .strides = {n}, .padding = nn::PoolPadding::Same}));
    REFUSED("window", nn::avg_pool(x, {.window = {n}, .strides = {2}, .padding = nn::PoolPadding::Same}));
    REFUSED("dilation", nn::avg_pool(x, {.window = {2}, .dilation = {n}, .ceil_mode = true}));
    REFUSED("low", nn::avg_pool(x, {.window = {2}, .low = {n}, .ceil_mode = true}));
    REFUSED("conv1d: strides holds", nn::conv1d(x, w, {.strides = {n}, .padding = nn::ConvPadding::same()}));
    REFUSED("conv1d: dilation holds", nn::conv1d(x, w, {.dilation = {n}}));
    REFUSED("conv_transpose1d: dilation holds", nn::conv_transpose1d(x, w, {.dilation = {n}}));
    REFUSED("im2col: window holds", nn::im2col(x, {n}));
  }
  for (nn::PadMode mode : {nn::PadMode::Edge, nn::PadMode::Reflect, nn::PadMode::Symmetric, nn::PadMode::Wrap}) {
    REFUSED("is too large", nn::pad(v, {kHigh}, {kHigh}, mode));
    REFUSED("is too large", nn::pad(v, {0}, {kHigh}, mode));
  }
  REFUSED("histogram: the number of bins", stats::histogram(v, kHigh, 0, 1));
  REFUSED("indices are I32", random::permutation(g.rng_key(3), (std::int64_t{1} << 31) + 5));
}

TEST_CASE("extremes: windows of im2col that are longer than the signal, and of many elements") {
  constexpr std::int64_t n = 300;
  const Tensor x = counted(Shape({1, 1, n}, DType::F32));
  struct Cut {
    std::int64_t window, stride, dilation;
  };
  for (const Cut& c : {Cut{70, 3, 2}, Cut{65, 1, 1}, Cut{64, 1, 1}, Cut{300, 1000000, 1}, Cut{301, 1, 1},
                       Cut{std::int64_t{1} << 30, 1, 1}, Cut{100, 1, 1 << 20}}) {
    CAPTURE(c.window);
    Graph g;
    const Expr y = nn::im2col(g.input("x", x.shape()), {c.window}, {.strides = {c.stride}, .dilation = {c.dilation}});
    CHECK(g.num_nodes() < 300);
    const std::int64_t span = (c.window - 1) * c.dilation + 1, places = n < span ? 0 : (n - span) / c.stride + 1;
    REQUIRE(y.shape().static_dims() == std::vector<std::int64_t>{1, c.window, places});
    g.set_outputs({y});
    const Tensor out = run_of(std::move(g), x)[0];
    bool all = true;
    for (std::int64_t k = 0; k < (places == 0 ? 0 : c.window); ++k)
      for (std::int64_t p = 0; p < places; ++p)
        all = all && out.at(k * places + p) == static_cast<double>(k * c.dilation + p * c.stride);
    CHECK(all);
  }
  // Two spatial axes: in the gathered value the window axes come before the position axes.
  Graph g;
  const Tensor image = counted(Shape({2, 2, 70, 5}, DType::F32));
  g.set_outputs({nn::im2col(g.input("x", image.shape()), {66, 2})});
  const Tensor out = run_of(std::move(g), image)[0];
  REQUIRE(out.dims() == std::vector<std::int64_t>{2, 2 * 66 * 2, 5, 4});
  bool all = true;
  for (std::int64_t b = 0, i = 0; b < 4; ++b)
    for (std::int64_t k = 0; k < 66; ++k)
      for (std::int64_t l = 0; l < 2; ++l)
        for (std::int64_t p = 0; p < 5; ++p)
          for (std::int64_t q = 0; q < 4; ++q)
            all = all && out.at(i++) == static_cast<double>((b * 70 + p + k) * 5 + q + l);
  CHECK(all);
}

TEST_CASE("extremes: frames a sample apart") {
  constexpr std::int64_t n = 128, frames = 40;
  const Tensor x = test::draw(Shape({n + frames - 1}, DType::F64), Fill::Normal, 1, 5);
  const fft::StftOptions options{.n_fft = n, .hop = 1, .center = false};
  Graph g;
  const Expr signal = g.input("x", x.shape()), spectrum = fft::stft(signal, options);
  std::vector<Expr> each;
  for (std::int64_t t = 0; t < frames; ++t) each.push_back(g.unsqueeze(fft::rfft(g.narrow(signal, 0, t, n)), 1));
  const std::size_t nodes = g.num_nodes();
  g.set_outputs({spectrum, g.concat(each, 1), fft::istft(spectrum, options)});
  CHECK(g.num_nodes() - nodes < 100);
  const std::vector<Tensor> out = run_of(std::move(g), x);
  REQUIRE(out[0].shape() == out[1].shape());
  CHECK(test::distance(out[0], out[1]) < 1e-12);
  CHECK(test::distance(out[2], x) < 1e-12);
}

TEST_CASE("extremes: places that no i32 names, groups of nothing, and strides past the end") {
  Graph g;
  const Expr many = g.input("many", Shape({std::int64_t{1} << 31}, DType::I8)),
             none = g.input("none", Shape({2, 0, 3}, DType::F32));
  REFUSED("more elements than an i32 index", g.arg_max(many, 0));
  REFUSED("more elements than i32 indices", g.top_k(many, 2));
  REFUSED("more elements than i32 indices", g.argsort(many, 0));
  REFUSED("has no channels", g.group_norm(none, kHigh));
  Graph s;
  const Expr x = s.input("x", Shape({2, 4, 2}, DType::F32));
  s.set_outputs({s.slice(x, {0, 3, 0}, {2, 4, 2}, {std::int64_t{1} << 62, kHigh, 1})});
  const Tensor picked = run_of(std::move(s), counted(Shape({2, 4, 2}, DType::F32)))[0];
  REQUIRE(picked.dims() == std::vector<std::int64_t>{1, 1, 2});
  CHECK((picked.at(0) == 6 && picked.at(1) == 7));
}

TEST_CASE("extremes: strides past the end of an axis that is a symbol") {
  for (const std::int64_t stride : {std::int64_t{9}, std::int64_t{1} << 32, kHigh}) {
    CAPTURE(stride);
    Graph g;
    const Dim n = g.symbol("n", {.min = 0, .max = 5, .divisor = 1});
    const Expr x = g.input("x", Shape({n}, DType::F32));
    g.set_outputs({g.slice(x, {0}, {n}, {stride})});
    const GradResult reverse = vjp(g, {"x"});
    REQUIRE(reverse.added_inputs.size() == 1);
    for (const std::int64_t extent : {0, 1, 4}) {
      CAPTURE(extent);
      const std::int64_t picked = std::min<std::int64_t>(extent, 1);
      const Tensor values = counted(Shape({Dim(extent)}, DType::F32)),
                   seen = Tensor::full(Shape({Dim(picked)}, DType::F32), 3);
      CHECK(run_of(Graph(g), values)[0].dim(0) == picked);
      CompiledGraph f = Session().compile(Graph(reverse.graph));
      const Tensor back = f.run_typed({{"x", values}, {reverse.added_inputs[0], seen}}).back();
      REQUIRE(back.dim(0) == extent);
      for (std::int64_t i = 0; i < extent; ++i) CHECK(back.at(i) == (i == 0 ? 3 : 0));
    }
  }
}

TEST_CASE("extremes: the mean of a channel beside an infinity is that infinity") {
  for (const Dims& dims : {Dims{400, 3}, Dims{2, 3, 5000}}) {
    CAPTURE(dims.size());
    const Shape shape(dims, DType::F32);
    Graph g;
    const Expr y = g.add_named(ops::BatchNorm{1, 1e-5, {}}, {{"x", g.input("x", shape)}});
    g.set_outputs({y.result(1)});
    Tensor x = test::draw(shape, Fill::Normal, 1, 3);
    const std::int64_t places = dims.size() == 2 ? 1 : 5000, inf = places + 7 % places;
    const double infinity = std::numeric_limits<double>::infinity();
    x.set(inf, infinity);          // channel 1
    x.set(2 * places, -infinity);  // channel 2: both
    x.set(2 * places + 3 * places, infinity);
    const Tensor mean = run_of(std::move(g), x)[0];
    CHECK(std::fabs(mean.at(0)) < 0.2);
    CHECK(mean.at(1) == infinity);
    CHECK(std::isnan(mean.at(2)));
  }
}

TEST_CASE("extremes: derivatives of the vectors of matrices without elements") {
  for (DType t : {DType::C64, DType::F64}) {
    Graph g;
    const Expr x = g.input("x", Shape({2, 0, 0}, t));
    const ExprList e = g.eigh(x), s = g.svd(x);
    g.set_outputs({e[0], e[1], s[0], s[2]});
    const GradResult reverse = vjp(g, {"x"});
    NamedTensors values{{"x", Tensor::zeros(Shape({2, 0, 0}, t))}};
    for (const std::string& name : reverse.added_inputs)
      for (NodeId id : reverse.graph.leaves(OpKind::Input))
        if (reverse.graph.leaf_name(id) == name) values.emplace(name, Tensor::zeros(reverse.graph.shape(id)));
    CHECK(Session().compile(Graph(reverse.graph)).run_typed(values).back().shape() == Shape({2, 0, 0}, t));
    CHECK(jvp(g, {"x"}).graph.outputs().size() == 8);
  }
}

TEST_CASE("extremes: a clip that F32 holds as 0 is a clip") {
  Graph g;
  ops::Gru op;
  op.clip = 5e-324;
  g.set_outputs({g.add_named(
      op, {{"x", g.input("x", Shape({3, 1, 6}, DType::F32))}, {"r", g.input("r", Shape({1, 6, 2}, DType::F32))}})});
  test::check_run(Session(), g, test::drawn(g));
}

}  // namespace rlx
