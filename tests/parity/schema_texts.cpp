// For tests/parity/schema_jsonschema.py: texts of JSON schemas made by walking token masks at random, and whether given
// texts are accepted. Commands on standard input, a line each:
//   S none|spaced|flexible SCHEMA   takes a schema; answers "ok" or "error TEXT"
//   G SEED COUNT                    answers COUNT texts, each as a JSON string, or "-" for one that found no end
//   A STRING                        answers 1 or 0: whether the text in the JSON string is accepted
#include <cstdio>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/generation/json_schema.h"

namespace {

rlx::TokenBytes vocabulary() {
  rlx::TokenBytes t;
  for (int b = 0; b < 256; ++b) t.bytes.emplace_back(1, static_cast<char>(b));
  for (const char* piece :
       {"{\"",      "\":",      "\": ",     "\",",   "\", \"", "\"}",  "\"]",  "},",    "],",    "}]",
        "]}",       "[]",       "{}",       "[[",    "}}",     "true", "null", "false", "12",    "00",
        "0.",       "1e",       "-1",       ",\"",   ", ",     "\n",   "\n  ", "    ",  "\": [", "\": \"",
        "[\"",      "[{\"",     "ab",       "name",  "value",  "a\"",  "\\n",  "\\u",   "\\\"",  "\\ud83d",
        "\xC3\xA9", "\xE6\x97", "\xA5\xE6", "2024-", "-02-",   "T12:", "@ex",  "://",   "e\":",  "kids"})
    t.bytes.emplace_back(piece);
  t.bytes.emplace_back();
  t.end.push_back(static_cast<rlx::TokenId>(t.bytes.size()) - 1);
  return t;
}

std::string quoted(std::string_view text) {
  rlx::JsonWriter w;
  w.value(text);
  return w.take();
}

// Any token at first; after a while those that bring the text to an end.
std::optional<std::string> random_text(const rlx::GrammarMasks& masks, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  rlx::GrammarMatcher m(masks);
  const std::size_t patience = 1 + rng() % 60;
  std::string text;
  for (std::size_t i = 0; i < 3000; ++i) {
    const auto mask = m.mask();
    std::vector<rlx::TokenId> all, closing;
    for (std::size_t id = 0; id < masks.tokens().size(); ++id) {
      if ((mask[id / 32] >> id % 32 & 1U) == 0) continue;
      const auto token = static_cast<rlx::TokenId>(id);
      all.push_back(token);
      const std::string_view bytes = masks.tokens().bytes(token);
      if (masks.tokens().is_end(token) || bytes == "\"" || bytes == "}" || bytes == "]") closing.push_back(token);
    }
    if (all.empty()) throw rlx::Error(rlx::ErrorCode::Internal, "no token may follow: " + text);
    const std::vector<rlx::TokenId>& from = i > patience && !closing.empty() ? closing : all;
    const rlx::TokenId token = from[rng() % from.size()];
    if (!m.accept(token)) throw rlx::Error(rlx::ErrorCode::Internal, "a token of the mask is refused: " + text);
    if (m.ended()) return text;
    text += masks.tokens().bytes(token);
  }
  return std::nullopt;
}

}  // namespace

int main() {
  const rlx::TokenTrie trie(vocabulary());
  std::optional<rlx::Grammar> grammar;
  std::optional<rlx::GrammarMasks> masks;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::istringstream words(line.substr(1));
      if (line[0] == 'S') {
        std::string spaces, schema;
        words >> spaces;
        std::getline(words, schema);
        rlx::JsonSchemaOptions options;
        options.whitespace = spaces == "none"     ? rlx::JsonWhitespace::None
                             : spaces == "spaced" ? rlx::JsonWhitespace::Spaced
                                                  : rlx::JsonWhitespace::Flexible;
        grammar = rlx::json_schema_grammar(schema, options);
        masks.emplace(*grammar, trie);
        std::puts("ok");
      } else if (line[0] == 'G') {
        std::uint64_t seed = 0, count = 0;
        words >> seed >> count;
        for (std::uint64_t i = 0; i < count; ++i) {
          const auto text = random_text(masks.value(), seed + i);
          std::puts(text ? quoted(*text).c_str() : "-");
        }
      } else {
        const auto text = rlx::JsonDocument::parse(line.substr(1), "line");
        std::puts(grammar.value().matches(text.root().as_string("text")) ? "1" : "0");
      }
    } catch (const rlx::Error& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '\n') c = ' ';
      std::puts(("error " + text).c_str());
    }
    std::fflush(stdout);
  }
}
