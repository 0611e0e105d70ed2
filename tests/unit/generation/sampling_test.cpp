// The chain of sampling filters against plain definitions, the draw against ops::Sample, and keys.
#include "rlx/generation/sampling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "rlx/ir/builder.h"
#include "rlx/ir/evaluate.h"
#include "tests/support/error_text.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

constexpr float kInfF32 = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t n, unsigned seed, double spread = 3) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(normal(rng));
  return x;
}

SamplingOptions with(auto... changes) {
  SamplingOptions o;
  (changes(o), ...);
  return o;
}

// The probabilities in double, by id, of the tokens in `left`.
std::map<TokenId, double> softmax_of(const std::map<TokenId, double>& left) {
  double top = -1e300, total = 0;
  for (const auto& [id, l] : left) top = std::max(top, l);
  std::map<TokenId, double> p;
  for (const auto& [id, l] : left) total += p[id] = std::exp(l - top);
  for (auto& [id, v] : p) v /= total;
  return p;
}
std::map<TokenId, double> as_map(std::span<const float> logits) {
  std::map<TokenId, double> m;
  for (std::size_t i = 0; i < logits.size(); ++i) m[static_cast<TokenId>(i)] = double{logits[i]};
  return m;
}
std::vector<TokenId> ids(const std::vector<TokenChance>& chances) {
  std::vector<TokenId> out;
  for (const TokenChance& c : chances) out.push_back(c.id);
  return out;
}
void check_chances(const std::vector<TokenChance>& got, const std::map<TokenId, double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(wanted.count(got[i].id) == 1);
    CHECK(double{got[i].probability} == doctest::Approx(wanted.at(got[i].id)).epsilon(1e-5));
    if (i > 0) CHECK(got[i].probability <= got[i - 1].probability);
  }
}

}  // namespace

TEST_CASE("sampling: a draw is that of ops::Sample with the same key") {
  constexpr std::int64_t kTokens = 700, kRows = 64;
  int compared = 0;
  struct Settings {
    float temperature;
    int k;
    float p, min_p;
  };
  for (const Settings& of : {Settings{1, 0, 1, 0}, Settings{0.7F, 40, 1, 0}, Settings{1.3F, 0, 0.9F, 0},
                             Settings{1, 0, 1, 0.05F}, Settings{0.8F, 50, 0.95F, 0.02F}, Settings{0, 0, 1, 0}}) {
    std::vector<float> rows;
    std::vector<std::uint32_t> keys;
    std::vector<TokenId> drawn;
    for (unsigned row = 0; row < kRows; ++row) {
      const std::vector<float> logits = random_logits(kTokens, row);
      rows.insert(rows.end(), logits.begin(), logits.end());
      Sampler s(with([&](SamplingOptions& o) {
        o.temperature = of.temperature, o.top_k = of.k, o.top_p = of.p, o.min_p = of.min_p, o.seed = row << 20 | row;
      }));
      s.accept(std::vector<TokenId>(row));
      drawn.push_back(s.draw(logits));
    }
    Graph g;
    const Expr logits = g.input("logits", Shape({kRows, kTokens}, DType::F32));
    std::vector<Expr> parts;
    for (unsigned row = 0; row < kRows; ++row) {
      const Expr key = g.constant(Tensor::of<std::uint32_t>({2}, std::vector<std::uint32_t>{0, row << 20 | row}));
      parts.push_back(g.reshape(g.rng_fold_in(key, g.scalar(row, DType::U32)), {1, 2}));
    }
    Builder::SampleSettings settings;
    settings.temperature = of.temperature, settings.top_k = of.k, settings.top_p = of.p, settings.min_p = of.min_p;
    g.set_outputs({g.sample(logits, g.concat(parts, 0), settings).token});
    const Tensor tokens = evaluate(g, {{"logits", Tensor::of<float>({kRows, kTokens}, rows)}}).at(0);
    for (std::size_t row = 0; row < kRows; ++row, ++compared) CHECK(drawn[row] == tokens.values<std::int32_t>()[row]);
  }
  CHECK(compared == 6 * kRows);
}

TEST_CASE("sampling: cuts beside their definitions") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = random_logits(3000, seed, 2);
    const auto all = as_map(logits);
    const auto p = softmax_of(all);
    std::vector<std::pair<double, TokenId>> order;
    for (const auto& [id, v] : p) order.emplace_back(-v, id);
    std::sort(order.begin(), order.end());
    const auto chances = [&](auto change) { return Sampler(with(change)).chances(logits); };

    std::map<TokenId, double> wanted;
    for (int i = 0; i < 37; ++i)
      wanted[order[static_cast<std::size_t>(i)].second] = all.at(order[static_cast<std::size_t>(i)].second);
    check_chances(chances([](SamplingOptions& o) { o.top_k = 37; }), softmax_of(wanted));

    for (const double limit : {0.05, 0.5, 0.9, 0.999}) {
      wanted.clear();
      double before = 0;
      for (const auto& [minus, id] : order) {
        if (before >= limit) break;
        wanted[id] = all.at(id);
        before -= minus;
      }
      check_chances(chances([&](SamplingOptions& o) { o.top_p = static_cast<float>(limit); }), softmax_of(wanted));
    }

    wanted.clear();
    for (const auto& [id, v] : p)
      if (v >= 0.1 * -order[0].first) wanted[id] = all.at(id);
    check_chances(chances([](SamplingOptions& o) { o.min_p = 0.1F; }), softmax_of(wanted));

    double entropy = 0;
    for (const auto& [id, v] : p) entropy -= v * std::log(v);
    std::vector<std::pair<double, TokenId>> typical;
    for (const auto& [id, v] : p) typical.emplace_back(std::abs(-std::log(v) - entropy), id);
    std::sort(typical.begin(), typical.end());
    wanted.clear();
    double sum = 0;
    for (const auto& [shift, id] : typical) {
      if (sum >= 0.3) break;
      wanted[id] = all.at(id);
      sum += p.at(id);
    }
    check_chances(chances([](SamplingOptions& o) { o.typical_p = 0.3F; }), softmax_of(wanted));

    double mean = 0, variance = 0;
    for (const auto& [id, l] : all) mean += l / 3000;
    for (const auto& [id, l] : all) variance += (l - mean) * (l - mean) / 3000;
    wanted.clear();
    for (const auto& [id, l] : all)
      if (l >= all.at(order[0].second) - 1.5 * std::sqrt(variance)) wanted[id] = l;
    check_chances(chances([](SamplingOptions& o) { o.top_n_sigma = 1.5F; }), softmax_of(wanted));

    wanted = all;
    for (auto& [id, l] : wanted) l /= 0.6;
    check_chances(chances([](SamplingOptions& o) { o.temperature = 0.6F; }), softmax_of(wanted));

    const double share = entropy / std::log(3000.0), t = 0.5 + std::pow(share, 1.5);
    wanted = all;
    for (auto& [id, l] : wanted) l /= t;
    check_chances(chances([](SamplingOptions& o) { o.dynamic_range = 0.5F, o.dynamic_exponent = 1.5F; }),
                  softmax_of(wanted));

    wanted = all;
    for (const auto& [minus, id] : order) {
      if (-minus < 0.01) break;
      wanted.erase(id);
    }
    const auto last = std::find_if(order.begin(), order.end(), [](const auto& o) { return -o.first < 0.01; });
    if (last != order.begin()) wanted[std::prev(last)->second] = all.at(std::prev(last)->second);
    check_chances(chances([](SamplingOptions& o) { o.xtc_probability = 1, o.xtc_threshold = 0.01F; }),
                  softmax_of(wanted));
  }
}

TEST_CASE("sampling: steps run in their order, and only those that are named") {
  const std::vector<float> logits{2, 1, 0, -1};
  const auto left = [&](std::string_view order) {
    return Sampler(with([&](SamplingOptions& o) {
             o.temperature = 4, o.top_p = 0.7F, o.order = parse_sampling_order(order);
           }))
        .chances(logits)
        .size();
  };
  CHECK(left("top_p;temperature") == 2);  // 0.64, 0.24
  CHECK(left("temperature;top_p") == 3);  // 0.36, 0.28, 0.22
  CHECK(left("temperature") == 4);
  CHECK(left("") == 4);
  CHECK(parse_sampling_order("top_k,xtc") == std::vector{SamplingStep::TopK, SamplingStep::Xtc});
  CHECK(contains(error_text([] { (void)parse_sampling_order("top_k;tempreature"); }), "temperature"));
  CHECK(contains(error_text([] { (void)parse_sampling_order("xtc;xtc"); }), "twice"));
}

TEST_CASE("sampling: every option out of its range is named") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  struct Range {
    const char* name;
    float SamplingOptions::*field;
    std::vector<float> good, bad;
  };
  using S = SamplingOptions;
  const std::vector<Range> ranges{
      {"temperature", &S::temperature, {0, 5}, {-1, kNan, kInf}},
      {"dynamic_range", &S::dynamic_range, {0, 1}, {-1, kNan, kInf}},
      {"dynamic_exponent", &S::dynamic_exponent, {0.1F, 3}, {0, -1, kNan, kInf}},
      {"top_p", &S::top_p, {0.01F, 1}, {0, -1, 1.01F, 2, kNan, kInf}},
      {"min_p", &S::min_p, {0, 1}, {-0.1F, 1.1F, kNan}},
      {"typical_p", &S::typical_p, {0.01F, 1}, {0, 2, kNan}},
      {"top_n_sigma", &S::top_n_sigma, {0, 3}, {-1, kNan, kInf}},
      {"xtc_probability", &S::xtc_probability, {0, 1}, {-1, 2, kNan}},
      {"xtc_threshold", &S::xtc_threshold, {0.1F, 1}, {0, 2, kNan}},
      {"repetition_penalty", &S::repetition_penalty, {0.5F, 2}, {0, -1, kNan, kInf}},
      {"frequency_penalty", &S::frequency_penalty, {-2, 2}, {kNan, kInf}},
      {"presence_penalty", &S::presence_penalty, {-2, 2}, {kNan, kInf}},
      {"dry_multiplier", &S::dry_multiplier, {0, 2}, {-1, kNan, kInf}},
      {"dry_base", &S::dry_base, {1, 2}, {0, kNan, kInf}},
      {"mirostat_tau", &S::mirostat_tau, {1, 5}, {0, -1, kNan, kInf}},
      {"mirostat_eta", &S::mirostat_eta, {0.1F, 1}, {0, -1, kNan, kInf}},
  };
  for (const Range& r : ranges) {
    CAPTURE(r.name);
    SamplingOptions o;
    for (const float v : r.good) {
      o.*r.field = v;
      CHECK(error_text([&] { (void)Sampler(o); }).empty());
    }
    for (const float v : r.bad) {
      CAPTURE(v);
      o.*r.field = v;
      CHECK(contains(error_text([&] { (void)Sampler(o); }), concat_text(r.name, " is ")));
    }
  }
  struct Whole {
    const char* name;
    std::int32_t SamplingOptions::*field;
    std::vector<std::int32_t> good, bad;
  };
  for (const Whole& r : {Whole{"top_k", &S::top_k, {0, 1, 1 << 30}, {-1, -5}},
                         Whole{"penalty_window", &S::penalty_window, {-1, 0, 64}, {-2}},
                         Whole{"dry_window", &S::dry_window, {-1, 0, 64}, {-2}},
                         Whole{"dry_allowed_length", &S::dry_allowed_length, {1, 9}, {0, -1}}}) {
    CAPTURE(r.name);
    SamplingOptions o;
    for (const std::int32_t v : r.good) {
      o.*r.field = v;
      CHECK(error_text([&] { (void)Sampler(o); }).empty());
    }
    for (const std::int32_t v : r.bad) {
      o.*r.field = v;
      CHECK(contains(error_text([&] { (void)Sampler(o); }), concat_text(r.name, " is ", v, ", but must be")));
    }
  }
  SamplingOptions o;
  o.logit_bias = {{3, kNan}};
  CHECK(contains(error_text([&] { (void)Sampler(o); }), "a logit_bias"));
  o.logit_bias = {{-3, 1.0F}};
  CHECK(contains(error_text([&] { (void)Sampler(o); }), "logit_bias names token -3"));
}

TEST_CASE("sampling: penalties of what was said") {
  const std::vector<float> logits{1, 2, -3, 4, 0.5F};
  Sampler s(with([](SamplingOptions& o) {
    o.repetition_penalty = 2, o.frequency_penalty = 0.25F, o.presence_penalty = 0.5F, o.penalty_window = 4;
  }));
  s.accept(std::vector<TokenId>{3, 1, 1, 2, 99});  // the window leaves 3 out; 99 is beyond these logits
  std::map<TokenId, double> wanted = as_map(logits);
  wanted[1] = 2.0 / 2 - 2 * 0.25 - 0.5;
  wanted[2] = -3.0 * 2 - 0.25 - 0.5;
  check_chances(s.chances(logits), softmax_of(wanted));
  s.rewind(2);
  wanted[2] = -3;
  wanted[3] = 4.0 / 2 - 0.25 - 0.5;
  check_chances(s.chances(logits), softmax_of(wanted));
  CHECK(contains(error_text([&] { s.rewind(9); }), "cannot be rewound by 9"));
}

TEST_CASE("sampling: repetitions by comparing every place with the end") {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    const auto n = rng() % 40;
    std::vector<TokenId> said(n);
    for (TokenId& t : said) t = static_cast<TokenId>(rng() % 3);
    const SamplingOptions o = with([&](SamplingOptions& s) {
      s.dry_multiplier = 0.8F, s.dry_base = 1.5F, s.dry_allowed_length = 1 + static_cast<int>(rng() % 3);
      s.dry_window = rng() % 2 ? -1 : 20;
      if (rng() % 2) s.dry_breakers = {2};
    });
    const std::vector<float> logits{0, 0.5F, 1, 1.5F};
    std::map<TokenId, double> wanted = as_map(logits);
    const std::size_t begin = o.dry_window < 0 || n < 20 ? 0 : n - 20;
    std::map<TokenId, int> longest;
    for (std::size_t at = begin + 1; at < n; ++at) {  // `at` follows the earlier place
      int length = 0;
      while (at - static_cast<std::size_t>(length) > begin &&
             said[at - 1 - static_cast<std::size_t>(length)] == said[n - 1 - static_cast<std::size_t>(length)] &&
             (o.dry_breakers.empty() || said[n - 1 - static_cast<std::size_t>(length)] != 2))
        ++length;
      longest[said[at]] = std::max(longest[said[at]], length);
    }
    for (const auto& [token, length] : longest)
      if (length >= o.dry_allowed_length && (o.dry_breakers.empty() || token != 2))
        wanted[token] -= 0.8F * std::pow(1.5, length - o.dry_allowed_length);
    Sampler s(o);
    s.accept(said);
    check_chances(s.chances(logits), softmax_of(wanted));
  }
  // A hundred thousand equal tokens take no quadratic time, and give no infinite logit.
  Sampler s(with([](SamplingOptions& o) { o.dry_multiplier = 1; }));
  s.accept(std::vector<TokenId>(100'000, 1));
  CHECK(ids(s.chances(std::vector<float>{0, 5, -5})) == std::vector<TokenId>{0, 2, 1});
}

TEST_CASE("sampling: Mirostat keeps the surprise where it is wanted") {
  for (const int version : {1, 2}) {
    for (const float tau : {2.0F, 4.0F}) {
      Sampler s(with([&](SamplingOptions& o) { o.mirostat = version, o.mirostat_tau = tau, o.seed = 5; }));
      double surprise = 0;
      constexpr int kDraws = 2000;
      for (unsigned i = 0; i < kDraws; ++i) {
        std::vector<float> logits(1000);  // Zipf's law
        for (std::size_t v = 0; v < logits.size(); ++v) logits[v] = -1.1F * std::log(static_cast<float>(v + 1));
        const auto left = s.chances(logits);
        const TokenId t = s.draw(logits);
        for (const TokenChance& c : left)
          if (c.id == t) surprise -= std::log2(double{c.probability}) / kDraws;
        s.accept(t);
      }
      CHECK(surprise == doctest::Approx(double{tau}).epsilon(0.05));
      CHECK(contains(error_text([&] { s.rewind(1); }), "Mirostat"));
    }
  }
}

TEST_CASE("sampling: draws follow the probabilities, keys give the same again") {
  const std::vector<float> logits{1, 0, -1, 2, -kInfF32};
  const auto p = softmax_of(as_map(std::span(logits).first(4)));
  std::vector<TokenId> first;
  std::map<TokenId, int> counts;
  constexpr int kDraws = 40'000;
  for (const bool again : {false, true}) {
    Sampler s(with([](SamplingOptions& o) { o.seed = 0x1234'5678'9abc'def0; }));
    for (int i = 0; i < kDraws; ++i) {
      const TokenId t = s.draw(logits);
      s.accept(t);
      if (again) {
        REQUIRE(t == first[static_cast<std::size_t>(i)]);
      } else {
        first.push_back(t);
        ++counts[t];
      }
    }
  }
  double chi = 0;
  for (const auto& [id, v] : p) chi += (counts[id] - kDraws * v) * (counts[id] - kDraws * v) / (kDraws * v);
  CHECK(chi < 16.3);  // 3 degrees of freedom, 0.1 %
  CHECK(counts.count(4) == 0);
  Sampler other(with([](SamplingOptions& o) { o.seed = 1; }));
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    const TokenId t = other.draw(logits);
    other.accept(t);
    same += t == first[static_cast<std::size_t>(i)];
  }
  CHECK(same < 80);
}

TEST_CASE("sampling: XTC cuts as often as it should") {
  const std::vector<float> logits{3, 2.9F, -4};
  Sampler s(with([](SamplingOptions& o) { o.xtc_probability = 0.3F; }));
  int cut = 0;
  for (int i = 0; i < 4000; ++i) {
    cut += s.chances(logits).size() == 2;
    s.accept(0);
  }
  CHECK(cut == doctest::Approx(1200).epsilon(0.1));
}

TEST_CASE("sampling: masks and biases") {
  const std::vector<float> logits{1, 9, 3, 2};
  const std::vector<std::uint32_t> mask{0b1101};
  Sampler greedy(with([](SamplingOptions& o) { o.temperature = 0; }));
  CHECK(greedy.draw(logits) == 1);
  CHECK(greedy.draw(logits, mask) == 2);
  CHECK(greedy.draw(std::vector<float>{5, 7, 7}) == 1);
  CHECK(greedy.draw(std::vector<float>{5, kInfF32, 7}) == 1);
  CHECK(Sampler(with([](SamplingOptions& o) { o.temperature = 0, o.logit_bias = {{0, 100}}; })).draw(logits) == 0);
  CHECK(Sampler(with([](SamplingOptions& o) { o.temperature = 0, o.logit_bias = {{1, -kInfF32}}; })).draw(logits) == 2);
  CHECK(log_probability(logits, 1) == doctest::Approx(-std::log(1 + std::exp(-8.0) + std::exp(-6.0) + std::exp(-7.0))));
}

}  // namespace rlx
