// WordPiece on small vocabularies: normalization, splitting, search, added tokens, batching, decoding, invalid input.
#include "rlx/text/wordpiece.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "rlx/base/utf8.h"
#include "rlx/formats/json.h"
#include "tests/support/error_text.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::TempDir;
using Ids = std::vector<TokenId>;

// ids:                      0        1        2        3        4         5      6      7      8        9    10
const std::string kVocabTxt =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##ing\nrun\n##n\n,\n!\ncafe\n中\nα\n##σ\nit\n'\ns\n";

WordPieceTokenizer small(const WordPieceOptions& options = {}) {
  return WordPieceTokenizer::from_vocab(kVocabTxt, "vocab.txt", options);
}

std::string json_text(const std::string& added = "", const std::string& normalizer = "") {
  return R"({"truncation":{"max_length":4,"strategy":"LongestFirst","stride":0},
    "padding":{"strategy":{"Fixed":128},"pad_id":0,"pad_token":"[PAD]"},
    "added_tokens":[{"id":1,"content":"[UNK]","special":true,"normalized":false},
    {"id":2,"content":"[CLS]","special":true,"normalized":false},
    {"id":3,"content":"[SEP]","special":true,"normalized":false})" +
         added + R"(],
    "normalizer":)" +
         (normalizer.empty() ? R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,
                    "strip_accents":null,"lowercase":true})"
                             : normalizer) +
         R"(,
    "pre_tokenizer":{"type":"BertPreTokenizer"},
    "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},
      {"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
      "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},
        "[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
    "decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
    "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
      "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"hello":4,"fox":5,"##es":6,"x":7,"##x":8}}})";
}

WordPieceTokenizer from_json(const std::string& text) {
  return WordPieceTokenizer::from_json(JsonDocument::parse(text, "tokenizer.json"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("wordpiece: words, pieces, unknown words, punctuation") {
  const WordPieceTokenizer t = small();
  CHECK(t.encode("Hello, WORLD!") == Ids{2, 5, 10, 6, 11, 3});
  CHECK(t.encode("Hello", false) == Ids{5});
  CHECK(t.encode("running") == Ids{2, 8, 9, 7, 3});
  CHECK(t.encode("runner") == Ids{2, 1, 3});  // an unknown remainder makes the whole word unknown
  CHECK(t.encode("") == Ids{2, 3});
  CHECK(t.encode(" \t\r\n") == Ids{2, 3});
  CHECK(t.encode("it's") == Ids{2, 16, 17, 18, 3});
  CHECK(t.encode("hello,,hello") == Ids{2, 5, 10, 10, 5, 3});
}

TEST_CASE("wordpiece: normalisation") {
  const WordPieceTokenizer t = small();
  CHECK(t.encode("CAFÉ cafe\xCC\x81") == Ids{2, 12, 12, 3});
  CHECK(t.encode("中中hello") == Ids{2, 13, 13, 5, 3});
  CHECK(t.encode("ΑΣ") == Ids{2, 14, 15, 3});                         // no final sigma
  CHECK(t.encode("he\xE2\x80\x8Bllo he\x01llo") == Ids{2, 5, 5, 3});  // zero width space and control are removed
  CHECK(t.encode("hello\xE3\x80\x80world\xC2\xA0it") == Ids{2, 5, 6, 16, 3});
  CHECK(t.encode(std::string("he\0llo", 6)) == Ids{2, 5, 3});
  CHECK(t.normalize("Ἄ İ\xEF\xBF\xBDx") == "α ix");
  // Canonical order of kept marks: combining class 216 before 226, in whatever order they come.
  CHECK(t.normalize("\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5") == "\xF0\x9D\x85\xA5\xF0\x9D\x85\xAD");

  WordPieceOptions cased;
  cased.lowercase = cased.strip_accents = false;
  CHECK(small(cased).encode("hello Hello") == Ids{2, 5, 1, 3});
  CHECK(small(cased).normalize("É") == "É");
  WordPieceOptions kept;
  kept.strip_accents = false;
  CHECK(small(kept).normalize("İ É") == "i\xCC\x87 é");
}

TEST_CASE("wordpiece: a word of more than max_chars_per_word characters is unknown") {
  WordPieceOptions options;
  options.max_chars_per_word = 5;
  const WordPieceTokenizer t = small(options);
  CHECK(t.encode("hello") == Ids{2, 5, 3});
  CHECK(t.encode("runing") == Ids{2, 1, 3});
  CHECK(t.encode("αααααααα", false) == Ids{1});
  CHECK(small().encode(std::string(100000, 'a'), false) == Ids{1});
}

TEST_CASE("wordpiece: special tokens are split out of the raw text") {
  const WordPieceTokenizer t = small();
  CHECK(t.encode("[CLS]hello[SEP]") == Ids{2, 2, 5, 3, 3});
  CHECK(t.encode("[MASK][MASK]", false) == Ids{4, 4});
  CHECK(t.encode("[mask]", false) == Ids{1, 1, 1});  // case matters
  CHECK(t.encode("[[SEP]", false) == Ids{1, 3});
}

TEST_CASE("wordpiece: added tokens with flags") {
  const WordPieceTokenizer t = from_json(json_text(
      R"(,{"id":9,"content":"<l>","lstrip":true},{"id":10,"content":"<r>","rstrip":true,"normalized":false},
         {"id":11,"content":"ox","single_word":true,"normalized":false},
         {"id":12,"content":"Ça","normalized":true},{"id":13,"content":"<r>!","normalized":false})"));
  CHECK(t.vocab_size() == 14);
  CHECK(t.encode("x <r>  x", false) == Ids{7, 10, 7});
  CHECK(t.encode("<r>!", false) == Ids{13});  // the longest token at a position wins
  CHECK(t.encode("fox ox", false) == Ids{5, 11});
  CHECK(t.encode("x \t<l>x", false) == Ids{7, 9, 7});
  CHECK(t.encode("xÇAx ca", false) == Ids{7, 12, 7, 12});  // matched in normalized text
  CHECK(t.token_to_id("<r>") == 10);
  CHECK(t.id_to_token(12) == "Ça");
  CHECK(t.decode(Ids{2, 5, 6, 12, 3}) == "foxes ca");  // the library also decodes it as it was matched
}

TEST_CASE("wordpiece: padding and truncation stored in tokenizer.json are ignored") {
  const WordPieceTokenizer t = from_json(json_text());
  CHECK(t.encode("hello hello hello hello hello hello") == Ids{2, 4, 4, 4, 4, 4, 4, 3});
  CHECK(t.pad_id() == 0);
  CHECK(t.encode("hello") == Ids{2, 4, 3});
}

TEST_CASE("wordpiece: vocabulary look-ups") {
  const WordPieceTokenizer t = small();
  CHECK(t.vocab_size() == 19);
  CHECK(t.token_to_id("##ing") == 7);
  CHECK_FALSE(t.token_to_id("ing"));
  CHECK(t.id_to_token(13) == "中");
  CHECK_FALSE(t.id_to_token(-1));
  CHECK_FALSE(t.id_to_token(19));
  // CRLF files, no newline at the end, duplicate lines (the last one counts).
  const WordPieceTokenizer crlf =
      WordPieceTokenizer::from_vocab("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\na\r\nb", "v");
  CHECK(crlf.encode("a b", false) == Ids{5, 6});
  CHECK(crlf.vocab_size() == 7);
}

TEST_CASE("wordpiece: batches are padded, cut at the limit, and say so") {
  const WordPieceTokenizer t = small();
  const std::vector<std::string> texts = {"hello", "hello world hello world", ""};
  EncodedBatch b = t.encode_batch(texts);
  CHECK(b.batch == 3);
  CHECK(b.sequence == 6);
  CHECK(b.ids == std::vector<TokenId>{2, 5, 3, 0, 0, 0, 2, 5, 6, 5, 6, 3, 2, 3, 0, 0, 0, 0});
  CHECK(b.mask == std::vector<std::int32_t>{1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  CHECK(b.lengths == std::vector<std::int64_t>{3, 6, 2});
  CHECK(b.notices.empty());
  CHECK(b.ids_i64()[1] == 5);

  BatchOptions limit;
  limit.max_length = 4;
  b = t.encode_batch(texts, limit);
  CHECK(b.sequence == 4);
  CHECK(std::vector<TokenId>(b.ids.begin() + 4, b.ids.begin() + 8) == Ids{2, 5, 6, 3});  // the end token stays
  REQUIRE(b.notices.size() == 1);
  CHECK(b.notices[0].text_index == 1);
  CHECK(b.notices[0].num_tokens == 6);
  CHECK(b.notices[0].text() == "text 2 has 6 tokens and was cut to the model's limit of 4");

  BatchOptions multiple;
  multiple.pad_to_multiple = 4;
  CHECK(t.encode_batch(texts, multiple).sequence == 8);
  multiple.max_length = 7;
  CHECK(t.encode_batch(texts, multiple).sequence == 7);
  CHECK(t.encode_batch({}, limit).ids.empty());

  limit.max_length = 2;
  CHECK(contains(error_text([&] { t.encode_batch(texts, limit); }), "leaves no room"));
  limit.max_length = -1;
  CHECK(contains(error_text([&] { t.encode_batch(texts, limit); }), "leaves no room"));
  multiple.pad_to_multiple = 0;
  CHECK(contains(error_text([&] { t.encode_batch(texts, multiple); }), "pad_to_multiple"));
}

TEST_CASE("wordpiece: decoding joins pieces and tidies punctuation") {
  const WordPieceTokenizer t = small();
  CHECK(t.decode(t.encode("Running hello, world!")) == "running hello, world!");
  CHECK(t.decode(Ids{2, 5, 3}, false) == "[CLS] hello [SEP]");
  CHECK(t.decode(Ids{7}) == "##ing");
  CHECK(contains(error_text([&] { t.decode(Ids{99}); }), "no token has the id 99"));
}

TEST_CASE("wordpiece: invalid UTF-8 is an error that names the byte") {
  const WordPieceTokenizer t = small();
  CHECK(contains(error_text([&] { t.encode("abcdefgh\xFFxyz"); }), "invalid UTF-8 at byte 8 of 12 (0xFF)"));
  CHECK(contains(error_text([&] { t.encode("a\xC3"); }), "byte 1"));
  CHECK(contains(error_text([&] { t.encode("\xED\xA0\x80"); }), "byte 0"));  // a surrogate
  CHECK(contains(error_text([&] { t.encode("\xC0\x80"); }), "byte 0"));      // an overlong form
  CHECK(contains(error_text([&] { t.encode("\xF4\x90\x80\x80"); }), "byte 0"));
  const std::vector<std::string> texts = {"fine", "bad \x80"};
  CHECK(contains(error_text([&] { t.encode_batch(texts); }), "text 2 of 2: invalid UTF-8 at byte 4"));
}

TEST_CASE("utf8: every scalar value survives encoding and decoding") {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    append_utf8(all, c);
  }
  CHECK_FALSE(find_invalid_utf8(all));
  std::size_t at = 0;
  bool equal = true;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    equal &= decode_utf8(all, at) == c;
  }
  CHECK(equal);
  CHECK(at == all.size());
}

TEST_CASE("wordpiece: faulty files are refused with a reason") {
  const auto message = [](const std::string& text) { return error_text([&] { from_json(text); }); };
  const std::string good = json_text();
  CHECK(message(good).empty());
  CHECK(contains(message("{"), "not valid JSON"));
  CHECK(contains(message("[]"), "expected an object with the key \"model\""));
  CHECK(contains(message(replaced(good, R"("type":"WordPiece","unk)", R"("type":"BPE","unk)")), "the model \"BPE\""));
  CHECK(contains(message(replaced(good, "BertNormalizer", "NFC")), "the normalizer \"NFC\""));
  CHECK(contains(message(replaced(good, "BertPreTokenizer", "ByteLevel")), "the pre_tokenizer \"ByteLevel\""));
  CHECK(contains(message(replaced(good, "TemplateProcessing", "RobertaProcessing")),
                 "the post_processor \"RobertaProcessing\""));
  CHECK(contains(message(replaced(good, R"("fox":5)", R"("fox":4)")), "\"hello\" and \"fox\" share the id 4"));
  CHECK(contains(message(replaced(good, R"("fox":5)", R"("fox":2000000000)")), "\"fox\" has the id 2000000000"));
  CHECK(contains(message(replaced(good, R"("fox":5)", R"("fox":-1)")), "\"fox\" has the id -1"));
  CHECK(contains(message(replaced(good, R"("fox":5)", R"("fox":"5")")), "\"fox\" must be an integer, got a string"));
  CHECK(contains(message(replaced(good, R"("ids":[2])", R"("ids":[77])")), "adds the id 77"));
  CHECK(contains(message(replaced(good, R"("unk_token":"[UNK]")", R"("unk_token":"<unk>")")),
                 "lacks the token \"<unk>\""));
  CHECK(contains(message(json_text(R"(,{"id":5,"content":"cat"})")), "has the id 5 of the token \"fox\""));
  CHECK(contains(message(json_text(R"(,{"id":9,"content":"fox"})")), "the vocabulary gives it 5"));
  CHECK(contains(message(json_text(R"(,{"id":9,"content":""})")), "id 9 is empty"));

  CHECK(contains(error_text([] { WordPieceTokenizer::from_vocab("", "vocab.txt"); }),
                 "vocab.txt: the vocabulary is empty"));
  CHECK(
      contains(error_text([] { WordPieceTokenizer::from_vocab("a\nb\n", "vocab.txt"); }), "lacks the token \"[UNK]\""));
  CHECK(contains(error_text([] { WordPieceTokenizer::from_vocab("a\n\xFF\n", "vocab.txt"); }),
                 "invalid UTF-8 at byte 2"));
}

TEST_CASE("load_tokenizer: tokenizer.json first, then vocab.txt with its settings") {
  const TempDir folder;
  CHECK(contains(error_text([&] { load_tokenizer(folder.path()); }), "has neither tokenizer.json nor vocab.txt"));
  CHECK(contains(error_text([&] { load_tokenizer(folder.path() + "/absent"); }), "has neither"));
  folder.write("vocab.txt", kVocabTxt);
  CHECK(load_tokenizer(folder.path())->encode("Hello") == Ids{2, 5, 3});
  folder.write("tokenizer_config.json", R"({"do_lower_case": false, "sep_token": {"content": "[MASK]"}})");
  CHECK(load_tokenizer(folder.path())->encode("Hello hello") == Ids{2, 1, 5, 4});
  folder.write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  CHECK(contains(error_text([&] { load_tokenizer(folder.path()); }),
                 "\"do_lower_case\" must be true or false, got a string"));
  folder.write("tokenizer.json", json_text());
  CHECK(load_tokenizer(folder.path())->encode("Hello") == Ids{2, 4, 3});
}

TEST_CASE("wordpiece: the code points whose ids differ from the Python library are those assigned after its tables") {
  const JsonDocument document = JsonDocument::parse(json_text(), "tokenizer.json");
  const WordPieceTokenizer t = WordPieceTokenizer::from_json(document);
  const std::string list = test::read_file(test::source_path("tests/unit/text/wordpiece_newer_code_points.txt"));
  int num_points = 0;
  std::vector<unsigned> plain;
  unsigned previous = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find('\n', at), list.size());
    const std::string line = list.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t dash = line.find('-');
    const unsigned first = static_cast<unsigned>(std::stoul(line, nullptr, 16));
    const unsigned last =
        dash == std::string::npos ? first : static_cast<unsigned>(std::stoul(line.substr(dash + 1), nullptr, 16));
    CHECK(first > previous);
    previous = last;
    for (unsigned c = first; c <= last; ++c, ++num_points) {
      std::string text = "x";
      append_utf8(text, c);
      text += "x";
      // Removed (x + ##x) or split off (x, unknown, x). A library that does not know these characters makes "x?x" one
      // unknown word.
      const Ids ids = t.encode(text, false);
      if (ids != Ids{7, 8} && ids != Ids{7, 1, 7}) plain.push_back(c);
    }
  }
  CHECK(num_points == 568);
  // Two characters that the library has in the category of early Unicode versions.
  CHECK(plain == std::vector<unsigned>{0x166D, 0x1734});
}

}  // namespace rlx
