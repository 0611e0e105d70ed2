// Pairs of texts against the rows and truncation of the Python package `tokenizers`
// (scripts/make_encoder_references.py).
#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer.h"
#include "rlx/text/wordpiece.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"

namespace rlx {

TEST_CASE("pairs of texts: recorded ids, types and cuts") {
  const std::string lines = test::read_file(test::source_path("tests/unit/text/pair_cases.jsonl"));
  int num_tokenizers = 0, num_pairs = 0;
  for (std::size_t at = 0; at < lines.size(); ++num_tokenizers) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    at = end + 1;
    const JsonDocument document = JsonDocument::parse(line, "pair_cases.jsonl");
    const std::string name(document.root().get_string("name"));
    CAPTURE(name);
    const std::size_t begin = line.find("\"tokenizer\":") + 12, stop = line.rfind(",\"cases\":");
    const std::unique_ptr<Tokenizer> t =
        tokenizer_from_json(JsonDocument::parse(line.substr(begin, stop - begin), name + ".json"));
    for (const JsonValue& entry : document.root().at("cases").elements("cases")) {
      const std::vector<JsonValue> parts = entry.elements("case");
      REQUIRE(parts.size() == 5);
      const std::string first(parts[0].as_string("first")), second(parts[1].as_string("second"));
      const std::int64_t most = parts[2].as_int("most");
      CAPTURE(first);
      CAPTURE(second);
      CAPTURE(most);
      std::vector<TokenId> ids;
      std::vector<std::int32_t> types;
      for (const JsonValue& v : parts[3].elements("ids")) ids.push_back(static_cast<TokenId>(v.as_int("id")));
      for (const JsonValue& v : parts[4].elements("types"))
        types.push_back(static_cast<std::int32_t>(v.as_int("type")));
      const EncodedPair whole = t->encode_pair(first, second);
      CHECK(whole.num_tokens == static_cast<std::int64_t>(whole.ids.size()));
      const EncodedPair pair = t->encode_pair(first, second, most);
      CHECK(pair.ids == ids);
      CHECK(pair.types == types);
      CHECK(pair.num_tokens == whole.num_tokens);
      ++num_pairs;
    }
  }
  CHECK(num_tokenizers == 6);
  CHECK(num_pairs == 6 * 25 * 5);
}

TEST_CASE("pairs of texts: limits without room, files that say nothing of pairs") {
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  const WordPieceTokenizer t = WordPieceTokenizer::from_vocab(vocab, "vocab.txt");
  const EncodedPair pair = t.encode_pair("a", "b b");
  CHECK(pair.ids == std::vector<TokenId>{2, 5, 3, 6, 6, 3});
  CHECK(pair.types == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(t.encode_pair("", "", 4).ids == std::vector<TokenId>{2, 3, 3});
  const auto text = [&](std::int64_t most) { return test::error_text([&] { (void)t.encode_pair("a", "b", most); }); };
  CHECK(test::contains(text(3), "a limit of 3 tokens leaves no room for two texts besides 3 special tokens"));
  CHECK(test::contains(text(-1), "a limit of -1 tokens"));
  CHECK(text(4).empty());

  const auto of = [](const std::string& processor) {
    const std::string file =
        R"({"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"x":1}},"post_processor":)" + processor + "}";
    return test::error_text(
        [&] { (void)tokenizer_from_json(JsonDocument::parse(file, "t.json"))->encode_pair("x", "x"); });
  };
  const std::string special = R"("special_tokens":{"x":{"id":"x","ids":[1],"tokens":["x"]}})";
  const std::string single = R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],)";
  const std::string a = R"({"Sequence":{"id":"A","type_id":0}})", b = R"({"Sequence":{"id":"B","type_id":1}})";
  CHECK(of(single + R"("pair":[)" + a + "," + b + "]," + special + "}").empty());
  CHECK(of(single + special + "}").empty());
  CHECK(test::contains(of(single + R"("pair":[)" + a + "]," + special + "}"),
                       "t.json: the template for pairs must have each text exactly once"));
  CHECK(test::contains(of(R"({"type":"Sequence","processors":[{"type":"BertProcessing","sep":["x",1],"cls":["x",1]},)"
                          R"({"type":"BertProcessing","sep":["x",1],"cls":["x",1]}]})"),
                       "several post_processors add tokens"));
}

}  // namespace rlx
