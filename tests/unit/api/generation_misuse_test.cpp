// Misuse of what draws tokens.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rlx/generation/sampling.h"
#include "tests/support/error_text.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("misuse: sampling") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{1, 9, 3, 2};
  const auto with = [](auto change) {
    SamplingOptions o;
    change(o);
    return o;
  };
  CHECK(contains(error_text([&] { (void)log_probability(logits, 4); }), "token"));
  CHECK(contains(error_text([&] { (void)log_probability({}, 0); }), "token"));
  CHECK(contains(error_text([] { (void)sampling_step_name(static_cast<SamplingStep>(99)); }), "SamplingStep"));
  CHECK(contains(error_text([] { (void)parse_sampling_order("top_k;tempreature"); }), "temperature"));
  CHECK(contains(error_text([] { Sampler().rewind(1); }), "cannot forget 1"));
  CHECK(contains(error_text([&] { (void)Sampler().chances(std::vector<float>{NAN}); }), "NaN"));
  const auto draw = [&](std::vector<float> x, std::vector<std::uint32_t> m = {}) {
    return error_text([&] { (void)Sampler().draw(x, m); });
  };
  CHECK(contains(draw({1, NAN}), "token 1 is NaN"));
  CHECK(contains(draw({-kInf, -kInf}), "no token can follow"));
  CHECK(contains(draw({}), "no token can follow"));
  CHECK(contains(draw({1, 2}, {0}), "no token can follow"));
  CHECK(contains(draw({1, 2}, {1, 1}), "does not fit"));
  const auto refused = [&](auto change) { return error_text([&] { Sampler s(with(change)); }); };
  CHECK(contains(refused([](SamplingOptions& o) { o.temperature = -1; }), "temperature is -1"));
  CHECK(contains(refused([](SamplingOptions& o) { o.temperature = NAN; }), "temperature"));
  CHECK(contains(refused([](SamplingOptions& o) { o.top_p = 0; }), "top_p"));
  CHECK(contains(refused([](SamplingOptions& o) { o.min_p = 2; }), "min_p"));
  CHECK(contains(refused([](SamplingOptions& o) { o.mirostat = 3; }), "mirostat"));
  CHECK(contains(refused([](SamplingOptions& o) { o.dry_allowed_length = 0; }), "dry_allowed_length"));
  CHECK(contains(refused([](SamplingOptions& o) { o.repetition_penalty = 0; }), "repetition_penalty"));
  CHECK(contains(refused([](SamplingOptions& o) { o.logit_bias = {{-1, 0}}; }), "token -1"));
  CHECK(contains(error_text([&] {
                   (void)Sampler(with([](SamplingOptions& o) { o.logit_bias = {{7, 1}}; })).draw(logits);
                 }),
                 "token 7 of 4"));
}

}  // namespace rlx
