// Requests with adapters of their own in one engine: answers, shared beginnings, drafts.
#include <doctest/doctest.h>

#include <map>

#include "rlx/generation/engine.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

std::map<RequestId, std::vector<TokenId>> answers_of(Engine& e) {
  std::map<RequestId, std::vector<TokenId>> out;
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 2000);
    for (const GenerationEvent& event : e.step())
      if (event.token >= 0) out[event.request].push_back(event.token);
  }
  return out;
}

}  // namespace

TEST_CASE("engine: each request has the adapter it asks for, and shares beginnings with those of the same one") {
  const test::TempDir model, qv, all;
  test::write_model(model, test::decoder_reference("llama2"));
  test::write_adapter(qv, test::adapter_reference("llama_qv"));
  test::write_adapter(all, test::adapter_reference("llama_all"));
  DecoderOptions o;
  o.context = 64;
  DecoderModel plain = DecoderModel::load(model.path(), o);
  o.adapters = {{"qv", {{qv.path()}}}, {"all", {{all.path()}}}};
  DecoderModel one = DecoderModel::load(model.path(), o);
  const std::string names[] = {"", "qv", "all"};
  const std::vector<TokenId> prompt{5, 17, 80, 3, 3, 41, 22, 9, 60, 2, 77};
  GenerationOptions options;
  options.sampling.temperature = 0.7F;
  options.sampling.seed = 4;
  options.max_new_tokens = 20;
  std::map<std::string, std::vector<TokenId>> wanted;
  for (std::int64_t a = 0; a < 3; ++a) {
    DecoderModel& m = a == 0 ? plain : one;
    m.reset();
    Sampler s(options.sampling);
    s.accept(prompt);
    std::vector<TokenId> next = prompt, &said = wanted[names[a]];
    while (said.size() < 20) {
      const SequenceTokens part{0, next, 1, a - 1};
      const Tensor logits = m.forward(std::span(&part, 1));
      next = {s.draw(logits.values<float>())};
      s.accept(next[0]);
      said.push_back(next[0]);
    }
  }
  CHECK(wanted["qv"] != wanted[""]);
  CHECK(wanted["all"] != wanted["qv"]);
  for (const bool drafts : {false, true}) {
    DecoderOptions several = o;
    several.sequences = 4, several.page = 4, several.max_tokens = 13;
    EngineOptions with;
    with.draft.lookup = drafts ? 1 : 0;
    std::optional<DraftModel> draft;
    if (drafts) {
      DecoderOptions small = several;
      small.adapters.clear();
      draft = DraftModel{DecoderModel::load(model.path(), small)};
    }
    Engine e(DecoderModel::load(model.path(), several), nullptr, with, std::move(draft));
    for (int round = 0; round < 2; ++round) {
      std::map<RequestId, std::string> of;
      for (int i = 0; i < 9; ++i) {
        options.adapter = names[(i * 2 + i / 3) % 3];
        of[e.submit(prompt, options)] = options.adapter;
      }
      const auto said = answers_of(e);
      CHECK(said.size() == 9);
      for (const auto& [id, tokens] : said) CHECK(tokens == wanted[of[id]]);
    }
    CHECK(e.statistics().reused_tokens >= 9 * 8);
    if (drafts) CHECK(e.statistics().accepted_tokens > 0);
    options.adapter = "qx";
    CHECK(
        test::contains(test::error_text([&] { (void)e.submit(prompt, options); }), "no adapter called 'qx' is loaded"));
    CHECK(test::contains(test::error_text([&] { (void)e.submit(prompt, options); }), "did you mean 'qv'"));
  }
  plain.reset();
  Engine none(std::move(plain), nullptr);
  CHECK(test::contains(test::error_text([&] { (void)none.submit(prompt, options); }), "DecoderOptions::adapters"));
}

}  // namespace rlx
