// Random bits against the published test vectors of Threefry, functions of random bits, and token sampling.
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/math/threefry.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/random.h"
#include "rlx/runtime/session.h"
#include "rlx/transforms/vmap.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::doubles;
using test::error_text;
using test::expect_close;
using test::infer_error;

Tensor words(std::vector<std::int64_t> dims, const std::vector<std::uint32_t>& v) {
  return Tensor::of<std::uint32_t>(std::move(dims), v);
}
using test::ints;
Tensor floats(std::vector<std::int64_t> dims, const std::vector<float>& v) {
  return Tensor::of<float>(std::move(dims), v);
}

TEST_CASE("Threefry-2x32-20 gives the vectors that Random123 publishes") {
  const struct {
    std::uint32_t x0, x1, k0, k1, y0, y1;
  } known[] = {{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
               {~0U, ~0U, ~0U, ~0U, 0x1cb996fc, 0xbb002be7},
               {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0}};
  for (const auto& k : known) {
    const ThreefryWords y = threefry2x32(k.k0, k.k1, k.x0, k.x1);
    CHECK(y.high == k.y0);
    CHECK(y.low == k.y1);
  }
}

TEST_CASE("an element's bits depend on key and place alone: on no width, shape, slice or number of threads") {
  const Tensor key = words({2}, {0x13198a2e, 0x03707344});
  const Tensor wide = evaluate_op(ops::RngBits{{40, 50}, DType::U64}, std::vector<Tensor>{key})[0];
  const Tensor flat = evaluate_op(ops::RngBits{{2000}, DType::U32}, std::vector<Tensor>{key})[0];
  const Tensor bytes = evaluate_op(ops::RngBits{{2000}, DType::U8}, std::vector<Tensor>{key})[0];
  Tensor first = Tensor::zeros(Shape({}, DType::U64));
  first.set_i64(0, 1500);
  const Tensor later = evaluate_op(ops::RngBits{{500}, DType::U32}, std::vector<Tensor>{key, first})[0];
  int same = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const auto all = static_cast<std::uint64_t>(wide.at_i64(i));
    const auto mixed = static_cast<std::uint32_t>(all >> 32) ^ static_cast<std::uint32_t>(all);
    same += mixed == static_cast<std::uint32_t>(flat.at_i64(i)) && (mixed & 255) == bytes.at_i64(i) &&
            (i < 1500 || later.at_i64(i - 1500) == flat.at_i64(i));
  }
  CHECK(same == 2000);
  // The high word of the counter is used too.
  first.set_i64(0, std::int64_t{5} << 32 | 7);
  const ThreefryWords far = threefry2x32(0x13198a2e, 0x03707344, 5, 7);
  CHECK(evaluate_op(ops::RngBits{{1}, DType::U32}, std::vector<Tensor>{key, first})[0].at_i64(0) ==
        static_cast<std::int64_t>(far.high ^ far.low));
  for (int threads : {1, 2, 3, 8}) {
    Graph g;
    g.set_outputs({g.rng_bits(g.input("key", Shape({2}, DType::U32)), {40, 50}, DType::U64)});
    const auto y = Session().with_threads(threads).compile(std::move(g)).run_typed({{"key", key}});
    CHECK(y[0].identical(wide));
  }
}

TEST_CASE("keys are split, folded and batched") {
  Graph g;
  const Expr key = g.rng_key((std::uint64_t{3} << 32) + 17);
  const Expr two = g.rng_split(key), folded = g.rng_fold_in(key, 9);
  g.set_outputs({key, two, folded, g.rng_bits(two, {3})});
  const std::vector<Tensor> y = evaluate(g, NamedTensors{});
  CHECK(y[0].at_i64(0) == 3);
  CHECK(y[0].at_i64(1) == 17);
  for (std::uint32_t i = 0; i < 2; ++i) {  // split i is the words of counter i
    const ThreefryWords w = threefry2x32(3, 17, 0, i);
    CHECK(y[1].at_i64(2 * i) == w.high);
    CHECK(y[1].at_i64(2 * i + 1) == w.low);
    CHECK(y[3].at_i64(3 * i) == static_cast<std::int64_t>(threefry_bits(w.high, w.low, 0, 32)));
  }
  const ThreefryWords f = threefry2x32(3, 17, 0, 9);
  CHECK(y[2].at_i64(0) == f.high);
  CHECK(y[2].at_i64(1) == f.low);

  Graph one;
  const Expr k = one.input("k", Shape({2}, DType::U32));
  one.set_outputs({one.rng_bits(k, {4}), one.rng_fold_in(k, one.input("n", Shape({}, DType::I32)))});
  const Tensor keys = words({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto many = evaluate(vmap(one, {{"k", 0}}, 3).graph, {{"k", keys}, {"n", ints({}, {8})}});
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto alone = evaluate(one, {{"k", keys.rows(b, 1).reshaped({2})}, {"n", ints({}, {8})}});
    for (std::int64_t i = 0; i < 4; ++i) CHECK(many[0].at_i64(4 * b + i) == alone[0].at_i64(i));
    for (std::int64_t i = 0; i < 2; ++i) CHECK(many[1].at_i64(2 * b + i) == alone[1].at_i64(i));
  }
}

TEST_CASE("the numbers of jax.random (JAX 0.10.2, jax_threefry_partitionable, key(42))") {
  Graph g;
  const Expr key = g.rng_key(42), keys = g.rng_split(key, 3);
  const Expr logits = g.sin(g.iota(Shape({3, 8}, DType::F32), 1) + g.iota(Shape({3, 1}, DType::F32), 0) * 8.0) * 3.0;
  g.set_outputs({g.rng_bits(key, {5}), g.rng_bits(key, {5}, DType::U16), g.rng_bits(key, {5}, DType::U8),
                 g.rng_bits(key, {3}, DType::U64), keys, g.rng_fold_in(key, 7), g.rng_uniform(key, {4}),
                 g.rng_uniform(key, {4}, DType::BF16), g.rng_uniform(key, {4}, DType::F16, -1, 3),
                 g.rng_normal(key, {4}), g.rng_normal(key, {3}, DType::F64),
                 g.cast(g.rng_bernoulli(key, 0.3, {12}), DType::I32), g.sample(logits, keys, {}).token});
  for (const std::vector<Tensor>& y : {evaluate(g, NamedTensors{}), Session().compile(std::move(g)).run_typed({})}) {
    expect_close(y[0].cast(DType::F64), {2098992034, 2919706841, 2646866425, 2409546199, 1935504149}, 0);
    expect_close(y[1].cast(DType::F64), {5026, 12505, 63993, 49623, 29461}, 0);
    expect_close(y[2].cast(DType::F64), {162, 217, 249, 215, 21}, 0);
    CHECK(y[3].at_i64(0) == 7871734211187709741);
    CHECK(static_cast<std::uint64_t>(y[3].at_i64(2)) == 10591095138341673235ULL);
    expect_close(y[4].cast(DType::F64), {1832780943, 270669613, 64467757, 2916123636, 2465931498, 255383827}, 0);
    expect_close(y[5].cast(DType::F64), {2547012911, 1371500959}, 0);
    expect_close(y[6].cast(DType::F64),
                 {0.48870956897735596, 0.6797971725463867, 0.6162714958190918, 0.5610160827636719}, 0);
    expect_close(y[7].cast(DType::F64), {0.6328125, 0.84375, 0.96875, 0.8359375}, 0);
    expect_close(y[8].cast(DType::F64), {-0.6953125, -0.23828125, 2.90234375, 2.02734375}, 0.004);
    expect_close(y[9].cast(DType::F64),
                 {-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485}, 1e-6);
    expect_close(y[10], {-0.18471174528191162, -2.169824560397754, 0.18693555179382582}, 1e-13);
    expect_close(y[11].cast(DType::F64), {0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}, 0);
    expect_close(y[12].cast(DType::F64), {2, 0, 4}, 0);  // jax.random.categorical
  }
}

TEST_CASE("uniform, normal and bernoulli have their moments, and stay inside") {
  Graph g;
  const Expr key = g.rng_key(20);
  const std::int64_t n = 40000;
  g.set_outputs({g.rng_uniform(key, {n}), g.rng_uniform(key, {n}, DType::F64, -3, 5), g.rng_normal(key, {n}),
                 g.cast(g.rng_bernoulli(key, 0.3, {n}), DType::F32), g.rng_normal(key, {n}, DType::BF16)});
  const std::vector<Tensor> y = Session().compile(std::move(g)).run_typed({});
  const auto moments = [&](const Tensor& t) {
    double sum = 0, squares = 0, low = HUGE_VAL, high = -HUGE_VAL;
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = t.at(i);
      sum += v, squares += v * v, low = std::min(low, v), high = std::max(high, v);
    }
    const double mean = sum / static_cast<double>(n);
    return std::vector<double>{mean, squares / static_cast<double>(n) - mean * mean, low, high};
  };
  // Five standard errors of 40,000 draws.
  const auto u = moments(y[0]), v = moments(y[1]), z = moments(y[2]), b = moments(y[3]), h = moments(y[4]);
  CHECK(std::fabs(u[0] - 0.5) < 5 * 0.2887 / 200);
  CHECK(std::fabs(u[1] - 1.0 / 12) < 0.003);
  CHECK((u[2] >= 0 && u[3] < 1));
  CHECK(std::fabs(v[0] - 1) < 5 * 2.3094 / 200);
  CHECK((v[2] >= -3 && v[3] < 5));
  CHECK(std::fabs(z[0]) < 5.0 / 200);
  CHECK(std::fabs(z[1] - 1) < 5 * 1.4142 / 200);
  CHECK((z[2] < -3.5 && z[3] > 3.5));
  CHECK(std::fabs(b[0] - 0.3) < 5 * 0.4583 / 200);
  CHECK(std::fabs(h[1] - 1) < 0.05);
  CHECK(std::isfinite(h[2]));
}

TEST_CASE("misused random ops say what they take") {
  const Shape key({2}, DType::U32);
  CHECK(contains(infer_error(ops::RngBits{{3}, DType::I32}, {key}), "u32 or u64, not i32"));
  CHECK(contains(infer_error(ops::RngBits{{3}, DType::U32}, {Shape({3}, DType::U32)}), "u32 [.., 2]"));
  CHECK(contains(infer_error(ops::RngBits{{3}, DType::U32}, {key, Shape({2}, DType::U64)}), "first must be u64"));
  CHECK(contains(infer_error(ops::RngBits{{-1}, DType::U32}, {key}), "negative dimension"));
}

// -- Sample --

struct Drawn {
  std::vector<std::int64_t> tokens;
  std::vector<double> logprobs;
};
// Draws a token from `rows` copies of one row of logits, each with its own key.
Drawn draw(const std::vector<float>& logits, std::int64_t rows, const Builder::SampleSettings& settings,
           std::uint64_t seed = 1) {
  Graph g;
  const auto v = static_cast<std::int64_t>(logits.size());
  const Expr x = g.input("logits", Shape({v}, DType::F32));
  Builder::SampleSettings s = settings;
  const auto r = g.sample(g.expand(x, {rows, v}), g.rng_split(g.rng_key(seed), rows), s);
  g.set_outputs({r.token, r.logprob});
  const auto y = Session().compile(std::move(g)).run_typed({{"logits", floats({v}, logits)}});
  Drawn d;
  for (std::int64_t i = 0; i < rows; ++i) d.tokens.push_back(y[0].at_i64(i)), d.logprobs.push_back(y[1].at(i));
  return d;
}
std::map<std::int64_t, double> shares(const Drawn& d) {
  std::map<std::int64_t, double> out;
  for (std::int64_t t : d.tokens) out[t] += 1.0 / static_cast<double>(d.tokens.size());
  return out;
}

TEST_CASE("sample draws by the softmax of what the settings leave") {
  const std::vector<float> logits{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};
  const std::int64_t n = 4000;
  const auto near = [](double share, double p) { return std::fabs(share - p) < 5 * std::sqrt(p * (1 - p) / 4000); };
  auto all = shares(draw(logits, n, {}));
  const double p[] = {0.1, 0.4, 0.2, 0.3};
  for (int t = 0; t < 4; ++t) CHECK(near(all[t], p[t]));
  auto two = shares(draw(logits, n, {.top_k = 2}));
  CHECK(two.size() == 2);
  CHECK(near(two[1], 4.0 / 7));
  auto nucleus = shares(draw(logits, n, {.top_p = 0.69}));  // 0.4 and 0.3 reach top_p
  CHECK(nucleus.size() == 2);
  CHECK(near(nucleus[3], 3.0 / 7));
  CHECK(shares(draw(logits, n, {.top_p = 0.39})).size() == 1);
  CHECK(shares(draw(logits, n, {.min_p = 0.45})).size() == 3);  // at least 0.18
  auto cold = shares(draw(logits, n, {.temperature = 0.5}));    // squares: 1, 16, 4, 9 of 30
  CHECK(near(cold[1], 16.0 / 30));
  const Drawn greedy = draw({1, 3, 2, 3}, 50, {.temperature = 0});
  for (std::int64_t t : greedy.tokens) CHECK(t == 1);  // the first of the largest
  const double z = std::exp(-2) + 1 + std::exp(-1) + 1;
  CHECK(std::fabs(greedy.logprobs[0] + std::log(z)) < 1e-6);
  CHECK(draw(logits, 50, {}).tokens == draw(logits, 50, {}).tokens);
  CHECK(draw(logits, 50, {}).tokens != draw(logits, 50, {}, 2).tokens);
}

TEST_CASE("sample keeps to its mask; a row of which nothing is left gives -1") {
  Graph g;
  const std::int64_t rows = 300, v = 40;
  const Expr keys = g.rng_split(g.rng_key(5), rows);
  const Expr bits = g.input("bits", Shape({2}, DType::U32)), none = g.constant(words({1, 2}, {0, 0}));
  const Expr mask = g.concat({g.expand(bits, {rows - 1, 2}), none}, 0);
  const auto r = g.sample(g.scalar(0.0F) * g.iota(Shape({rows, v}, DType::F32), 1), keys, {.mask_bits = mask});
  g.set_outputs({r.token, r.logprob});
  const auto y = Session().compile(std::move(g)).run_typed({{"bits", words({2}, {0x80000001, 0x81})}});
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i + 1 < rows; ++i) {
    seen.insert(y[0].at_i64(i));
    CHECK(std::fabs(y[1].at(i) + std::log(4)) < 1e-6);
  }
  CHECK(seen == std::set<std::int64_t>{0, 31, 32, 39});
  CHECK(y[0].at_i64(rows - 1) == -1);
  CHECK(y[1].at(rows - 1) == -HUGE_VAL);
}

TEST_CASE("settings for each row are those of runs row by row; sample says what it takes") {
  Graph g;
  const Expr x = g.constant(test::sequence({3, 6}, 0.37, -1, DType::F32)), keys = g.rng_split(g.rng_key(4), 3);
  const Tensor t = floats({3}, {0, 1, 2}), k = ints({3}, {0, 3, 1});
  const auto all = g.sample(x, keys, {.temperature = g.constant(t), .top_k = g.constant(k)});
  std::vector<Expr> one;
  for (std::int64_t i = 0; i < 3; ++i)
    one.push_back(
        g.sample(g.narrow(x, 0, i, 1), g.narrow(keys, 0, i, 1), {.temperature = t.at(i), .top_k = k.at_i64(i)}).token);
  g.set_outputs({all.token, g.concat(one, 0)});
  const auto y = evaluate(g, NamedTensors{});
  CHECK(y[0].identical(y[1]));
  const std::string half = error_text([&] { (void)g.sample(x, keys, {.top_k = 2.5}); });
  CHECK_MESSAGE(contains(half, "random_test.cpp"), half);
  CHECK_MESSAGE(contains(half, "hint: give an integer that i32 holds"), half);
  const Shape logits({2, 40}, DType::F32), f({}, DType::F32), i({}, DType::I32), key({2, 2}, DType::U32);
  CHECK(contains(infer_error(ops::Sample{}, {Shape({40}, DType::F32), f, i, f, key}), "logits must be float [B, V]"));
  CHECK(contains(infer_error(ops::Sample{}, {logits, f, f, f, key}), "top_k must be i32"));
  CHECK(contains(infer_error(ops::Sample{}, {logits, Shape({3}, DType::F32), i, f, key}), "temperature must be []"));
  CHECK(contains(infer_error(ops::Sample{}, {logits, f, i, f, Shape({2}, DType::U32)}), "one for each row"));
  ops::Sample masked;
  masked.present.bits = 1U << 6;
  CHECK(
      contains(infer_error(masked, {logits, f, i, f, key, Shape({2, 1}, DType::U32)}), "mask_bits must be u32 [2, 2]"));
  CHECK(contains(infer_error(ops::Sample{}, {Shape({2, 0}, DType::F32), f, i, f, key}), "no tokens"));
}

}  // namespace
}  // namespace rlx
