// The cost of token masks: microseconds per token of a JSON text, for the grammar of all JSON and for a JSON schema.
// usage: grammar [tokenizer.json]   Without a file: a generated vocabulary of 151,000 tokens.
//
// Each grammar takes three walks over a text, which is split into the longest tokens that fit. "new": no mask is
// cached. "known states": the same text two arrays deeper, so the stacks are new but the states are cached. "again":
// everything is cached. Figures: median, mean, 99th percentile and maximum time of a mask; mean time to accept a token;
// states of the grammar; milliseconds to compile it. "a step": what an engine does per token besides the model, with
// and without the grammar.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/before.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/generation/grammar.h"
#include "rlx/generation/grammar/answer_grammar.h"
#include "rlx/generation/json_schema.h"
#include "rlx/generation/sampling.h"

namespace {

// CPU time of this thread, which other programs do not disturb.
struct Clock {
  using time_point = double;  // microseconds
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
  }
};
double microseconds(double from) { return Clock::now() - from; }

// Byte-level BPE writes bytes that are not printable Latin-1 as code points from 256 on.
std::unordered_map<char32_t, char> byte_of_letter() {
  std::unordered_map<char32_t, char> out;
  char32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    out[printable ? static_cast<char32_t>(b) : next++] = static_cast<char>(b);
  }
  return out;
}

rlx::TokenBytes read_vocabulary(const std::string& path) {
  const rlx::JsonDocument document = rlx::JsonDocument::read(path);
  const auto bytes = byte_of_letter();
  rlx::TokenBytes t;
  const auto place = [&](std::int64_t id) -> std::string& {
    if (id < 0 || id > 10'000'000) throw rlx::Error(rlx::ErrorCode::BadFile, path + ": a token id out of range");
    if (t.bytes.size() <= static_cast<std::size_t>(id)) t.bytes.resize(static_cast<std::size_t>(id) + 1);
    return t.bytes[static_cast<std::size_t>(id)];
  };
  for (const auto& [text, id] : document.root().at("model").at("vocab").members("vocab")) {
    std::string token;
    for (std::size_t at = 0; at < text.size();) {
      const auto found = bytes.find(rlx::decode_utf8(text, at));
      if (found != bytes.end()) token += found->second;
    }
    place(id.as_int("id")) = token;
  }
  for (const rlx::JsonValue& added : document.root().at("added_tokens").elements("added_tokens")) {
    const std::int64_t id = added.get_int("id");
    place(id) = added.get_string("content");
    (added.get_bool("special") ? t.end : t.special).push_back(static_cast<rlx::TokenId>(id));
  }
  return t;
}

// Words with and without a leading space, and pieces of JSON, about as long as the tokens of real vocabularies.
rlx::TokenBytes made_up_vocabulary() {
  std::mt19937_64 rng(1);
  rlx::TokenBytes t;
  for (int b = 0; b < 256; ++b) t.bytes.emplace_back(1, static_cast<char>(b));
  const std::string marks = "{}[]\":,. \n\t-_()0123456789\\/";
  while (t.bytes.size() < 151'000) {
    std::string s;
    const std::uint64_t kind = rng() % 20;
    for (std::uint64_t i = 1 + rng() % (kind == 0 ? 4 : 10); i > 0; --i) {
      if (kind == 0 || (kind == 1 && rng() % 3 == 0))
        s += marks[rng() % marks.size()];
      else if (kind == 2)
        rlx::append_utf8(s, static_cast<char32_t>(0x4E00 + rng() % 5000));
      else
        s += static_cast<char>('a' + std::min(rng() % 26, rng() % 26));
    }
    t.bytes.push_back(kind > 8 ? " " + s : s);
  }
  t.bytes.emplace_back("</s>");
  t.end.push_back(static_cast<rlx::TokenId>(t.bytes.size()) - 1);
  return t;
}

const char* const kSchema = R"({
  "type": "object",
  "properties": {
    "title": {"type": "string", "maxLength": 200},
    "status": {"enum": ["open", "closed", "in progress"]},
    "priority": {"type": "integer", "minimum": 1, "maximum": 5},
    "created": {"type": "string", "format": "date-time"},
    "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
    "notes": {"type": "array", "items": {"type": "string"}}
  },
  "required": ["title", "status", "people"],
  "additionalProperties": false,
  "$defs": {"person": {
    "type": "object",
    "properties": {
      "name": {"type": "string"},
      "email": {"type": "string", "format": "email"},
      "age": {"type": ["integer", "null"]},
      "reports": {"type": "array", "items": {"$ref": "#/$defs/person"}}
    },
    "required": ["name"],
    "additionalProperties": false
  }}
})";

std::string sample_text() {
  std::string people;
  for (int i = 0; i < 12; ++i) {
    people += std::string(i == 0 ? "" : ", ") + "{\"name\": \"Person number " + std::to_string(i) +
              " of the list\", \"email\": \"someone" + std::to_string(i) +
              "@example.org\", \"age\": " + (i % 3 == 0 ? "null" : std::to_string(20 + i)) +
              ", \"reports\": [{\"name\": \"A \\\"quoted\\\" n\xC3\xA4me\", \"reports\": []}]}";
  }
  return "{\"title\": \"What the masks of a grammar cost for each token of a text\", \"status\": \"in progress\", "
         "\"priority\": 3, \"created\": \"2026-11-25T18:04:01Z\", \"people\": [" +
         people + "], \"notes\": [\"first\", \"A longer note, with more than one sentence. This is the second.\"]}";
}

class Vocabulary {
 public:
  explicit Vocabulary(rlx::TokenBytes t) : trie(t) {
    std::vector<bool> control(t.bytes.size());
    for (const auto* list : {&t.special, &t.end})
      for (const rlx::TokenId id : *list) control[static_cast<std::size_t>(id)] = true;
    for (std::size_t id = 0; id < t.bytes.size(); ++id)
      if (!control[id]) ids_.emplace(t.bytes[id], static_cast<rlx::TokenId>(id));
  }
  // Splits a text greedily into the longest tokens.
  std::vector<rlx::TokenId> encode(const std::string& text) const {
    std::vector<rlx::TokenId> out;
    for (std::size_t at = 0; at < text.size();) {
      for (std::size_t size = std::min<std::size_t>(32, text.size() - at);; --size) {
        if (size == 0) throw rlx::Error(rlx::ErrorCode::InvalidArgument, "the vocabulary lacks a byte");
        const auto found = ids_.find(text.substr(at, size));
        if (found == ids_.end()) continue;
        out.push_back(found->second);
        at += size;
        break;
      }
    }
    return out;
  }
  rlx::TokenTrie trie;

 private:
  std::unordered_map<std::string, rlx::TokenId> ids_;
};

void walk(const char* what, const rlx::GrammarMasks& masks, const std::vector<rlx::TokenId>& tokens) {
  rlx::GrammarMatcher m(masks);
  std::vector<double> times;
  double accept = 0, total = 0;
  for (const rlx::TokenId id : tokens) {
    const auto start = Clock::now();
    const auto mask = m.mask();
    times.push_back(microseconds(start));
    total += times.back();
    const auto v = static_cast<std::size_t>(id);
    if ((mask[v / 32] >> v % 32 & 1U) == 0) throw rlx::Error(rlx::ErrorCode::Internal, "the text does not fit");
    const auto next = Clock::now();
    if (!m.accept(id)) throw rlx::Error(rlx::ErrorCode::Internal, "the text does not fit");
    accept += microseconds(next);
  }
  std::sort(times.begin(), times.end());
  const auto n = static_cast<double>(times.size());
  std::printf("  %-13s %4zu tokens: median %8.2f  mean %8.2f  99%% %8.1f  max %8.1f us; accept %.2f us\n", what,
              times.size(), times[times.size() / 2], total / n, times[times.size() * 99 / 100], times.back(),
              accept / n);
}

// A draw among all tokens, and the work that a grammar adds: the mask, a draw under it, accepting the token, and the
// check whether the answer is complete. The text continues with its own tokens, not with the drawn ones.
void measure_steps(const rlx::GrammarMasks& masks, const std::vector<rlx::TokenId>& tokens) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(masks.tokens().size());
  for (float& v : logits) v = normal(rng);
  rlx::SamplingOptions options;
  options.top_p = 0.9F;
  rlx::AnswerGrammar answer(masks);
  rlx::Sampler sampler(options);
  double plain = 0, held = 0;
  for (const rlx::TokenId id : tokens) {
    const auto free_at = Clock::now();
    (void)sampler.draw(logits);
    plain += microseconds(free_at);
    const auto held_at = Clock::now();
    (void)sampler.draw(logits, answer.mask());
    (void)answer.accept(id);
    (void)answer.must_end();
    held += microseconds(held_at);
    sampler.accept(id);
  }
  const auto n = static_cast<double>(tokens.size());
  std::printf("  a step (top-p 0.9): %.1f us without the grammar, %.1f us with it\n", plain / n, held / n);
}

void measure(const char* name, const Vocabulary& vocabulary, const std::function<rlx::Grammar()>& make,
             const std::string& text, const std::string& deeper) {
  const auto start = Clock::now();
  const rlx::Grammar grammar = make();
  const double compile = microseconds(start) / 1e3;
  rlx::GrammarMasks masks(grammar, vocabulary.trie);
  std::printf("%s: %zu states, %zu rules, compiled in %.1f ms\n", name, grammar.num_states(), grammar.num_rules(),
              compile);
  const std::vector<rlx::TokenId> tokens = vocabulary.encode(text);
  walk("new", masks, tokens);
  if (!deeper.empty()) walk("known states", masks, vocabulary.encode(deeper));
  walk("again", masks, tokens);
  measure_steps(masks, tokens);
  rlx::GrammarMasks other(grammar, vocabulary.trie);
  const auto before = Clock::now();
  other.prepare();
  std::printf("  prepare() %.0f ms, then:\n", microseconds(before) / 1e3);
  walk("new", other, tokens);
  std::printf("  kept: %.1f MB\n", static_cast<double>(masks.bytes()) / 1e6);
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  const auto start = Clock::now();
  rlx::TokenBytes bytes = argc > 1 ? read_vocabulary(argv[1]) : made_up_vocabulary();
  const double read = microseconds(start) / 1e3;
  const auto sorting = Clock::now();
  const rlx::TokenTrie trie(bytes);
  std::printf("%zu tokens%s, read in %.0f ms, sorted in %.0f ms\n", trie.size(), argc > 1 ? "" : " (made up)", read,
              microseconds(sorting) / 1e3);
  const Vocabulary vocabulary(std::move(bytes));
  const std::string text = sample_text(), array = "[1, " + text + "]", deeper = "[[[2, " + text + "]]]";
  measure(
      "any JSON", vocabulary, [] { return rlx::json_grammar(); }, array, deeper);
  measure(
      "schema", vocabulary, [] { return rlx::json_schema_grammar(kSchema); }, text, "");
  measure(
      "schema, spaced", vocabulary, [] { return rlx::json_schema_grammar(kSchema, {rlx::JsonWhitespace::Spaced}); },
      text, "");
  const std::string gbnf = R"(root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value ws
array ::= "[" ws (value ws ("," ws value ws)*)? "]" ws
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4})
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= [ \t\n]*
)";
  measure(
      "GBNF of JSON", vocabulary, [&] { return rlx::Grammar::from_gbnf(gbnf); }, array, deeper);
  return 0;
} catch (const rlx::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
