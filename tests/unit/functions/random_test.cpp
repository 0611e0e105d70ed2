// Random distributions: equal to their formulas on the bits, moments and distances of distributions, known answers of
// Philox.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "rlx/functions/random.h"
#include "rlx/ir/evaluate.h"
#include "rlx/transforms/reverse.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// The draws of the function with the key of a seed.
template <class F>
std::vector<double> drawn(F&& draw, std::uint64_t seed = 7) {
  Graph g("draw");
  g.set_outputs({draw(g, g.rng_key(seed))});
  return evaluate(g, {})[0].to_f64();
}
constexpr std::int64_t kMany = 20000;
const Dims kDims = {Dim(kMany)};

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const std::vector<double>& v) {
  Moments m;
  for (double x : v) m.mean += x / static_cast<double>(v.size());
  for (double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size() - 1);
  return m;
}
// Mean and variance are within `sigmas` standard errors; the fourth moment is at most `kurtosis` times the squared
// variance.
void has_moments(const std::vector<double>& v, double mean, double variance, double kurtosis = 12) {
  const Moments m = moments_of(v);
  const double n = static_cast<double>(v.size());
  CHECK_MESSAGE(std::abs(m.mean - mean) < 5 * std::sqrt(variance / n), "mean ", m.mean, " wanted ", mean);
  CHECK_MESSAGE(std::abs(m.variance - variance) < 5 * variance * std::sqrt(kurtosis / n), "variance ", m.variance,
                " wanted ", variance);
}
// The Kolmogorov-Smirnov test: the largest distance from the distribution function is within chance.
template <class F>
void has_distribution(std::vector<double> v, F&& below) {
  std::sort(v.begin(), v.end());
  const double n = static_cast<double>(v.size()), limit = 2.0 / std::sqrt(n);  // exceeded by chance in 1 of 1500
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double p = below(v[i]), at = static_cast<double>(i) / n;
    if (std::abs(p - at) < limit && std::abs(p - at - 1 / n) < limit) continue;
    CHECK_MESSAGE(false, "below ", v[i], " are ", at, ", should be ", p);
    return;
  }
  CHECK(n > 0);
}

}  // namespace

TEST_CASE("draws with a closed formula have their distributions") {
  has_distribution(drawn([](Graph&, Expr k) { return random::gumbel(k, kDims); }),
                   [](double x) { return std::exp(-std::exp(-x)); });
  has_distribution(drawn([](Graph&, Expr k) { return random::exponential(k, kDims); }),
                   [](double x) { return -std::expm1(-x); });
  has_distribution(drawn([](Graph&, Expr k) { return random::laplace(k, kDims); }),
                   [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; });
  has_distribution(drawn([](Graph&, Expr k) { return random::logistic(k, kDims); }),
                   [](double x) { return 1 / (1 + std::exp(-x)); });
  has_distribution(drawn([](Graph&, Expr k) { return random::cauchy(k, kDims); }),
                   [](double x) { return 0.5 + std::atan(x) / std::numbers::pi; });
  has_distribution(drawn([](Graph&, Expr k) { return random::weibull(k, 2.0, 3.0, kDims); }),
                   [](double x) { return -std::expm1(-std::pow(x / 2, 3)); });
  has_distribution(drawn([](Graph&, Expr k) { return random::pareto(k, 3.0, kDims); }),
                   [](double x) { return 1 - std::pow(x, -3); });
  const auto normal = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  const std::vector<double> cut = drawn([](Graph&, Expr k) { return random::truncated_normal(k, -1.0, 2.0, kDims); });
  CHECK(*std::min_element(cut.begin(), cut.end()) > -1);
  CHECK(*std::max_element(cut.begin(), cut.end()) < 2);
  has_distribution(cut, [&](double x) { return (normal(x) - normal(-1)) / (normal(2) - normal(-1)); });
  // A bound of infinity on one side: the draws are finite.
  for (double x : drawn([](Graph&, Expr k) { return random::truncated_normal(k, 3.0, HUGE_VAL, {Dim(100)}); }))
    CHECK((x > 3 && std::isfinite(x)));
  const std::vector<double> between = drawn([](Graph&, Expr k) { return random::uniform(k, -2.0, 6.0, kDims); });
  has_distribution(between, [](double x) { return (x + 2) / 8; });
  const std::vector<double> signs = drawn([](Graph&, Expr k) { return random::rademacher(k, kDims); });
  CHECK(std::set<double>(signs.begin(), signs.end()) == std::set<double>{-1, 1});
  has_moments(signs, 0, 1);
}

TEST_CASE("integers, orders and choices") {
  const std::vector<double> dice = drawn([](Graph&, Expr k) { return random::randint(k, 1, 7, kDims); });
  CHECK(*std::min_element(dice.begin(), dice.end()) == 1);
  CHECK(*std::max_element(dice.begin(), dice.end()) == 6);
  has_moments(dice, 3.5, 35.0 / 12);
  const std::vector<double> bytes =
      drawn([](Graph&, Expr k) { return random::randint(k, -300, 1000, kDims, DType::I8); });
  CHECK(*std::min_element(bytes.begin(), bytes.end()) == -128);
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == 127);
  CHECK(drawn([](Graph&, Expr k) { return random::randint(k, 5, 3, {Dim(2)}); }) == std::vector<double>{5, 5});
  std::vector<double> order = drawn([](Graph&, Expr k) { return random::permutation(k, 1000); });
  CHECK(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == static_cast<double>(i));
  CHECK(drawn([](Graph&, Expr k) { return random::permutation(k, 0); }).empty());
  // Rows stay together, or each column is permuted separately.
  const auto rows = [](bool independent) {
    return drawn([&](Graph& g, Expr k) {
      return random::shuffle(k, g.iota(Shape({6, 2}, DType::I32), 0), 0, independent);
    });
  };
  const std::vector<double> together = rows(false), apart = rows(true);
  bool differs = false;
  for (std::size_t i = 0; i < 12; i += 2) {
    CHECK(together[i] == together[i + 1]);
    differs = differs || apart[i] != apart[i + 1];
  }
  CHECK(differs);
  std::vector<double> counts(3);
  for (double c : drawn([](Graph& g, Expr k) {
         return random::categorical(k, g.log(g.constant(doubles({3}, {0.2, 0.5, 0.3}).cast(DType::F32))), 0, kDims);
       }))
    counts[static_cast<std::size_t>(c)] += 1.0 / kMany;
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(counts[i] - std::vector<double>{0.2, 0.5, 0.3}[i]) < 0.02);
  const std::vector<double> some =
      drawn([](Graph& g, Expr k) { return random::categorical_distinct(k, g.iota(Shape({8}, DType::F32), 0), 5); });
  CHECK(std::set<double>(some.begin(), some.end()).size() == 5);
}

TEST_CASE("draws by rejection have their moments" * doctest::test_suite(kSlow)) {
  for (const double a : {0.05, 0.7, 1.0, 3.5, 200.0}) {
    CAPTURE(a);
    has_moments(drawn([&](Graph&, Expr k) { return random::gamma(k, a, kDims); }), a, a, 6 / a + 12);
    // E log x = digamma(a), the difference of log gamma.
    const double h = 1e-4, mean = (std::lgamma(a + h) - std::lgamma(a - h)) / (2 * h);
    const double variance = (std::lgamma(a + h) - 2 * std::lgamma(a) + std::lgamma(a - h)) / (h * h);
    has_moments(drawn([&](Graph&, Expr k) { return random::log_gamma(k, a, kDims, DType::F64); }), mean, variance, 20);
  }
  has_distribution(drawn([](Graph&, Expr k) { return random::gamma(k, 1.0, kDims); }),
                   [](double x) { return -std::expm1(-x); });
  has_distribution(drawn([](Graph&, Expr k) { return random::gamma(k, 2.0, kDims); }),
                   [](double x) { return 1 - (1 + x) * std::exp(-x); });
  has_distribution(drawn([](Graph&, Expr k) { return random::gamma(k, 0.5, kDims); }),
                   [](double x) { return std::erf(std::sqrt(x)); });
  has_moments(drawn([](Graph&, Expr k) { return random::beta(k, 2.0, 3.0, kDims); }), 0.4, 0.04);
  has_distribution(drawn([](Graph&, Expr k) { return random::beta(k, 0.5, 0.5, kDims); }),
                   [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); });
  has_moments(drawn([](Graph&, Expr k) { return random::chisquare(k, 4.0, kDims); }), 4, 8);
  has_distribution(drawn([](Graph&, Expr k) { return random::student_t(k, 1.0, kDims); }),
                   [](double x) { return 0.5 + std::atan(x) / std::numbers::pi; });
  has_distribution(drawn([](Graph&, Expr k) { return random::student_t(k, 2.0, kDims); }),
                   [](double x) { return 0.5 + x / (2 * std::sqrt(2 + x * x)); });
  const std::vector<double> parts = drawn([](Graph& g, Expr k) {
    return random::dirichlet(k, g.constant(doubles({3}, {1, 2, 5})), {Dim(kMany)}, DType::F64);
  });
  std::vector<double> first;
  for (std::size_t i = 0; i < parts.size(); i += 3) {
    REQUIRE(std::abs(parts[i] + parts[i + 1] + parts[i + 2] - 1) < 1e-12);
    first.push_back(parts[i]);
  }
  has_moments(first, 1.0 / 8, 7.0 / 64 / 9);
  for (const double rate : {0.0, 0.3, 4.0, 9.9, 10.0, 37.5, 1000.0}) {
    CAPTURE(rate);
    const std::vector<double> counts = drawn([&](Graph&, Expr k) { return random::poisson(k, rate, kDims); });
    if (rate == 0)
      CHECK(*std::max_element(counts.begin(), counts.end()) == 0);
    else
      has_moments(counts, rate, rate, 3 + 1 / rate);
  }
  for (const auto& pair :
       std::vector<std::pair<double, double>>{{10, 0.3}, {1000, 0.002}, {50, 0.5}, {300, 0.9}, {40, 0.98}}) {
    const double n = pair.first, p = pair.second, trials = n, chance = p;
    CAPTURE(n);
    const std::vector<double> counts =
        drawn([&](Graph&, Expr k) { return random::binomial(k, trials, chance, kDims); });
    has_moments(counts, n * p, n * p * (1 - p), 6);
    CHECK(*std::max_element(counts.begin(), counts.end()) <= n);
    CHECK(*std::min_element(counts.begin(), counts.end()) >= 0);
  }
  CHECK(drawn([](Graph&, Expr k) { return random::binomial(k, 6.0, 1.0, {Dim(2)}); }) == std::vector<double>{6, 6});
  CHECK(drawn([](Graph&, Expr k) { return random::binomial(k, 6.0, 0.0, {Dim(2)}); }) == std::vector<double>{0, 0});
  for (const double p : {1.0, 2.0, 3.0, HUGE_VAL}) {
    CAPTURE(p);
    const std::vector<double> points = drawn([&](Graph&, Expr k) { return random::ball(k, 2, p, {Dim(kMany)}); });
    std::vector<double> sizes;
    for (std::size_t i = 0; i < points.size(); i += 2) {
      const double x = std::abs(points[i]), y = std::abs(points[i + 1]);
      sizes.push_back(std::isinf(p) ? std::max(x, y) : std::pow(std::pow(x, p) + std::pow(y, p), 1 / p));
    }
    has_distribution(sizes, [](double r) { return std::min(1.0, r * r); });
  }
}

// log P(a, e^z), the logarithm of the distribution function of gamma numbers.
double log_probability(double a, double z) {
  if (z < -30) return a * z - std::lgamma(a + 1);
  Graph g;
  g.set_outputs({g.log(g.igamma(g.scalar(a, DType::F64), g.scalar(std::exp(z), DType::F64)))});
  return evaluate(g, {})[0].at(0);
}

TEST_CASE("derivatives of gamma numbers keep their probability where it is") {
  constexpr std::int64_t kDraws = 12;
  for (const double a : {0.02, 0.3, 1.0, 4.0, 60.0}) {
    CAPTURE(a);
    Graph g;
    const Expr x = g.input("a", Shape({kDraws}, DType::F64));
    const Expr z = random::log_gamma(g.rng_key(3), x, {Dim(kDraws)}, DType::F64);
    g.set_outputs({g.sum(z), z});
    const TransformResult once = value_and_grad(g, {"a"});  // sum, slopes, z
    const std::vector<Tensor> got = evaluate(once.graph, {{"a", doubles({kDraws}, std::vector<double>(kDraws, a))}});
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const double slope = got[1].at(i), at = got[2].at(i), h = 1e-3 * a;
      CAPTURE(at);
      // The remaining difference, relative to the change by a step of a alone.
      const double alone = log_probability(a + h, at) - log_probability(a - h, at);
      const double moved = log_probability(a + h, at + h * slope) - log_probability(a - h, at - h * slope);
      CHECK(std::abs(moved) < 1e-4 * std::abs(alone) + 1e-11);
    }
  }
  // Distributions built on gamma: the derivatives of parts that sum to 1 sum to 0, and an invalid parameter has
  // derivative 0.
  Graph g;
  const Expr alpha = g.input("a", Shape({3}, DType::F32));
  const Expr parts = random::dirichlet(g.rng_key(5), alpha, {Dim(4)});
  g.set_outputs({g.sum(parts * g.constant(Tensor::of<float>({3}, {1, 0, 0})))});
  const Tensor slopes = evaluate(value_and_grad(g, {"a"}).graph, {{"a", Tensor::of<float>({3}, {1, 2, 5})}})[1];
  CHECK(slopes.at(0) > 0);
  CHECK(slopes.at(1) < 0);
  CHECK(slopes.at(2) < 0);
  Graph large;  // a draw is about a + sqrt(a) n, so the slope is about 1, in F32 too
  const Expr high = large.input("a", Shape({}, DType::F32));
  large.set_outputs({large.sum(random::gamma(large.rng_key(1), high, {Dim(16)}))});
  const Graph slope_of_large = value_and_grad(large, {"a"}).graph;
  CHECK(std::abs(evaluate(slope_of_large, {{"a", Tensor::of<float>({}, {1e6F})}})[1].at(0) / 16 - 1) < 0.01);
  Graph twice = slope_of_large;
  const Value slope = twice.outputs()[1];
  twice.set_outputs({twice.expr(slope)});
  const std::string second = error_text([&] { (void)value_and_grad(twice, {"a"}); });
  CHECK_MESSAGE(contains(second, "second derivatives of igamma"), second);
  Graph edges;
  const Expr bad = edges.input("a", Shape({3}, DType::F32));
  edges.set_outputs({edges.sum(random::gamma(edges.rng_key(1), bad, {Dim(3)}))});
  const Tensor none = evaluate(value_and_grad(edges, {"a"}).graph, {{"a", Tensor::of<float>({3}, {0, -1, 2})}})[1];
  CHECK(none.at(0) == 0);
  CHECK(none.at(2) > 0);
}

TEST_CASE("parameters of distributions at their edges, and no two draws alike") {
  const auto nan_or = [](const std::vector<double>& v) { return v; };
  const std::vector<double> edges = nan_or(drawn([](Graph& g, Expr k) {
    return random::gamma(k, g.constant(doubles({4}, {0, -1, HUGE_VAL, std::nan("")}).cast(DType::F32)), {Dim(4)});
  }));
  CHECK(edges[0] == 0);
  CHECK(std::isnan(edges[1]));
  CHECK(edges[2] == HUGE_VAL);
  CHECK(std::isnan(edges[3]));
  CHECK(drawn([](Graph&, Expr k) { return random::poisson(k, -1.0, {Dim(2)}); }) == std::vector<double>{-1, -1});
  CHECK(std::isnan(drawn([](Graph&, Expr k) { return random::binomial(k, 3.0, 1.5, {Dim(1)}); })[0]));
  CHECK(std::isnan(drawn([](Graph&, Expr k) { return random::binomial(k, -3.0, 0.5, {Dim(1)}); })[0]));
  CHECK(drawn([](Graph&, Expr k) { return random::gamma(k, 0.001, {Dim(3)}, DType::F16); }).size() == 3);
  CHECK(drawn([](Graph&, Expr k) { return random::gamma(k, 2.0, {Dim(0)}); }).empty());
  std::vector<double> v = drawn([](Graph&, Expr k) { return random::gamma(k, 2.0, {Dim(1000)}, DType::F64); });
  std::sort(v.begin(), v.end());
  CHECK(std::adjacent_find(v.begin(), v.end()) == v.end());
}

TEST_CASE("Philox-4x32-10 gives the vectors that Random123 publishes") {
  // The generator as in its paper.
  using Words = std::vector<std::uint32_t>;
  const auto philox = [](Words c, std::uint32_t k0, std::uint32_t k1) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
           static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
      k0 += 0x9E3779B9, k1 += 0xBB67AE85;
    }
    return c;
  };
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(Words(4, ~0U), ~0U, ~0U) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  const auto bits = [](std::uint32_t k0, std::uint32_t k1, const Dims& dims) {
    Graph g("philox");
    const std::uint32_t words[] = {k0, k1};
    g.set_outputs({random::philox_bits(g.constant(Tensor::of<std::uint32_t>({2}, words)), dims)});
    const Tensor t = evaluate(g, {})[0];
    Words out;
    for (std::int64_t i = 0; i < t.num_elements(); ++i) out.push_back(static_cast<std::uint32_t>(t.at_i64(i)));
    return out;
  };
  for (const auto& pair :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 0}, {~0U, ~0U}, {0xa4093822, 0x299f31d0}}) {
    const std::uint32_t k0 = pair.first, k1 = pair.second;
    const Words got = bits(k0, k1, {Dim(5), Dim(3)});
    for (std::uint32_t i = 0; i < 15; ++i) CHECK(got[i] == philox({i / 4, 0, 0, 0}, k0, k1)[i % 4]);
  }
  CHECK(bits(0, 0, {Dim(0)}).empty());
}
