// Token sampling of the cpu, by partial selection, always draws the tokens of the reference rule, which sorts.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rlx/device/registry.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "tests/support/needs.h"
#include "tests/support/samples.h"
#include "tests/support/values.h"

namespace rlx {
namespace {

using test::kInf;

/// A draw: logits [rows, tokens] and settings per row; min_p and mask are optional.
struct Draw {
  Tensor logits;
  std::vector<double> temperature, top_k, top_p, min_p;
  Tensor mask;
};

Tensor of_rows(const std::vector<double>& v, DType t) {
  return Tensor::of<double>({static_cast<std::int64_t>(v.size())}, v).cast(t);
}

// Runs the draw compiled and by the reference rule. Tokens are equal, log-probabilities up to the rounding of sums.
void expect_same(const std::string& name, const Draw& d, DType settings = DType::F32) {
  INFO(name);
  const std::int64_t rows = d.logits.dim(0), tokens = d.logits.dim(1);
  Graph g;
  NamedTensors values;
  const auto input = [&](const char* leaf, const Tensor& t) {
    values.emplace(leaf, t);
    return g.input(leaf, t.shape());
  };
  const Expr logits = input("logits", d.logits), key = g.rng_split(g.rng_key(7), rows);
  Builder::SampleSettings s;
  s.temperature = input("temperature", of_rows(d.temperature, settings));
  s.top_k = input("top_k", of_rows(d.top_k, DType::I32));
  s.top_p = input("top_p", of_rows(d.top_p, settings));
  if (!d.min_p.empty()) s.min_p = input("min_p", of_rows(d.min_p, settings));
  if (!d.mask.empty()) s.mask_bits = input("mask", d.mask);
  const auto r = g.sample(logits, key, s);
  g.set_outputs({r.token, r.logprob});
  CHECK(backend_for(Device::Cpu)->target({})->claims(g, r.token.value().node));
  const std::vector<Tensor> want = evaluate(g, values), got = Session().compile(std::move(g)).run_typed(values);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    INFO("row ", i, " of ", tokens, ": temperature ", d.temperature[at], ", top_k ", d.top_k[at], ", top_p ",
         d.top_p[at], ", min_p ", d.min_p.empty() ? -1 : d.min_p[at]);
    CHECK(got[0].at_i64(i) == want[0].at_i64(i));
    const double a = got[1].at(i), b = want[1].at(i);
    CHECK((a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5 * (1 + std::fabs(b))));
  }
}

// Every combination of the settings, one row each; `logits(row, token)`.
template <class F>
Draw combinations(std::int64_t tokens, bool with_min_p, DType t, F&& logits) {
  const auto v = static_cast<double>(tokens);
  Draw d;
  for (double temperature : {0.0, -1.0, 0.3, 1.0, 1e-40, 1e-20, kInf, static_cast<double>(NAN)})
    for (double k : {0.0, -1.0, 1.0, 2.0, 7.0, v - 1, v, v + 3})
      for (double p : {1.0, 0.9, 0.4, 0.01, 0.0, 2.0, static_cast<double>(NAN)})
        for (double least : {0.0, 0.05, 1.0, 2.0, -kInf, static_cast<double>(NAN)}) {
          if (!with_min_p && least != 0) continue;
          d.temperature.push_back(temperature);
          d.top_k.push_back(k);
          d.top_p.push_back(p);
          if (with_min_p) d.min_p.push_back(least);
        }
  const auto rows = static_cast<std::int64_t>(d.top_k.size());
  d.logits = Tensor::zeros(Shape({rows, tokens}, t));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < tokens; ++i)
      store_element(d.logits.mutable_data(), t, r * tokens + i, static_cast<double>(logits(r, i)));
  return d;
}

TEST_CASE("sample on the cpu: every combination of settings, over logits of every kind") {
  constexpr std::int64_t kTokens = 21;
  const Tensor noise = test::draw(Shape({4000, kTokens}, DType::F32), Fill::Normal, 1, 3);
  const auto drawn = [&](std::int64_t r, std::int64_t i) { return noise.at(r % 4000 * kTokens + i); };
  const auto one_of = [](std::int64_t at, std::int64_t i, double special, double other) {
    return i == at || i == at + 5 ? special : other;
  };
  test::Share share(3);
  for (bool with_min_p : {false, true}) {
    const auto check = [&](const char* name, auto logits) {
      if (!share.next()) return;
      expect_same(name, combinations(kTokens, with_min_p, DType::F32, logits));
    };
    check("drawn", [&](auto r, auto i) { return 2 * drawn(r, i); });
    check("ties", [&](auto r, auto i) { return std::round(drawn(r, i)); });
    check("all equal", [&](auto, auto) { return -0.75; });
    check("zeros of both signs", [&](auto r, auto i) { return drawn(r, i) > 0 ? 0.0 : -0.0; });
    check("nothing", [&](auto, auto) { return -kInf; });
    check("mostly -inf", [&](auto r, auto i) { return drawn(r, i) > 1 ? drawn(r, i) : -kInf; });
    check("+inf", [&](auto r, auto i) { return one_of(r % kTokens, i, kInf, drawn(r, i)); });
    check("NaN", [&](auto r, auto i) { return one_of(r % kTokens, i, NAN, i % 3 == 0 ? kInf : drawn(r, i)); });
    check("far apart", [&](auto r, auto i) { return drawn(r, i) * 3e38; });
    check("subnormal", [&](auto r, auto i) { return drawn(r, i) * 1e-41; });
  }
}

TEST_CASE("sample on the cpu: large vocabularies, with few and many tokens left") {
  // An eighth of the tokens under the sanitizers.
  const auto part = static_cast<std::int64_t>(test::one_in(8));
  for (std::int64_t tokens : {std::int64_t{1000}, 30'000 / part, 130'000 / part}) {
    Draw d;
    const auto row = [&](double temperature, double k, double p, double least) {
      d.temperature.push_back(temperature);
      d.top_k.push_back(k);
      d.top_p.push_back(p);
      d.min_p.push_back(least);
    };
    row(1, 0, 1, 0);
    row(0.8, 40, 1, 0);
    row(0.8, 40, 0.95, 0);
    row(1, 0, 0.9, 0);
    row(3, 0, 0.99, 0);
    row(1, 0, 1, 0.1);
    row(2, static_cast<double>(tokens / 2), 0.8, 0.001);
    const auto rows = static_cast<std::int64_t>(d.top_k.size());
    const Tensor noise = test::draw(Shape({rows, tokens}, DType::F32), Fill::Normal, 1, 5);
    for (double width : {0.01, 1.0, 4.0}) {
      d.logits = Tensor::zeros(noise.shape());
      for (std::int64_t i = 0; i < noise.num_elements(); ++i)
        store_element(d.logits.mutable_data(), DType::F32, i, noise.at(i) * width);
      expect_same("drawn", d);
      if (tokens > 30'000 / part) break;
      d.logits = d.logits.cast(DType::BF16);  // many ties
      expect_same("bf16", d);
    }
    if (tokens > 30'000 / part) break;
    // The worst order for selection: each logit is larger than those before it.
    for (std::int64_t i = 0; i < noise.num_elements(); ++i)
      store_element(d.logits.mutable_data(), d.logits.dtype(), i, static_cast<double>(i % tokens) * 1e-3);
    expect_same("ascending", d);
  }
}

TEST_CASE("sample on the cpu: masks, and settings in other dtypes than the logits") {
  constexpr std::int64_t kTokens = 70;
  const Tensor noise = test::draw(Shape({500, kTokens}, DType::F32), Fill::Normal, 1, 9);
  test::Share share(3);
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (bool with_min_p : {false, true}) {
      if (!share.next()) continue;
      Draw d =
          combinations(kTokens, with_min_p, t, [&](auto r, auto i) { return 2 * noise.at(r % 500 * kTokens + i); });
      expect_same("no mask", d, DType::F64);
      d.mask = test::draw(Shape({d.logits.dim(0), 3}, DType::U32), Fill::Index, std::int64_t{1} << 32, 4);
      auto* words = reinterpret_cast<std::uint32_t*>(d.mask.mutable_data());
      words[0] = words[1] = words[2] = 0;
      expect_same("mask", d, t == DType::F64 ? DType::F32 : t);
    }
  }
}

TEST_CASE("sample on the cpu: a top_p that is met exactly is decided by the sums of the reference") {
  constexpr std::int64_t kTokens = 300;
  const Tensor noise = test::draw(Shape({kTokens}, DType::F64), Fill::Normal, 1, 11);
  for (DType t : {DType::F32, DType::F64}) {
    Graph g;
    const Expr x = g.constant(noise.cast(t));
    g.set_outputs({g.cumsum(g.softmax(g.sort(x, 0, true) - g.reduce_max(x, {0}, true), 0), 0, true)});
    const Tensor before = evaluate(g, NamedTensors{})[0];
    Draw d;
    for (std::int64_t r = 0; r < 60; ++r)
      for (int step : {-1, 0, 1}) {
        const double p = before.at(r * 4);
        d.temperature.push_back(1);
        d.top_k.push_back(0);
        d.top_p.push_back(t == DType::F64 ? std::nextafter(p, p + step)
                                          : std::nextafter(static_cast<float>(p), static_cast<float>(p) + step));
      }
    const auto rows = static_cast<std::int64_t>(d.top_k.size());
    d.logits = Tensor::zeros(Shape({rows, kTokens}, t));
    for (std::int64_t i = 0; i < d.logits.num_elements(); ++i)
      store_element(d.logits.mutable_data(), t, i, noise.at(i % kTokens));
    expect_same("met exactly", d, t);
  }
}

TEST_CASE("sample on the cpu: a token whose probability nobody reads") {
  Graph g;
  const Expr x = g.input("x", Shape({2, 9}, DType::F32)), keys = g.rng_split(g.rng_key(3), 2);
  const auto r = g.sample(x, keys, {.top_k = 3});
  g.set_outputs({r.token});
  const NamedTensors values{{"x", test::draw(Shape({2, 9}, DType::F32), Fill::Normal, 1, 2)}};
  const Tensor want = evaluate(g, values)[0];
  CHECK(Session().compile(std::move(g)).run_typed(values)[0].identical(want));
}

}  // namespace
}  // namespace rlx
