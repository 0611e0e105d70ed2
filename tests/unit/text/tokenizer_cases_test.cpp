// Small tokenizer.json files of every kind against ids and texts of the Python package `tokenizers`.
// tests/parity/make_tokenizer_cases.py writes them; tokenizers_compare.py compares real files and many more texts.
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/formats/json.h"
#include "rlx/text/stream_decoder.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/paths.h"

namespace rlx {
namespace {

// The concatenated parts of a streaming decode; each must have whole characters.
std::string streamed_text(const Tokenizer& t, const std::vector<TokenId>& ids, bool skip_special_tokens) {
  StreamDecoder stream(t, skip_special_tokens);
  std::string out;
  for (const TokenId id : ids) {
    const std::string piece = stream.push(id);
    CHECK_FALSE(find_invalid_utf8(piece));
    out += piece;
  }
  return out + stream.flush();
}

}  // namespace

TEST_CASE("tokenizer.json: recorded ids, texts and streams of every component") {
  const std::string lines = test::read_file(test::source_path("tests/unit/text/tokenizer_cases.jsonl"));
  int num_files = 0, num_texts = 0;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const JsonDocument line =
        JsonDocument::parse(std::string_view(lines).substr(at, end - at), "tokenizer_cases.jsonl");
    at = end + 1;
    const std::string name(line.root().get_string("name"));
    CAPTURE(name);
    // The tokenizer is a value in the line. As a separate document it is the text between its braces.
    const std::string_view text = std::string_view(lines).substr(0, end);
    const std::size_t begin = text.rfind("\"tokenizer\":") + 12, stop = text.rfind(",\"cases\":");
    const std::unique_ptr<Tokenizer> t =
        tokenizer_from_json(JsonDocument::parse(text.substr(begin, stop - begin), name + ".json"));
    for (const JsonValue& entry : line.root().at("cases").elements("cases")) {
      const std::vector<JsonValue> parts = entry.elements("case");
      REQUIRE(parts.size() == 4);
      std::vector<TokenId> want;
      for (const JsonValue& id : parts[1].elements("ids")) want.push_back(static_cast<TokenId>(id.as_int("id")));
      const std::string input(parts[0].as_string("text"));
      CAPTURE(input);
      CHECK(t->encode(input) == want);
      CHECK(t->decode(want) == parts[2].as_string("decoded"));
      CHECK(t->decode(want, false) == parts[3].as_string("kept"));
      CHECK(streamed_text(*t, want, true) == parts[2].as_string("decoded"));
      CHECK(streamed_text(*t, want, false) == parts[3].as_string("kept"));
      ++num_texts;
    }
    ++num_files;
  }
  CHECK(num_files >= 45);
  CHECK(num_texts >= 20 * num_files);
}

}  // namespace rlx
