// Interrupted answers: an answer resumed from a file equals the answer without the interruption, for every kind of
// request. Also log-probabilities of tokens.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "rlx/formats/mapped_file.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/language_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/text_model.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

struct ResumedModel {
  ResumedModel() { test::write_text_model(folder); }
  Engine engine(EngineOptions options = {}) const {
    DecoderOptions o;
    o.context = 256, o.page = kEnginePage;
    LanguageModel m = load_language_model(folder.path(), o);
    return Engine(std::move(m.decoder), m.tokenizer, options);
  }
  test::TempDir folder;
};

struct ResumedAnswer {
  std::vector<TokenId> tokens{};  // without a stop token
  std::string text{};
  FinishReason finish = FinishReason::None;
  BegunAnswer begun{};
  std::vector<TokenLogprobs> logprobs{};
};
ResumedAnswer answer_of(Engine& e, std::span<const TokenId> prompt, const GenerationOptions& options) {
  ResumedAnswer out;
  const RequestId id = e.submit(prompt, options);
  while (!e.idle())
    for (const GenerationEvent& event : e.step()) {
      if (event.request != id) continue;
      if (event.problem) FAIL(event.problem->message);
      if (event.token >= 0 && event.finish != FinishReason::StopToken) out.tokens.push_back(event.token);
      if (event.logprobs) out.logprobs.push_back(*event.logprobs);
      out.text += event.text, out.finish = event.finish, out.begun = event.begun;
    }
  return out;
}

const std::vector<TokenId> kResumedPrompt{4, 5, 6, 40, 41};

GenerationOptions resumed_options(std::uint64_t seed) {
  GenerationOptions o;
  o.sampling.seed = seed, o.sampling.temperature = 1.3F, o.max_new_tokens = 40, o.stop_tokens = {2};
  return o;
}

}  // namespace

TEST_CASE("an answer that was cut and saved goes on with the tokens and the text of one that was not" *
          doctest::test_suite(rlx::test::kSlow)) {
  const ResumedModel files;
  struct Case {
    const char* name;
    GenerationOptions options;
  };
  std::vector<Case> cases{{"plain", resumed_options(1)}};
  for (const int version : {1, 2}) {
    cases.push_back({"Mirostat", resumed_options(2)});
    cases.back().options.sampling.mirostat = version;
    cases.back().options.sampling.mirostat_tau = 3;
    cases.back().options.sampling.mirostat_eta = 0.4F;
  }
  cases.push_back({"penalties", resumed_options(3)});
  cases.back().options.sampling.repetition_penalty = 1.4F;
  cases.back().options.sampling.frequency_penalty = 0.3F;
  cases.back().options.sampling.penalty_window = 9;
  cases.back().options.sampling.dry_multiplier = 1;
  cases.push_back({"schema", resumed_options(4)});
  cases.back().options.grammar =
      json_schema_grammar(R"({"type":"array","items":{"enum":["ab","ba","abc"]},"minItems":6,"maxItems":6})",
                          {.whitespace = JsonWhitespace::None}, "schema");
  Engine whole = files.engine();
  // A stop string that spans tokens: part of the text is held back.
  cases.push_back({"stop string", resumed_options(5)});
  const std::string text = answer_of(whole, kResumedPrompt, cases.back().options).text;
  REQUIRE(text.size() > 20);
  std::size_t at = text.size() - 8;
  while ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
  cases.back().options.stop = {text.substr(at, 6)};

  for (Case& c : cases) {
    CAPTURE(c.name);
    const ResumedAnswer all = answer_of(whole, kResumedPrompt, c.options);
    REQUIRE(all.tokens.size() > 3);
    CHECK(all.begun.tokens == static_cast<std::int64_t>(all.tokens.size()));
    int shorter = 0;
    for (std::size_t cut = 1; cut < all.tokens.size(); ++cut) {
      CAPTURE(cut);
      Engine first = files.engine();
      GenerationOptions options = c.options;
      options.max_new_tokens = static_cast<std::int64_t>(cut);
      const ResumedAnswer begun = answer_of(first, kResumedPrompt, options);
      Conversation said{kResumedPrompt};
      said.tokens.insert(said.tokens.end(), begun.tokens.begin(), begun.tokens.end());
      said.answer = begun.begun;
      (void)first.save(files.folder.file("c"), said);
      Engine second = files.engine(cut % 2 == 0 ? EngineOptions{} : EngineOptions{.draft = {.lookup = 1}});
      const Conversation got = second.load(files.folder.file("c"));
      CHECK(got.answer.tokens == static_cast<std::int64_t>(cut));
      CHECK(got.answer.surprise_limit == begun.begun.surprise_limit);
      CHECK(got.answer.surprise_limit.has_value() == (c.options.sampling.mirostat != 0));
      options.max_new_tokens = c.options.max_new_tokens - static_cast<std::int64_t>(cut);
      options.begun = got.answer;
      const ResumedAnswer rest = answer_of(second, got.tokens, options);
      std::vector<TokenId> both = begun.tokens;
      both.insert(both.end(), rest.tokens.begin(), rest.tokens.end());
      CHECK(both == all.tokens);
      CHECK(rest.finish == all.finish);
      CHECK(rest.begun.tokens == all.begun.tokens);
      CHECK(rest.begun.surprise_limit == all.begun.surprise_limit);
      // An interruption inside a character gives U+FFFD for its first bytes; one inside a stop string gives the text
      // that was held back.
      if (!contains(begun.text, "\xEF\xBF\xBD") && begun.text.size() <= all.text.size())
        CHECK(begun.text + rest.text == all.text);
      else
        ++shorter;
    }
    CHECK(shorter < static_cast<int>(all.tokens.size()));
    if (c.options.sampling.mirostat != 0) {  // with another mirostat state the tokens would differ
      GenerationOptions options = c.options;
      std::vector<TokenId> prompt = kResumedPrompt;
      prompt.insert(prompt.end(), all.tokens.begin(), all.tokens.begin() + 10);
      options.max_new_tokens = 30, options.begun = {10, 0.5};
      CHECK(answer_of(whole, prompt, options).tokens !=
            std::vector<TokenId>(all.tokens.begin() + 10, all.tokens.end()));
    }
  }
}

TEST_CASE("an answer goes on behind the end of it where that can be, and says where not") {
  const ResumedModel files;
  Engine e = files.engine();
  GenerationOptions options = resumed_options(1);
  const auto refused = [&](BegunAnswer begun) {
    options.begun = begun;
    return error_text([&] { (void)e.submit(kResumedPrompt, options); });
  };
  CHECK(contains(refused({6, {}}), "a prompt of 5 tokens cannot end with an answer of 6"));
  CHECK(contains(refused({-1, {}}), "an answer of -1"));
  CHECK(contains(refused({1, std::numeric_limits<double>::quiet_NaN()}), "surprise"));
  options.grammar = Grammar::from_gbnf("root ::= \"ab\" [a-b]?", "g");
  CHECK(contains(refused({2, {}}), "token 40 is not allowed by the grammar"));
  options.begun = {2, {}};
  const std::vector<TokenId> a_b{9, 3, 4};  // "g", "a", "b"
  CHECK(answer_of(e, a_b, options).text.size() <= 1);
  const std::vector<TokenId> a_b_a{9, 3, 4, 3};
  options.begun = {3, {}};
  CHECK(contains(error_text([&] { (void)e.submit(a_b_a, options); }), "the grammar of the answer is complete"));
  CHECK(e.idle());
  // The answer continues after a stop string that was found.
  options = resumed_options(1);
  options.stop = {"ab"}, options.begun = {2, {}};
  CHECK_FALSE(answer_of(e, a_b, options).tokens.empty());
  Conversation wrong{kResumedPrompt};
  wrong.answer.tokens = 6;
  CHECK(contains(error_text([&] { (void)e.save(files.folder.file("x"), wrong); }), "cannot end with an answer of 6"));
}

TEST_CASE("log-probabilities are those of the model alone") {
  const ResumedModel files;
  Engine e = files.engine();
  GenerationOptions options = resumed_options(1);
  options.sampling.top_k = 3, options.sampling.repetition_penalty = 1.5F, options.logprobs = 4;
  const ResumedAnswer said = answer_of(e, kResumedPrompt, options);
  REQUIRE(said.logprobs.size() >= said.tokens.size());
  CHECK(answer_of(e, kResumedPrompt, resumed_options(1)).logprobs.empty());
  std::vector<TokenId> all = kResumedPrompt;
  all.insert(all.end(), said.tokens.begin(), said.tokens.end());
  DecoderModel model = DecoderModel::load(files.folder.path(), {.context = 256});
  const Tensor logits = model.forward(all);
  for (std::size_t i = 0; i < said.tokens.size(); ++i) {
    const auto row = logits.values<float>().subspan((kResumedPrompt.size() - 1 + i) * 96, 96);
    double total = 0;
    for (const float l : row) total += std::exp(static_cast<double>(l));
    const auto wanted = [&](TokenId id) {
      return static_cast<double>(row[static_cast<std::size_t>(id)]) - std::log(total);
    };
    CHECK(std::abs(said.logprobs[i].drawn - wanted(said.tokens[i])) < 1e-9);
    REQUIRE(said.logprobs[i].likeliest.size() == 4);
    std::size_t better = 0;
    for (const TokenLogprob& t : said.logprobs[i].likeliest) {
      CHECK(std::abs(t.logprob - wanted(t.id)) < 1e-9);
      std::size_t above = 0;
      for (TokenId v = 0; v < 96; ++v) above += wanted(v) > wanted(t.id);
      CHECK(above == better++);
    }
  }
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> broken{1, inf, -inf, inf};
  CHECK(log_probability(broken, 1) == doctest::Approx(-std::log(2)));
  CHECK(log_probability(broken, 0) == -inf);
  const auto top = likeliest_tokens(broken, 9);
  REQUIRE(top.size() == 4);
  CHECK(top[0].id == 1);
  CHECK(top[1].id == 3);
  CHECK(top[1].logprob == top[0].logprob);
  CHECK(top[3].id == 2);
  CHECK(likeliest_tokens(broken, 0).empty());
}

TEST_CASE("engine: calls of two threads at a time are refused, those of a piece of text are not") {
  const ResumedModel files;
  Engine e = files.engine();
  GenerationOptions options = resumed_options(1);
  std::string refused;
  int pieces = 0;
  const std::string text = e.generate(kResumedPrompt, options, [&](std::string_view) {
    if (pieces++ == 2) {
      std::thread other([&] { refused = error_text([&] { (void)e.step(); }); });
      other.join();
      GenerationOptions few = options;
      few.max_new_tokens = 2;
      (void)e.submit(kResumedPrompt, few);
    }
    return true;
  });
  CHECK(contains(refused, "two threads call one Engine at the same time"));
  CHECK(text == answer_of(e, kResumedPrompt, options).text.substr(0, text.size()));
  // A callback that takes the events of its own answer ends its request.
  CHECK_FALSE(e.generate(kResumedPrompt, options, [&](std::string_view) {
                 while (!e.idle()) (void)e.step();
                 return true;
               }).empty());
  std::thread other([&] { (void)answer_of(e, kResumedPrompt, options); });  // one after the other
  other.join();
  CHECK(e.idle());
}

TEST_CASE("engine: weights with NaN and infinities end answers with an error, and nothing else") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const test::TempDir folder;
    test::write_text_model(folder);
    test::DecoderReference r = test::decoder_reference("llama2");
    for (NamedTensor& w : r.weights)
      if (contains(w.name, "lm_head") || contains(w.name, "down_proj")) w.tensor.mutable_values<float>()[5] = bad;
    test::write_model(folder, r);
    LanguageModel m = load_language_model(folder.path(), {.context = 64, .page = kEnginePage});
    Engine e(std::move(m.decoder), m.tokenizer);
    const std::string said = error_text([&] { (void)e.generate(kResumedPrompt, resumed_options(1)); });
    CHECK(contains(said, "is NaN"));
    CHECK(e.idle());
  }
}

TEST_CASE("engine: a file of weights that is cut while the model is in use is an error of the run") {
  const test::TempDir folder;
  test::write_text_model(folder);
  folder.write("model.gguf", test::decoder_gguf(test::decoder_reference("llama2")));
  for (const char* name : {"model.safetensors", "model.gguf"}) {
    CAPTURE(name);
    const std::string file = folder.file(name);
    const std::string whole = read_file(file);
    const std::string path = contains(name, "gguf") ? file : folder.path();
    const auto load = [&] { return DecoderModel::load(path, {.context = 64, .page = kEnginePage}); };
    Engine e(load(), nullptr);
    GenerationOptions options = resumed_options(1);
    const std::vector<TokenId> tokens = answer_of(e, kResumedPrompt, options).tokens;
    std::filesystem::resize_file(file, 100);
    const std::string said = error_text([&] {
      (void)e.submit({kResumedPrompt.data(), 4}, options);  // other tokens than those that were read
      while (!e.idle()) (void)e.step();
      (void)e.model().weights_fingerprint();
    });
    CHECK(contains(said, concat_text("\"", file, "\" was made shorter")));
    write_file(file, whole);
    Engine other(load(), nullptr);
    CHECK(answer_of(other, kResumedPrompt, options).tokens == tokens);
  }
}

TEST_CASE("engine: many requests in a small pool, the shortest context, and the longest prompt") {
  const test::TempDir folder;
  test::write_text_model(folder);
  DecoderOptions o;
  o.context = 128, o.page = kEnginePage, o.sequences = 64, o.pages = 3, o.max_tokens = 16;
  LanguageModel m = load_language_model(folder.path(), o);
  Engine e(std::move(m.decoder), m.tokenizer);
  Engine alone = [&] {
    DecoderOptions one = o;
    one.sequences = 1;
    LanguageModel a = load_language_model(folder.path(), one);
    return Engine(std::move(a.decoder), a.tokenizer);
  }();
  std::map<RequestId, std::vector<TokenId>> said;
  std::vector<std::pair<RequestId, GenerationOptions>> requests;
  const auto prompt_of = [](std::size_t i) { return std::vector<TokenId>(1 + i % 90, static_cast<TokenId>(3 + i)); };
  const auto step = [&] {
    for (const GenerationEvent& event : e.step()) {
      CHECK_FALSE(event.problem);
      if (event.token >= 0) said[event.request].push_back(event.token);
    }
  };
  for (std::size_t i = 0; i < 64; ++i) {
    GenerationOptions options = resumed_options(i);
    options.max_new_tokens = static_cast<std::int64_t>(1 + i % 7), options.stop_tokens.clear();
    requests.emplace_back(e.submit(prompt_of(i), options), options);
    if (i % 9 == 4) step();
    if (i % 13 == 7) CHECK(e.cancel(requests.back().first));  // also while its prompt is run
  }
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 5000);
    step();
  }
  for (std::size_t i = 0; i < 64; ++i) {
    if (i % 13 == 7) continue;
    CHECK(said[requests[i].first] == answer_of(alone, prompt_of(i), requests[i].second).tokens);
  }
  CHECK(e.idle_model().cache().free_pages() == 3);
  // The last token that fits in the context is drawn without another run.
  GenerationOptions options = resumed_options(1);
  options.stop_tokens.clear();
  CHECK(answer_of(alone, std::vector<TokenId>(127, 4), options).tokens.size() == 1);
  CHECK(contains(error_text([&] { (void)alone.submit(std::vector<TokenId>(128, 4), options); }), "leaves no room"));
  CHECK(contains(error_text([&] { (void)alone.submit({}, options); }), "no tokens"));
  LanguageModel tiny = load_language_model(folder.path(), {.context = 2, .page = kEnginePage});
  Engine two(std::move(tiny.decoder), tiny.tokenizer);
  CHECK(answer_of(two, {kResumedPrompt.data(), 1}, options).finish == FinishReason::ContextFull);
  {
    Engine busy = std::move(two);
    (void)busy.submit({kResumedPrompt.data(), 1}, options);
    (void)busy.step();
  }  // destroyed with a request in it
  CHECK(contains(error_text([&] { (void)two.step(); }), "moved from"));
}

}  // namespace rlx
