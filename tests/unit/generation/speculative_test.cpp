// Speculative decoding: with drafts of both kinds, good or bad, every token of every request is the same as without
// drafts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "rlx/formats/json.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/engine/drafter.h"
#include "rlx/generation/json_schema.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_model.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// A reference model as files, changed or not.
struct DraftedModel {
  template <class Change>
  DraftedModel(const std::string& name, Change change) {
    test::DecoderReference r = test::decoder_reference(name);
    change(r);
    test::write_model(folder, r);
  }
  explicit DraftedModel(const std::string& name) : DraftedModel(name, [](test::DecoderReference&) {}) {}
  DecoderModel load(DecoderOptions o = {}) const {
    if (o.context == 0) o.context = 64;
    return DecoderModel::load(folder.path(), o);
  }
  test::TempDir folder;
};

// Changes the matrices whose rows are tokens by f(values).
template <class F>
void change_vocabulary(test::DecoderReference& r, F f) {
  for (NamedTensor& w : r.weights) {
    if (w.name != "lm_head.weight" && w.name != "model.embed_tokens.weight") continue;
    const auto values = w.tensor.values<float>();
    std::vector<float> changed(values.begin(), values.end());
    f(w.name, changed);
    const std::int64_t width = w.tensor.dim(1);
    w.tensor = Tensor::of<float>({static_cast<std::int64_t>(changed.size()) / width, width}, changed);
  }
}
void set_vocabulary(test::DecoderReference& r, std::int64_t size) {
  change_vocabulary(
      r, [&](const std::string&, std::vector<float>& x) { x.resize(static_cast<std::size_t>(size) * 48, 0.01F); });
  const std::string key = "\"vocab_size\":96";
  r.config.replace(r.config.find(key), key.size(), "\"vocab_size\":" + std::to_string(size));
}

struct SaidTokens {
  std::vector<TokenId> tokens{};
  std::string text{};
  FinishReason finish = FinishReason::None;
  friend bool operator==(const SaidTokens&, const SaidTokens&) = default;
};

// The options of a request, and the step at which it is submitted.
struct Wish {
  std::vector<TokenId> prompt;
  GenerationOptions options{};
  int comes = 0;
};

std::vector<SaidTokens> say_all(Engine& e, const std::vector<Wish>& wishes) {
  std::map<RequestId, std::size_t> of;
  std::vector<SaidTokens> said(wishes.size());
  std::size_t next = 0;
  for (int steps = 0; next < wishes.size() || !e.idle(); ++steps) {
    REQUIRE(steps < 5000);
    for (; next < wishes.size() && wishes[next].comes <= steps; ++next)
      of[e.submit(wishes[next].prompt, wishes[next].options)] = next;
    for (const GenerationEvent& event : e.step()) {
      SaidTokens& one = said[of.at(event.request)];
      CHECK(one.finish == FinishReason::None);  // nothing follows the end
      if (event.token >= 0) one.tokens.push_back(event.token);
      one.text += event.text;
      one.finish = event.finish;
    }
  }
  return said;
}

std::vector<SamplingOptions> every_kind() {
  std::vector<SamplingOptions> kinds(9);
  kinds[0].temperature = 0;
  kinds[1].temperature = 0.8F, kinds[1].top_k = 20;
  kinds[2].temperature = 0, kinds[2].repetition_penalty = 1.2F, kinds[2].frequency_penalty = 0.1F;
  kinds[3].mirostat = 1, kinds[3].mirostat_tau = 3;
  kinds[4].mirostat = 2, kinds[4].mirostat_tau = 2;
  kinds[5].dry_multiplier = 0.9F, kinds[5].temperature = 0.3F;
  kinds[6].xtc_probability = 0.5F, kinds[6].min_p = 0.02F;
  kinds[7].dynamic_range = 0.5F, kinds[7].typical_p = 0.9F, kinds[7].top_n_sigma = 3;
  kinds[8].temperature = 0.2F, kinds[8].logit_bias = {{3, 2.0F}, {5, -100.0F}};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].seed = 1000 + i;
  return kinds;
}

// Requests of every kind; some prompts share a prefix, some repeat themselves.
std::vector<Wish> wishes_for(std::uint64_t seed, std::int64_t vocab) {
  std::mt19937_64 rng(seed);
  const auto random = [&](std::size_t size) {
    std::vector<TokenId> p(size);
    for (TokenId& t : p) t = static_cast<TokenId>(rng() % static_cast<std::uint64_t>(vocab));
    return p;
  };
  const std::vector<TokenId> common = random(19);
  std::vector<Wish> wishes;
  for (const SamplingOptions& kind : every_kind()) {
    for (int i = 0; i < 2; ++i) {
      Wish w{random(1 + rng() % 12)};
      if (i == 1) w.prompt.insert(w.prompt.begin(), common.begin(), common.end());
      if (rng() % 2) {
        const std::vector<TokenId> again = w.prompt;
        w.prompt.insert(w.prompt.end(), again.begin(), again.begin() + static_cast<std::ptrdiff_t>(again.size() / 2));
      }
      w.options.sampling = kind;
      w.options.sampling.seed += 100 * static_cast<std::uint64_t>(i);
      w.options.max_new_tokens = rng() % 5 == 0 ? 0 : 1 + static_cast<std::int64_t>(rng() % 24);
      w.comes = static_cast<int>(rng() % 12);
      wishes.push_back(w);
    }
  }
  std::stable_sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) { return a.comes < b.comes; });
  return wishes;
}

std::vector<Wish> greedy_wishes(std::size_t count, std::int64_t tokens) {
  std::vector<Wish> wishes;
  for (std::size_t i = 0; i < count; ++i) {
    Wish w{{static_cast<TokenId>(7 * i + 1), static_cast<TokenId>(3 * i + 2), 5}};
    w.options.sampling.temperature = 0;
    w.options.max_new_tokens = tokens;
    wishes.push_back(w);
  }
  return wishes;
}

EngineOptions with_drafts(std::int64_t tokens, std::int64_t lookup) {
  EngineOptions o;
  o.draft.tokens = tokens, o.draft.lookup = lookup;
  return o;
}

}  // namespace

TEST_CASE("speculation: every token is the one without it, for all samplers, batches, pages and drafts" *
          doctest::test_suite(rlx::test::kSlow)) {
  const DraftedModel model("llama2"), other("qwen2"), shallow("llama2", [](test::DecoderReference& r) {
    std::erase_if(r.weights, [](const NamedTensor& w) { return w.name.starts_with("model.layers.2."); });
    const std::string key = "\"num_hidden_layers\":3";
    r.config.replace(r.config.find(key), key.size(), "\"num_hidden_layers\":2");
  });
  struct Case {
    std::int64_t sequences, max_tokens, page, pages;
    bool prefixes;
  };
  for (const Case& c : {Case{4, 512, 0, 0, false}, Case{4, 11, 8, 0, true}, Case{5, 19, 4, 24, true},
                        Case{1, 3, 16, 0, true}, Case{3, 2, 64, 0, true}}) {
    CAPTURE(c.max_tokens);
    DecoderOptions o;
    o.sequences = c.sequences, o.max_tokens = c.max_tokens, o.page = c.page, o.pages = c.pages;
    const std::vector<Wish> wishes = wishes_for(static_cast<std::uint64_t>(c.sequences), 96);
    EngineOptions plain = with_drafts(0, 0);
    plain.prefix_cache = c.prefixes;
    Engine without(model.load(o), nullptr, plain);
    const std::vector<SaidTokens> wanted = say_all(without, wishes);
    struct Drafts {
      std::int64_t tokens, lookup;
      const DraftedModel* model;
    };
    for (const Drafts& d : {Drafts{8, 1, nullptr}, Drafts{5, 3, nullptr}, Drafts{4, 0, &model}, Drafts{6, 0, &shallow},
                            Drafts{3, 0, &other}, Drafts{8, 2, &shallow}}) {
      CAPTURE(d.tokens);
      CAPTURE(d.lookup);
      EngineOptions with = with_drafts(d.tokens, d.lookup);
      with.prefix_cache = c.prefixes;
      std::optional<DraftModel> draft;
      if (d.model) draft = DraftModel{d.model->load(o)};
      Engine e(model.load(o), nullptr, with, std::move(draft));
      for (int round = 0; round < 2; ++round) CHECK(say_all(e, wishes) == wanted);
      const EngineStatistics& s = e.statistics();
      if (c.max_tokens > 3 && d.lookup < 3) CHECK(s.drafted_tokens > 0);
      CHECK(s.accepted_tokens <= s.drafted_tokens);
      CHECK(s.generated_tokens == 2 * without.statistics().generated_tokens);
      if (c.max_tokens > 3 && d.model && d.model != &other) CHECK(s.runs < 2 * without.statistics().runs);
      if (c.pages != 0) CHECK(s.preemptions > 0);
    }
  }
}

TEST_CASE("speculation: a model that drafts for itself is always right, one of the opposite mind never") {
  const DraftedModel model("llama2"), opposite("llama2", [](test::DecoderReference& r) {
    change_vocabulary(r, [](const std::string& name, std::vector<float>& x) {
      if (name == "lm_head.weight")
        for (float& v : x) v = -v;
    });
  });
  DecoderOptions o;
  o.sequences = 3;
  Engine plain(model.load(o), nullptr);
  const std::vector<Wish> greedy = greedy_wishes(3, 40);
  const std::vector<SaidTokens> wanted = say_all(plain, greedy);
  // A repetitive answer is drafted from itself by prompt lookup.
  std::vector<Wish> one_thing = greedy;
  for (Wish& w : one_thing) w.options.sampling.logit_bias = {{7, 100.0F}};
  Engine back(model.load(o), nullptr, with_drafts(8, 2));
  CHECK(say_all(back, one_thing) == say_all(plain, one_thing));
  CHECK(back.statistics().accepted_tokens == back.statistics().drafted_tokens);
  CHECK(back.statistics().runs < 12);

  Engine itself(model.load(o), nullptr, with_drafts(8, 0), DraftModel{model.load(o)});
  CHECK(say_all(itself, greedy) == wanted);
  CHECK(itself.statistics().drafted_tokens > 80);
  CHECK(itself.statistics().accepted_tokens == itself.statistics().drafted_tokens);
  CHECK(itself.statistics().runs < 10);
  // Draws with the same noise agree too.
  std::vector<Wish> drawn = greedy;
  for (Wish& w : drawn) w.options.sampling = {.temperature = 1.5F, .seed = 11};
  Engine also_itself(model.load(o), nullptr, with_drafts(8, 0), DraftModel{model.load(o)});
  CHECK(say_all(also_itself, drawn) == say_all(plain, drawn));
  CHECK(also_itself.statistics().accepted_tokens == also_itself.statistics().drafted_tokens);
  CHECK(also_itself.statistics().drafted_tokens > 80);

  Engine wrong(model.load(o), nullptr, with_drafts(8, 0), DraftModel{opposite.load(o)});
  CHECK(say_all(wrong, greedy) == wanted);
  CHECK(wrong.statistics().accepted_tokens == 0);
  CHECK(wrong.statistics().drafted_tokens > 0);
  CHECK(wrong.statistics().drafted_tokens < 30);  // of 120 positions: bad drafts are requested less and less
  CHECK(wrong.statistics().runs == 40);
}

TEST_CASE("speculation: answers end where they would") {
  const DraftedModel model("llama2");
  const auto answer = [&](Engine& e, const GenerationOptions& options) {
    return say_all(e, {Wish{{1, 2, 3}, options}})[0];
  };
  DecoderOptions o;
  o.context = 40;
  Engine plain(model.load(o), nullptr);
  Engine e(model.load(o), nullptr, with_drafts(16, 0), DraftModel{model.load(o)});
  GenerationOptions options;
  options.sampling.temperature = 0;
  const SaidTokens full = answer(plain, options);
  CHECK(full.tokens.size() == 37);
  CHECK(full.finish == FinishReason::ContextFull);
  CHECK(answer(e, options) == full);
  for (std::size_t i = 0; i < full.tokens.size(); ++i) {
    options.stop_tokens = {full.tokens[i]};
    CHECK(answer(e, options) == answer(plain, options));
    options.stop_tokens.clear();
    options.max_new_tokens = static_cast<std::int64_t>(i) + 1;
    CHECK(answer(e, options) == answer(plain, options));
    options.max_new_tokens = 0;
  }
  CHECK(e.statistics().runs < plain.statistics().runs / 3);
  // A cancelled request leaves nothing in its sequence.
  const RequestId id = e.submit(std::vector<TokenId>{4, 5, 6}, options);
  for (int i = 0; i < 4; ++i) (void)e.step();
  CHECK(e.cancel(id));
  const auto last = e.step();
  REQUIRE(last.size() == 1);
  CHECK(last[0].finish == FinishReason::Cancelled);
  CHECK(answer(e, options) == full);
}

TEST_CASE("speculation: text and stop strings") {
  // A vocabulary of single letters, so that a stop string ends between two drafted tokens.
  std::string vocab;
  for (int i = 0; i < 96; ++i)
    vocab += (i ? ",\"" : "\"") + (i < 60 ? std::string(1, static_cast<char>('A' + i)) : "x" + std::to_string(i)) +
             "\":" + std::to_string(i);
  const std::size_t backslash = vocab.find("\"\\\"");
  vocab.insert(backslash + 1, "\\");
  const std::shared_ptr<const Tokenizer> letters =
      tokenizer_from_json(JsonDocument::parse("{\"model\":{\"type\":\"BPE\",\"vocab\":{" + vocab +
                                                  "},\"merges\":[]},\"decoder\":{\"type\":"
                                                  "\"ByteLevel\"}}",
                                              "letters"));
  const DraftedModel model("llama2");
  Engine plain(model.load(), letters), e(model.load(), letters, with_drafts(8, 1), DraftModel{model.load(), letters});
  GenerationOptions options;
  options.sampling.temperature = 0;
  options.max_new_tokens = 40;
  const SaidTokens all = say_all(plain, {Wish{{1, 2}, options}})[0];
  CHECK(all.text.size() >= 40);
  for (const std::size_t at : {3U, 11U, 20U, 29U}) {
    options.stop = {all.text.substr(at, 3)};
    const SaidTokens stopped = say_all(plain, {Wish{{1, 2}, options}})[0];
    CHECK(stopped.finish == FinishReason::StopString);
    CHECK(say_all(e, {Wish{{1, 2}, options}})[0] == stopped);
  }
  options.stop.clear();
  // The request ends after its first text; further tokens of the same run are dropped.
  int pieces = 0;
  const std::string first =
      e.generate(std::vector<TokenId>{1, 2}, options, [&](std::string_view) { return ++pieces < 4; });
  CHECK(pieces == 4);
  CHECK(first == all.text.substr(0, first.size()));
  CHECK(first.size() < all.text.size());
  CHECK(e.idle());
}

TEST_CASE("speculation: drafts keep to the grammar of their request, and to the end of it") {
  const test::TempDir folder;
  test::write_text_model(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(folder.path());
  DecoderOptions o;
  o.context = 128, o.sequences = 2;
  const auto load = [&] { return DecoderModel::load(folder.path(), o); };
  GenerationOptions options;
  options.stop_tokens = {2};
  options.grammar = json_schema_grammar(R"({"type":"object","properties":{"a":{"enum":["xy","xz"]},"list":{"type":)"
                                        R"("array","items":{"type":"integer","maximum":99},"minItems":9}},)"
                                        R"("required":["a","list"],"additionalProperties":false})");
  std::vector<Wish> wishes;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    options.sampling.seed = seed;
    options.sampling.temperature = seed % 2 ? 0.9F : 0.0F;
    options.max_new_tokens = seed == 5 ? 7 : 0;
    wishes.push_back({{1, static_cast<TokenId>(20 + seed)}, options});
  }
  Engine plain(load(), tokenizer);
  const std::vector<SaidTokens> wanted = say_all(plain, wishes);
  int complete = 0;
  for (const SaidTokens& s : wanted)
    complete += s.finish == FinishReason::GrammarEnd || s.finish == FinishReason::StopToken;
  CHECK(complete > 0);
  Engine itself(load(), tokenizer, with_drafts(6, 0), DraftModel{load(), tokenizer});
  CHECK(say_all(itself, wishes) == wanted);
  // Each draft equals the answer, including its end, and nothing is drafted after it.
  CHECK(itself.statistics().accepted_tokens == itself.statistics().drafted_tokens);
  CHECK(itself.statistics().runs < plain.statistics().runs / 2);
  Engine back(load(), tokenizer, with_drafts(6, 1));
  CHECK(say_all(back, wishes) == wanted);
  CHECK(back.statistics().drafted_tokens > 0);
}

TEST_CASE("speculation: draft models of another width, a shorter context, few pages, or no sense") {
  const DraftedModel model("llama2"), narrow("llama2", [](test::DecoderReference& r) { set_vocabulary(r, 80); }),
      wide("llama2", [](test::DecoderReference& r) { set_vocabulary(r, 112); }),
      nonsense("llama2", [](test::DecoderReference& r) {
        change_vocabulary(r, [](const std::string& name, std::vector<float>& x) {
          if (name == "lm_head.weight") x[5] = std::numeric_limits<float>::quiet_NaN();
        });
      });
  std::string vocab = "\"a0\":0", rest;
  for (int i = 1; i < 112; ++i) (i < 80 ? vocab : rest) += ",\"a" + std::to_string(i) + "\":" + std::to_string(i);
  const auto tokenizer = [&](const std::string& more) -> std::shared_ptr<const Tokenizer> {
    return tokenizer_from_json(
        JsonDocument::parse("{\"model\":{\"type\":\"BPE\",\"vocab\":{" + vocab + more + "},\"merges\":[]}}", "t"));
  };
  const auto tokens = tokenizer(rest), few = tokenizer("");
  DecoderOptions o;
  o.sequences = 2;
  std::vector<Wish> wishes = greedy_wishes(4, 40);
  wishes[3].prompt = {90, 91, 92};  // ids beyond the small vocabulary
  Engine plain(model.load(o), nullptr);
  const std::vector<SaidTokens> wanted = say_all(plain, wishes);
  const auto said = [&](DraftModel draft) {
    Engine e(model.load(o), tokens, with_drafts(8, 0), std::move(draft));
    std::vector<SaidTokens> out = say_all(e, wishes);
    for (SaidTokens& s : out) s.text.clear();
    CHECK(out == wanted);
    return e.statistics();
  };
  CHECK(said({narrow.load(o), few}).accepted_tokens > 10);
  CHECK(said({wide.load(o), tokens}).accepted_tokens > 50);
  DecoderOptions brief = o;
  brief.context = 20;
  const EngineStatistics in_brief = said({model.load(brief), tokens});
  CHECK(in_brief.accepted_tokens > 20);
  CHECK(in_brief.accepted_tokens < 4 * 20);
  DecoderOptions tight = o;
  tight.page = 8, tight.pages = 8;  // one whole sequence
  CHECK(said({model.load(tight), tokens}).accepted_tokens > 20);
  CHECK(said({nonsense.load(o), tokens}).drafted_tokens == 0);

  const auto refused = [&](const DraftedModel& m, std::shared_ptr<const Tokenizer> t, DecoderOptions options) {
    return error_text([&] { Engine e(model.load(o), tokens, {}, DraftModel{m.load(options), std::move(t)}); });
  };
  CHECK(contains(refused(narrow, nullptr, o),
                 "the draft model, a llama of 80 tokens, does not match the model, a llama of 96 tokens"));
  vocab.replace(vocab.find("a17"), 3, "b17");
  CHECK(contains(refused(narrow, tokenizer(""), o),
                 "token 17 is 'b17' in the draft model, a llama of 80 tokens, and 'a17' "
                 "in the model, a llama of 96 tokens"));
  CHECK(contains(refused(model, tokens, {}), "the draft model has a cache for 1 sequence, the model for 2"));
  const auto bad = [&](std::int64_t count, std::int64_t lookup) {
    return error_text([&] { Engine e(model.load(o), nullptr, with_drafts(count, lookup)); });
  };
  CHECK(contains(bad(-1, 0), "the draft length must be in [0"));
  CHECK(contains(bad(5000, 0), "the draft length must be in [0"));
  CHECK(contains(bad(1, -2), "lookup must be 0 or more, got -2"));
}

TEST_CASE("speculation: a draft does not remember wrong ones, nor another request") {
  const DraftedModel model("llama2");
  const DecoderModel target = model.load();
  const auto drafts = [&](Drafter& d, Sampler& s) {
    Draft draft;
    DraftPlace place{&s, 0, true, 8, &draft};
    std::vector<TokenId> all;
    for (int i = 0; i < 2; ++i) {  // the second one is longer
      d.draft(std::span(&place, 1));
      all.insert(all.end(), draft.tokens.begin(), draft.tokens.end());
      draft.accept(static_cast<std::int64_t>(draft.tokens.size()));
    }
    return all;
  };
  SamplingOptions greedy;
  greedy.temperature = 0;
  Drafter used({}, DraftModel{model.load({.page = 4})}, target, nullptr);
  for (const TokenId first : {1, 2, 1}) {
    CAPTURE(first);
    Sampler s(greedy);
    s.accept(std::vector<TokenId>{first, 9, 4, 30, 31, 8});
    const std::vector<TokenId> wrong = drafts(used, s);
    CHECK(wrong.size() == 6);
    CHECK(s.sequence().size() == 6);
    // Other tokens follow, without drafts for some time, and more of them than were drafted.
    s.accept((wrong[0] + 1) % 96);
    used.truncate(0, static_cast<std::int64_t>(s.sequence().size()) - 1);
    for (TokenId t = 50; t < 60; ++t) s.accept(t);
    Drafter fresh({}, DraftModel{model.load({.page = 4})}, target, nullptr);
    const std::vector<TokenId> wanted = drafts(fresh, s);
    CHECK(drafts(used, s) == wanted);
    used.release(0, s.sequence());
  }
}

TEST_CASE("speculation: drafts by looking back") {
  using Tokens = std::vector<TokenId>;
  CHECK(lookup_draft(Tokens{1, 2, 3, 4, 1, 2}, 2, 2) == Tokens{3, 4});
  CHECK(lookup_draft(Tokens{1, 2, 3, 4, 1, 2}, 3, 2).empty());
  // The longest match wins, then the latest.
  CHECK(lookup_draft(Tokens{1, 2, 3, 9, 2, 3, 8, 1, 2, 3}, 1, 1) == Tokens{9});
  CHECK(lookup_draft(Tokens{2, 3, 9, 2, 3, 8, 2, 3}, 1, 3) == Tokens{8, 2, 3});
  // A match that reaches the end continues into itself.
  CHECK(lookup_draft(Tokens{5, 6, 7, 6, 7}, 1, 5) == Tokens{6, 7, 6, 7, 6});
  CHECK(lookup_draft(Tokens{4, 4}, 1, 3) == Tokens{4, 4, 4});
  CHECK(lookup_draft(Tokens{4}, 1, 3).empty());
  CHECK(lookup_draft({}, 1, 3).empty());
  CHECK(lookup_draft(Tokens{1, 2, 1}, 1, 0).empty());
  CHECK(contains(error_text([] { (void)lookup_draft({}, 0, 3); }), "a match of at least 1 token"));
  CHECK(contains(error_text([] { (void)lookup_draft({}, 1, -1); }), "prompt lookup needs"));
  // Against a plain search.
  std::mt19937 rng(3);
  for (int round = 0; round < 300; ++round) {
    Tokens text(rng() % 24);
    for (TokenId& t : text) t = static_cast<TokenId>(rng() % 3);
    std::size_t best = 0, from = 0;
    for (std::size_t end = 1; end < text.size(); ++end) {
      std::size_t same = 0;
      while (same < end && text[end - 1 - same] == text[text.size() - 1 - same]) ++same;
      if (same >= best) best = same, from = end;
    }
    const auto least = static_cast<std::int64_t>(1 + rng() % 4);
    Tokens want;
    if (static_cast<std::int64_t>(best) >= least) {
      Tokens all = text;
      for (std::size_t i = 0; i < 5; ++i) all.push_back(all[from + i]), want.push_back(all[from + i]);
    }
    CHECK(lookup_draft(text, least, 5) == want);
  }
}

TEST_CASE("speculation: how long drafts are") {
  DraftLength l;
  CHECK(l.next(8) == 2);
  l.update(2, 2);
  CHECK(l.next(8) == 4);
  l.update(4, 4);
  CHECK(l.next(5) == 5);
  l.update(5, 3);
  CHECK(l.next(8) == 4);
  l.update(1, 1);  // cut short by a budget: it stays
  CHECK(l.next(8) == 4);
  l.update(4, 0);
  for (const int pause : {1, 2, 4, 8, 16, 32, 32}) {
    for (int i = 0; i < pause; ++i) CHECK(l.next(8) == 0);
    CHECK(l.next(8) == 1);
    l.update(0, 0);  // there was none after all
    CHECK(l.next(8) == 1);
    l.update(1, 0);
  }
  for (int i = 0; i < 32; ++i) CHECK(l.next(8) == 0);
  l.update(1, 1);
  CHECK(l.next(8) == 2);
  l.update(2, 0);
  CHECK(l.next(8) == 0);
  CHECK(l.next(8) == 1);
}

}  // namespace rlx
