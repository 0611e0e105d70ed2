// Grammars in the engine: every answer matches its grammar, whatever else runs.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "rlx/formats/json.h"
#include "rlx/generation/engine.h"
#include "rlx/generation/grammar/answer_grammar.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/language_model.h"
#include "tests/support/error_text.h"
#include "tests/support/grammar_oracle.h"
#include "tests/support/text_model.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

struct GrammarModel {
  GrammarModel() { test::write_text_model(folder); }
  Engine engine(DecoderOptions o = {}) const {
    if (o.context == 0) o.context = 256;
    LanguageModel m = load_language_model(folder.path(), o);
    return Engine(std::move(m.decoder), m.tokenizer);
  }
  test::TempDir folder;
};

const char* const kThingSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 6},
    "count": {"type": "integer", "minimum": -5, "maximum": 200},
    "tags": {"type": "array", "items": {"enum": ["ab", "ba", "z"]}, "maxItems": 3},
    "ok": {"type": ["boolean", "null"]},
    "inner": {"type": "object", "properties": {"x": {"type": "number", "minimum": -9, "maximum": 9}}, "required": ["x"],
              "additionalProperties": false}
  },
  "required": ["name", "count", "ok"],
  "additionalProperties": false
})";

// Whether `text` matches kThingSchema, checked by a parser and by hand.
bool is_thing(const std::string& text) try {
  const JsonDocument document = JsonDocument::parse(text, "answer");
  const JsonValue root = document.root();
  if (!root.is_object()) return false;
  std::size_t known = 0;
  if (const auto v = root.find("name")) {
    std::size_t letters = 0;
    for (const char c : v->as_string("name")) letters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1U : 0U;
    if (letters > 6) return false;
    ++known;
  } else {
    return false;
  }
  const std::int64_t count = root.at("count").as_int("count");
  if (count < -5 || count > 200) return false;
  ++known;
  if (!root.at("ok").is_null()) (void)root.at("ok").as_bool("ok");
  ++known;
  if (const auto v = root.find("tags")) {
    const auto tags = v->elements("tags");
    if (tags.size() > 3) return false;
    for (const JsonValue& tag : tags) {
      const std::string_view t = tag.as_string("tag");
      if (t != "ab" && t != "ba" && t != "z") return false;
    }
    ++known;
  }
  if (const auto v = root.find("inner")) {
    const double x = v->at("x").as_number("x");
    if (!(x >= -9 && x <= 9) || v->size() != 1) return false;
    ++known;
  }
  return root.size() == known;
} catch (const Error&) {
  return false;
}

struct Spoken {
  std::vector<TokenId> tokens{};
  std::string text{};
  FinishReason finish = FinishReason::None;
  std::optional<Diagnostic> problem{};
};
std::map<RequestId, Spoken> spoken_by(Engine& e) {
  std::map<RequestId, Spoken> out;
  for (int steps = 0; !e.idle(); ++steps) {
    REQUIRE(steps < 5000);
    for (const GenerationEvent& event : e.step()) {
      Spoken& s = out[event.request];
      if (event.token >= 0) s.tokens.push_back(event.token);
      s.text += event.text;
      s.finish = event.finish;
      s.problem = event.problem;
    }
  }
  return out;
}
GenerationOptions held_to(const Grammar& grammar, std::uint64_t seed) {
  GenerationOptions o;
  o.sampling.seed = seed;
  o.sampling.temperature = seed % 4 == 0 ? 0.0F : 1.5F;
  o.grammar = grammar;
  o.stop_tokens = {2};
  return o;
}
// The text of tokens, by the vocabulary that the tokenizer was made from.
std::string joined(const std::vector<TokenId>& tokens) {
  std::string out;
  for (const TokenId t : tokens)
    if (t > 2) out += test::text_model_tokens()[static_cast<std::size_t>(t)];
  return out;
}

}  // namespace

TEST_CASE("engine with a grammar: answers of a random model are JSON of the schema, in any batch") {
  const GrammarModel files;
  JsonSchemaOptions spaced;
  spaced.whitespace = JsonWhitespace::Spaced;
  const Grammar grammar = json_schema_grammar(kThingSchema, spaced);
  CHECK_FALSE(is_thing("{}"));
  CHECK_FALSE(is_thing(R"({"name": "x", "count": 201, "ok": null})"));
  CHECK_FALSE(is_thing(R"({"name": "x", "count": 2, "ok": null, "more": 1})"));
  CHECK(is_thing(R"({"name": "x", "count": 2, "ok": null})"));
  std::mt19937 rng(2);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Spoken> wanted;
  {
    Engine alone = files.engine();
    for (std::uint64_t i = 0; i < 24; ++i) {
      std::vector<TokenId> prompt(1 + rng() % 80);
      for (TokenId& t : prompt) t = static_cast<TokenId>(3 + rng() % 93);
      const RequestId id = alone.submit(prompt, held_to(grammar, i));
      prompts.push_back(std::move(prompt));
      wanted.push_back(spoken_by(alone)[id]);
      const Spoken& s = wanted.back();
      CAPTURE(s.text);
      CHECK(s.finish == FinishReason::GrammarEnd);  // nothing can follow the last brace, so no end token is needed
      CHECK(s.text == joined(s.tokens));
      CHECK(is_thing(s.text));
    }
  }
  struct Layout {
    std::int64_t sequences, max_tokens, pages;
  };
  for (const Layout& l : {Layout{24, 512, 0}, Layout{5, 7, 8}, Layout{3, 64, 0}}) {
    DecoderOptions o;
    o.sequences = l.sequences, o.max_tokens = l.max_tokens, o.page = kEnginePage, o.pages = l.pages;
    Engine e = files.engine(o);
    std::map<RequestId, std::size_t> which;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      which[e.submit(prompts[i], held_to(grammar, i))] = i;
      GenerationOptions free;  // a request without a grammar runs beside each
      free.max_new_tokens = 3;
      (void)e.submit(prompts[i], free);
    }
    const auto got = spoken_by(e);
    for (const auto& one : which) {
      CHECK(got.at(one.first).tokens == wanted[one.second].tokens);
      CHECK(got.at(one.first).text == wanted[one.second].text);
    }
    if (l.pages != 0) CHECK(e.statistics().preemptions > 0);
  }
}

TEST_CASE("engine with a grammar: any blanks, any JSON, and answers that are cut") {
  const GrammarModel files;
  DecoderOptions o;
  o.context = 4096, o.sequences = 4;
  Engine e = files.engine(o);
  JsonSchemaOptions few;
  few.max_whitespace = 3;
  const Grammar grammar = json_schema_grammar(kThingSchema, few), any = json_grammar(few);
  std::map<RequestId, bool> things;
  for (std::uint64_t i = 1; i < 13; ++i) {
    things[e.submit(std::vector<TokenId>{1, 7, 8}, held_to(grammar, i))] = true;
    GenerationOptions options = held_to(any, i);
    options.max_new_tokens = 60;
    things[e.submit(std::vector<TokenId>{1, 9, 8}, options)] = false;
  }
  int cut = 0, ended = 0;
  for (const auto& one : spoken_by(e)) {
    const Spoken& s = one.second;
    CAPTURE(s.text);
    if (things.at(one.first)) {
      CHECK(is_thing(s.text));
    } else if (s.finish == FinishReason::MaxTokens) {
      ++cut;
      // The first bytes of a text: the grammar matches single bytes.
      CHECK(GrammarMatcher(GrammarMasks(any, TokenTrie(TokenBytes{{"x"}}))).accept_bytes(joined(s.tokens)));
    } else {
      ++ended;
      CHECK((s.finish == FinishReason::GrammarEnd || s.finish == FinishReason::StopToken));
      CHECK(any.matches(s.text));
      CHECK_FALSE(error_text([&] { (void)JsonDocument::parse(s.text, "answer"); }).size() > 0);
    }
  }
  CHECK(cut > 0);
  CHECK(ended > 0);
}

TEST_CASE("engine with a grammar: masks are those of every token tried against a recogniser of its own") {
  const GrammarModel files;
  const LanguageModel m = load_language_model(files.folder.path(), {.context = 16});
  const std::vector<std::string> tokens = test::text_model_tokens();
  const std::vector<TokenId> ends{2};
  const TokenBytes bytes = token_bytes(*m.tokenizer, 99, ends);  // ids beyond the tokenizer
  REQUIRE(bytes.bytes.size() == 99);
  for (std::size_t id = 0; id < 99; ++id) CHECK(bytes.bytes[id] == (id < 3 || id > 95 ? "" : tokens[id]));
  CHECK(bytes.end == ends);
  CHECK(token_bytes(*m.tokenizer, 50, {}).bytes.size() == 50);
  GrammarCache cache;
  std::mt19937 rng(9);
  std::size_t allowed_in_all = 0, walks = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const test::OracleGrammar oracle(seed);
    if (!oracle.ends()) continue;
    CAPTURE(oracle.text());
    const Grammar grammar = Grammar::from_gbnf(oracle.text());
    std::optional<AnswerGrammar> answer;
    const std::string refused = error_text([&] { answer.emplace(cache.masks(grammar, *m.tokenizer, 99, ends)); });
    std::string text;
    if (!answer) {
      bool any = false;
      for (std::size_t id = 3; id < 96; ++id) any = any || oracle.ask(tokens[id]).viable;
      CHECK_FALSE(any);
      CHECK((contains(refused, "only the empty text") || contains(refused, "no token of the vocabulary")));
      continue;
    }
    for (int i = 0; i < 6; ++i) {
      std::vector<TokenId> wanted;
      const bool complete = oracle.ask(text).matches;
      if (complete) wanted.push_back(2);
      for (std::size_t id = 3; id < 96; ++id)
        if (oracle.ask(text + tokens[id]).viable) wanted.push_back(static_cast<TokenId>(id));
      CAPTURE(text);
      if (wanted.empty()) {
        CHECK(contains(error_text([&] { (void)answer->mask(); }), "no token of the vocabulary can follow"));
        break;
      }
      std::vector<TokenId> got;
      const auto mask = answer->mask();
      for (std::size_t id = 0; id < 128; ++id)
        if ((mask[id / 32] >> id % 32 & 1U) != 0) got.push_back(static_cast<TokenId>(id));
      CHECK(got == wanted);
      const bool only_end = complete && wanted.size() == 1;
      CHECK(answer->must_end() == only_end);
      if (only_end) break;
      const TokenId next = wanted[(complete ? 1 : 0) + rng() % (wanted.size() - (complete ? 1 : 0))];
      (void)answer->accept(next);
      text += tokens[static_cast<std::size_t>(next)];
      allowed_in_all += wanted.size();
      ++walks;
    }
  }
  CHECK(walks > 100);
  CHECK(allowed_in_all > 200);
}

TEST_CASE("engine with a grammar: how answers end") {
  const GrammarModel files;
  Engine e = files.engine();
  const auto say = [&](const char* gbnf, GenerationOptions o = {}) {
    o.grammar = Grammar::from_gbnf(gbnf);
    const RequestId id = e.submit(std::vector<TokenId>{1, 5}, o);
    return spoken_by(e)[id];
  };
  const std::int64_t runs = e.statistics().runs;
  Spoken s = say("root ::= \"z\"");
  CHECK(s.text == "z");
  CHECK(s.finish == FinishReason::GrammarEnd);
  CHECK(e.statistics().runs == runs + 1);  // no run to learn that it ends
  GenerationOptions with_end;
  with_end.stop_tokens = {2};
  with_end.sampling.logit_bias = {{2, 1000.0F}};  // ends as soon as it can
  s = say("root ::= \"q\" \"z\"+", with_end);
  CHECK(s.text == "qz");
  CHECK(s.finish == FinishReason::StopToken);
  CHECK(s.tokens.back() == 2);
  // Without end tokens it continues as long as it can.
  GenerationOptions five;
  five.max_new_tokens = 5;
  s = say("root ::= \"z\"*", five);
  CHECK(s.text == "zzzzz");
  CHECK(s.finish == FinishReason::MaxTokens);
  // A stop string inside the text.
  GenerationOptions stopped;
  stopped.stop = {"yz"};
  s = say("root ::= \"x\" \"y\" \"z\" \"z\"", stopped);
  CHECK(s.text == "x");
  CHECK(s.finish == FinishReason::StopString);
  // A character that is cut off.
  GenerationOptions two;
  two.max_new_tokens = 1;
  two.sampling.logit_bias = {{static_cast<TokenId>(92), 1000.0F}};  // the first half of a character
  s = say("root ::= [\\U0001F600-\\U0001F601]", two);
  REQUIRE(s.tokens == std::vector<TokenId>{92});
  CHECK(s.text == "\xEF\xBF\xBD");
  // A text that the vocabulary cannot produce.
  s = say("root ::= \"z\" \"Z\"");
  CHECK(s.finish == FinishReason::Failed);
  CHECK(s.text == "z");
  REQUIRE(s.problem);
  CHECK(contains(s.problem->text(), "no token of the vocabulary can follow"));
  CHECK(contains(s.problem->text(), "begin with \"Z\""));
  // A token that the grammar allows and a bias forbids.
  GenerationOptions biased;
  for (TokenId id = 0; id < 96; ++id)
    if (test::text_model_tokens()[static_cast<std::size_t>(id)][0] == 'z')
      biased.sampling.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  s = say("root ::= \"z\"", biased);
  CHECK(s.finish == FinishReason::Failed);
  CHECK(s.tokens.empty());

  GenerationOptions o;
  o.grammar = Grammar::from_gbnf("root ::= \"Z\"");
  const std::vector<TokenId> prompt{1};
  CHECK(contains(error_text([&] { e.submit(prompt, o); }), "no token of the vocabulary can follow"));
  o.grammar = Grammar::from_gbnf("root ::= \"\"");
  CHECK(contains(error_text([&] { e.submit(prompt, o); }), "only the empty text"));
  o.grammar = Grammar::from_gbnf("root ::= \"z\"");
  o.stop_tokens = {96};
  CHECK(contains(error_text([&] { e.submit(prompt, o); }), "token 96"));
  CHECK(e.idle());
  Engine silent(DecoderModel::load(files.folder.path(), {.context = 16}), nullptr);
  o.stop_tokens.clear();
  CHECK(contains(error_text([&] { silent.submit(prompt, o); }), "a grammar needs a tokeniser"));
  CHECK(finish_reason_name(FinishReason::GrammarEnd) == "grammar_end");
}

TEST_CASE("tokens' bytes: those of decoders of every kind, and none where a text is rewritten as a whole") {
  const auto bytes_of = [](const std::string& decoder) {
    const auto t = tokenizer_from_json(JsonDocument::parse(
        R"({"model":{"type":"BPE","vocab":{"a":0,"▁b":1,"<0xE2>":2,"##c":3,"d</w>":4,"Ä":5},"merges":[]},"decoder":)" +
            decoder + "}",
        "t.json"));
    return token_bytes(*t, 6, {}).bytes;
  };
  using Bytes = std::vector<std::string>;
  CHECK(bytes_of("null") == Bytes{" a", " ▁b", " <0xE2>", " ##c", " d</w>", " Ä"});
  CHECK(bytes_of(R"({"type":"ByteLevel"})") == Bytes{"a", "▁b", "<0xE2>", "##c", "d</w>", "\xC4"});
  CHECK(bytes_of(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
                     {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})") ==
        Bytes{"a", " b", "\xE2", "##c", "d</w>", "Ä"});
  CHECK(bytes_of(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})") ==
        Bytes{"a", " b", "<0xE2>", "##c", "d</w>", "Ä"});
  CHECK(bytes_of(R"({"type":"WordPiece","prefix":"##","cleanup":true})") ==
        Bytes{" a", " ▁b", " <0xE2>", "c", " d</w>", " Ä"});
  CHECK(bytes_of(R"({"type":"BPEDecoder","suffix":"</w>"})") == Bytes{"a", "▁b", "<0xE2>", "##c", "d ", "Ä"});
  CHECK(contains(error_text([&] {
                   (void)bytes_of(R"({"type":"Sequence","decoders":[{"type":"Fuse"},
                             {"type":"Replace","pattern":{"String":"a"},"content":"b"}]})");
                 }),
                 "rewrites the whole text"));
  CHECK(
      contains(error_text([&] { (void)bytes_of(R"({"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|"})"); }),
               "rewrites the whole text"));
}

}  // namespace rlx
