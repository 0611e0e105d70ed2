// The engine with a tokenizer: streamed text, stop strings that span tokens, other requests at the same time, every
// layout.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "rlx/base/utf8.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/language_model.h"
#include "tests/support/error_text.h"
#include "tests/support/text_model.h"

namespace rlx {
namespace {

struct TextModel {
  TextModel() { test::write_text_model(folder); }
  Engine engine(DecoderOptions o = {}, EngineOptions e = {}) const {
    if (o.context == 0) o.context = 96;
    LanguageModel m = load_language_model(folder.path(), o);
    return Engine(std::move(m.decoder), m.tokenizer, e);
  }
  test::TempDir folder;
};

struct Said {
  std::vector<TokenId> tokens{};
  std::string text{};
  FinishReason finish = FinishReason::None;
};
// One step, added to the answers so far. Every streamed text has whole characters.
void text_step(Engine& e, std::map<RequestId, Said>& out) {
  for (const GenerationEvent& event : e.step()) {
    Said& s = out[event.request];
    CHECK(s.finish == FinishReason::None);
    CHECK_FALSE(find_invalid_utf8(event.text));
    if (event.token >= 0) s.tokens.push_back(event.token);
    s.text += event.text;
    s.finish = event.finish;
  }
}
std::map<RequestId, Said> text_steps(Engine& e, std::map<RequestId, Said> out = {}) {
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 5000);
    text_step(e, out);
  }
  return out;
}
std::vector<TokenId> some_prompt(std::mt19937& rng, std::size_t size) {
  std::vector<TokenId> p(size);
  for (TokenId& t : p) t = static_cast<TokenId>(3 + rng() % 93);
  return p;
}
GenerationOptions text_options(std::uint64_t seed, std::int64_t tokens) {
  GenerationOptions o;
  o.sampling.seed = seed;
  o.sampling.temperature = 1.2F;
  o.max_new_tokens = tokens;
  return o;
}

}  // namespace

TEST_CASE("load_draft_model: a model with the room of the one that it drafts for, and the same text") {
  const TextModel files;
  const DecoderOptions wide{.context = 80, .sequences = 3};
  LanguageModel m = load_language_model(files.folder.path(), wide);
  std::optional<DraftModel> draft = load_draft_model(files.folder.path(), {.context = 16}, m.decoder);
  CHECK(draft->decoder.context() == 80);
  CHECK(draft->decoder.cache().sequences() == 3);
  REQUIRE(draft->tokenizer != nullptr);
  CHECK(draft->tokenizer->vocab_size() == m.tokenizer->vocab_size());
  std::mt19937 rng(12);
  const std::vector<TokenId> prompt = some_prompt(rng, 20);
  const GenerationOptions options = text_options(4, 30);
  Engine drafted(std::move(m.decoder), m.tokenizer, {}, std::move(draft));
  const std::string text = drafted.generate(prompt, options);
  CHECK(text == files.engine(wide).generate(prompt, options));
  CHECK(drafted.statistics().accepted_tokens > 0);
}

TEST_CASE("engine with text: tokens and text do not depend on batches, chunks, pages and shared beginnings") {
  const TextModel files;
  std::mt19937 rng(11);
  struct Wanted {
    std::vector<TokenId> prompt;
    GenerationOptions options;
    Said said;
  };
  std::vector<Wanted> all;
  const std::vector<TokenId> common = some_prompt(rng, 70);
  {
    Engine alone = files.engine({}, {0, false});
    for (std::uint64_t i = 0; i < 12; ++i) {
      Wanted w{some_prompt(rng, 1 + rng() % 9), text_options(i, 1 + static_cast<std::int64_t>(rng() % 16)), {}};
      if (i % 3 == 0) w.prompt.insert(w.prompt.begin(), common.begin(), common.begin() + 60 + static_cast<int>(i));
      if (i % 4 == 1) w.options.stop = {"ab", "e"};
      if (i % 4 == 2) w.options.stop_tokens = {static_cast<TokenId>(3 + i), 40, 41};
      const RequestId id = alone.submit(w.prompt, w.options);
      w.said = text_steps(alone)[id];
      std::vector<TokenId> shown = w.said.tokens;
      if (w.said.finish == FinishReason::StopToken) shown.pop_back();
      if (w.said.finish != FinishReason::StopString) CHECK(w.said.text == alone.tokenizer()->decode(shown));
      all.push_back(std::move(w));
    }
  }
  struct Layout {
    std::int64_t sequences, max_tokens, page, pages;
    bool prefixes;
  };
  int reused = 0, preempted = 0;
  for (const Layout& l : {Layout{1, 512, 0, 0, false}, Layout{12, 512, 0, 0, false}, Layout{4, 5, kEnginePage, 0, true},
                          Layout{6, 64, kEnginePage, 4, true}, Layout{3, 1, kEnginePage, 0, true}}) {
    DecoderOptions o;
    o.sequences = l.sequences, o.max_tokens = l.max_tokens, o.page = l.page, o.pages = l.pages;
    Engine e = files.engine(o, {0, l.prefixes});
    std::map<RequestId, const Wanted*> wanted;
    std::map<RequestId, Said> got;
    for (const Wanted& w : all) {
      wanted[e.submit(w.prompt, w.options)] = &w;
      if (rng() % 3 == 0) text_step(e, got);
    }
    got = text_steps(e, std::move(got));
    CHECK(got.size() == all.size());
    for (const auto& one : wanted) {
      CAPTURE(l.sequences);
      CAPTURE(one.first);
      CHECK(got[one.first].tokens == one.second->said.tokens);
      CHECK(got[one.first].text == one.second->said.text);
      CHECK(got[one.first].finish == one.second->said.finish);
    }
    reused += e.statistics().reused_tokens > 0 ? 1 : 0;
    preempted += e.statistics().preemptions > 0 ? 1 : 0;
  }
  CHECK(reused >= 2);
  CHECK(preempted >= 1);
}

TEST_CASE("engine with text: a stop string that lies over tokens ends the answer in front of it") {
  const TextModel files;
  Engine e = files.engine();
  std::mt19937 rng(3);
  int found = 0, over_tokens = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::vector<TokenId> prompt = some_prompt(rng, 4);
    const GenerationOptions options = text_options(seed, 40);
    const std::string whole = e.generate(prompt, options);
    if (whole.size() < 12) continue;
    for (std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{6}}) {
      std::size_t at = 2 + rng() % (whole.size() - size - 2);
      while (at > 0 && is_utf8_continuation(whole[at])) --at;
      std::size_t end = at + size;
      while (end < whole.size() && is_utf8_continuation(whole[end])) ++end;
      const std::string stop = whole.substr(at, end - at);
      GenerationOptions stopped = options;
      stopped.stop = {"never said, which is long", stop};
      const RequestId id = e.submit(prompt, stopped);
      const Said said = text_steps(e)[id];
      CHECK(said.finish == FinishReason::StopString);
      CHECK(said.text == whole.substr(0, whole.find(stop)));
      ++found;
      const std::string last = test::text_model_tokens()[static_cast<std::size_t>(said.tokens.back())];
      over_tokens += last.size() < stop.size() ? 1 : 0;
    }
  }
  CHECK(found > 20);
  CHECK(over_tokens > 10);
}

TEST_CASE("engine: generate keeps the events of other requests for the next step") {
  const TextModel files;
  DecoderOptions o;
  o.sequences = 3;
  Engine e = files.engine(o);
  const std::vector<TokenId> prompt{5, 6, 7}, other{9, 9, 10, 11};
  Engine alone = files.engine();
  const RequestId wanted_id = alone.submit(other, text_options(4, 6));
  const Said wanted = text_steps(alone)[wanted_id];
  const std::string text = alone.generate(prompt, text_options(1, 20));

  const RequestId id = e.submit(other, text_options(4, 6));  // this request ends while the other one runs
  std::string pieces;
  CHECK(e.generate(prompt, text_options(1, 20), [&](std::string_view s) {
    pieces += s;
    return true;
  }) == text);
  CHECK(pieces == text);
  CHECK_FALSE(e.idle());  // its events are not delivered yet
  const auto got = text_steps(e);
  REQUIRE(got.size() == 1);
  CHECK(got.at(id).tokens == wanted.tokens);
  CHECK(got.at(id).text == wanted.text);
  CHECK(got.at(id).finish == FinishReason::MaxTokens);

  // An exception of a callback ends its request; the other requests go on.
  const RequestId beside = e.submit(other, text_options(4, 6));
  CHECK_THROWS_AS(e.generate(prompt, text_options(1, 20), [](std::string_view) -> bool { throw 5; }), int);
  // A callback may destroy or replace its engine: the answer goes on.
  auto destroyed = std::make_unique<Engine>(files.engine());
  Engine* const at = destroyed.get();
  CHECK(at->generate(prompt, text_options(1, 20), [&](std::string_view) {
    destroyed.reset();
    return true;
  }) == text);
  Engine replaced = files.engine();
  bool done = false;
  CHECK(replaced.generate(prompt, text_options(1, 20), [&](std::string_view) {
    if (!std::exchange(done, true)) replaced = files.engine();
    return true;
  }) == text);
  CHECK(replaced.generate(prompt, text_options(1, 20)) == text);
  const auto rest = text_steps(e);
  REQUIRE(rest.size() == 1);
  CHECK(rest.at(beside).tokens == wanted.tokens);
}

TEST_CASE("engine with text: a cancelled answer gives the characters it has, and its text so far") {
  const TextModel files;
  Engine e = files.engine();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RequestId id = e.submit(std::vector<TokenId>{4, 5, 6}, text_options(seed, 30));
    std::map<RequestId, Said> got;
    for (int i = 0; i < 9; ++i) text_step(e, got);
    if (e.idle()) continue;
    CHECK(e.cancel(id));
    got = text_steps(e, std::move(got));
    CHECK(got[id].finish == FinishReason::Cancelled);
    CHECK(got[id].text == e.tokenizer()->decode(got[id].tokens));
    CHECK(got[id].tokens.size() == 9);
  }
}

TEST_CASE("engine: a run that fails loses no event, and the requests stay") {
  const TextModel files;
  DecoderOptions o;
  o.sequences = 2;
  Engine e = files.engine(o);
  const std::vector<TokenId> prompt{4, 5, 6};
  const RequestId first = e.submit(prompt, text_options(2, 30)), second = e.submit(prompt, text_options(4, 6));
  std::map<RequestId, Said> got;
  text_step(e, got);
  // The sequence of the second request is changed from outside, so that the next run fails.
  KvCache& cache = const_cast<DecoderModel&>(e.model()).cache();
  const std::int64_t length = cache.length(1);
  cache.append(1, 40);
  CHECK(e.cancel(first));
  CHECK_FALSE(test::error_text([&] { (void)e.step(); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)e.generate(prompt, text_options(1, 3)); }).empty());
  cache.truncate(1, length);
  got = text_steps(e, std::move(got));
  CHECK(got.size() == 2);
  CHECK(got[first].finish == FinishReason::Cancelled);
  CHECK(got[second].finish == FinishReason::MaxTokens);
  Engine alone = files.engine();
  const RequestId id = alone.submit(prompt, text_options(4, 6));
  CHECK(got[second].tokens == text_steps(alone)[id].tokens);
}

TEST_CASE("engine: what stops one answer is an event of that one") {
  const TextModel files;
  DecoderOptions o;
  o.sequences = 2;
  Engine e = files.engine(o);
  GenerationOptions forbidden = text_options(1, 5);
  for (TokenId id = 0; id < 96; ++id)
    forbidden.sampling.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  const RequestId bad = e.submit(std::vector<TokenId>{4, 5}, forbidden);
  const RequestId good = e.submit(std::vector<TokenId>{4, 5}, text_options(1, 5));
  std::vector<GenerationEvent> events;
  while (!e.idle())
    for (GenerationEvent& event : e.step()) events.push_back(std::move(event));
  int failed = 0, tokens = 0;
  for (const GenerationEvent& event : events) {
    if (event.request == bad) {
      ++failed;
      CHECK(event.finish == FinishReason::Failed);
      CHECK(event.token == -1);
      REQUIRE(event.problem);
      CHECK(test::contains(event.problem->message, "no token"));
    } else {
      CHECK(event.request == good);
      CHECK_FALSE(event.problem);
      ++tokens;
    }
  }
  CHECK(failed == 1);
  CHECK(tokens == 5);
  CHECK(test::contains(test::error_text([&] { (void)e.generate(std::vector<TokenId>{4}, forbidden); }), "no token"));
  CHECK(e.idle());
  CHECK(finish_reason_name(FinishReason::Failed) == "failed");
}

// The first tokens of another tokenizer.
class FewerTokens : public Tokenizer {
 public:
  FewerTokens(std::shared_ptr<const Tokenizer> all, std::int64_t count) : all_(std::move(all)), count_(count) {}
  std::vector<TokenId> encode(std::string_view text, bool special) const override {
    return all_->encode(text, special);
  }
  std::int64_t vocab_size() const override { return count_; }
  std::optional<TokenId> token_to_id(std::string_view token) const override { return all_->token_to_id(token); }
  std::optional<std::string_view> id_to_token(TokenId id) const override {
    return id < count_ ? all_->id_to_token(id) : std::nullopt;
  }
  std::span<const TokenId> prefix_ids() const override { return all_->prefix_ids(); }
  std::span<const TokenId> suffix_ids() const override { return all_->suffix_ids(); }
  TokenId pad_id() const override { return all_->pad_id(); }
  const TokenDecoder& decoder() const override { return all_->decoder(); }
  std::optional<std::string_view> decoded_piece(TokenId id, bool skip_special_tokens) const override {
    if (id >= count_) throw Error(ErrorCode::InvalidArgument, "no such token");
    return all_->decoded_piece(id, skip_special_tokens);
  }

 private:
  std::shared_ptr<const Tokenizer> all_;
  std::int64_t count_;
};

TEST_CASE("engine: ids that no token of the tokeniser has stand for no text") {
  const TextModel files;  // 96 tokens; the other tokenizer knows half of them
  LanguageModel m = load_language_model(files.folder.path(), {.context = 96});
  const auto fewer = std::make_shared<FewerTokens>(m.tokenizer, 48);
  Engine e(std::move(m.decoder), fewer, {}), whole = files.engine();
  GenerationOptions o = text_options(5, 40);
  o.stop = {"never said"};
  Said said[2];
  for (Engine* engine : {&e, &whole}) {
    const RequestId id = engine->submit(std::vector<TokenId>{4, 5, 6}, o);
    said[engine == &whole] = text_steps(*engine)[id];
  }
  CHECK(said[0].finish == FinishReason::MaxTokens);
  CHECK(said[0].tokens == said[1].tokens);
  CHECK(std::any_of(said[0].tokens.begin(), said[0].tokens.end(), [](TokenId t) { return t >= 48; }));
  CHECK(said[0].text.size() < said[1].text.size());
}

}  // namespace rlx
