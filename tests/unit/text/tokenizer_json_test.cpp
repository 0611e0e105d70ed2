// tokenizer.json: faulty and adversarial files are refused quickly with a reason, and long texts take linear time.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <functional>

#include "rlx/formats/json.h"
#include "rlx/text/stream_decoder.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& text) {
  return tokenizer_from_json(JsonDocument::parse(text, "t.json"));
}

// A tokenizer.json with a model and other parts, each with a comma before it.
std::string tokenizer_text(const std::string& model, const std::string& parts = "") {
  return concat_text(R"({"model":)", model, parts, "}");
}

std::string bpe_text(const std::string& vocab, const std::string& merges, const std::string& options = "") {
  return concat_text(R"({"type":"BPE","vocab":{)", vocab, R"(},"merges":[)", merges, "]", options, "}");
}

const std::string kBpeVocab = R"("a":0,"b":1,"ab":2,"aa":3,"aaaa":4,"c":5,"abc":6)";
const std::string kBpeMerges = R"("a b","a a",["aa","aa"],["ab","c"])";
const std::string kUnigramText = R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1.5],["ab",-2]]})";

std::string load_message(const std::string& text) {
  return error_text([&] { (void)read_tokenizer(text); });
}

double seconds_taken(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("tokenizer.json: faulty models are refused with a reason") {
  CHECK(load_message(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges))).empty());
  CHECK(contains(load_message("[]"), "\"model\""));
  CHECK(contains(load_message(R"({"model":{"type":"WordLevel","vocab":{"a":0}}})"),
                 "the model \"WordLevel\" is not supported"));
  CHECK(contains(load_message(tokenizer_text(bpe_text("", ""))), "the vocabulary is empty"));
  CHECK(
      contains(load_message(tokenizer_text(bpe_text(R"("a":0,"b":0)", ""))), "tokens \"a\" and \"b\" share the id 0"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(R"("a":0,"b":4000000000)", ""))),
                 "token \"b\" has the id 4000000000"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(R"("a":0,"b":-1)", ""))), "token \"b\" has the id -1"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(R"("a":0.5)", ""))), "must be an integer"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"("a x")"))),
                 "merge 0 of \"a\" and \"x\": the vocabulary lacks \"x\""));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"("b a")"))), "the vocabulary lacks \"ba\""));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"("ab")"))),
                 "expected two tokens with a space between"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"("a b c")"))),
                 "expected two tokens with a space between"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"(["a"])"))), "must be 2 strings, got 1"));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, R"(["a",1])"))), "must be a string"));
  CHECK(
      contains(load_message(tokenizer_text(bpe_text(kBpeVocab, "", R"(,"unk_token":"?")"))), "lacks the token \"?\""));
  CHECK(contains(load_message(tokenizer_text(bpe_text(kBpeVocab, "", R"(,"dropout":0.1)"))), "drops merges at random"));
  CHECK(contains(load_message(tokenizer_text(R"({"type":"BPE","vocab":{"a":0}})")), "missing key \"merges\""));

  CHECK(load_message(tokenizer_text(kUnigramText)).empty());
  CHECK(contains(load_message(tokenizer_text(R"({"type":"Unigram","vocab":[]})")), "the vocabulary is empty"));
  CHECK(contains(load_message(tokenizer_text(R"({"type":"Unigram","unk_id":7,"vocab":[["a",0]]})")),
                 "unk_id is 7 of 1 pieces"));
  CHECK(contains(load_message(tokenizer_text(R"({"type":"Unigram","vocab":[["a"]]})")), "piece 0 must be a pair"));
  CHECK(contains(load_message(tokenizer_text(R"({"type":"Unigram","vocab":[["a","b"]]})")),
                 "\"score\" must be a number"));
  const std::unique_ptr<Tokenizer> no_unknown =
      read_tokenizer(tokenizer_text(R"({"type":"Unigram","vocab":[["a",0]]})"));
  CHECK(no_unknown->encode("aa") == Ids{0, 0});
  CHECK(contains(error_text([&] { (void)no_unknown->encode("ax"); }), "a character that no token covers"));
}

TEST_CASE("tokenizer.json: components that are not known or do not fit are named") {
  const auto with = [&](const std::string& part) {
    return load_message(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges), "," + part));
  };
  CHECK(contains(with(R"("normalizer":{"type":"Rot13"})"), "the normalizer \"Rot13\" is not supported"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"UnicodeScripts"})"),
                 "the pre_tokenizer \"UnicodeScripts\" is not supported"));
  CHECK(contains(with(R"("decoder":{"type":"Upper"})"), "the decoder \"Upper\" is not supported"));
  CHECK(contains(with(R"("post_processor":{"type":"Alpaca"})"), "the post_processor \"Alpaca\" is not supported"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Eaten"})"), "\"Eaten\""));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"),
                 "the pattern \"(a\" is not valid"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a&&b]"},"behavior":"Isolated"})"),
                 "has a class inside a class"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a\\b"},"behavior":"Isolated"})"),
                 "has a word boundary"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\p{Klingon}"},"behavior":"Isolated"})"),
                 "is not valid"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"ab"})"), "must be one character"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"Metaspace","add_prefix_space":false,"prepend_scheme":"always"})"),
                 "add_prefix_space is false"));
  CHECK(contains(with(R"("pre_tokenizer":{"type":"FixedLength","length":0})"), "the length 0"));
  CHECK(contains(with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAA"})"), "is not base64"));
  CHECK(contains(with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})"), "has a trie of"));
  CHECK(contains(with(R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"), "\"start\" is -1"));
  CHECK(contains(with(R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",1],"cls":["<s>",0]})"),
                 "lacks the token \"<s>\""));
  CHECK(contains(with(R"("added_tokens":[{"id":9,"content":"a"}])"), "the vocabulary gives it 0"));
  CHECK(contains(with(R"("added_tokens":[{"id":0,"content":"z"}])"), "has the id 0 of the token \"a\""));
  const std::string long_text(5000, 'x');
  CHECK(contains(with(R"("added_tokens":[{"id":9,"content":")" + long_text + "\"}]"), "has 5000 bytes"));
  std::string steps;
  for (int i = 0; i < 65; ++i) steps += concat_text(i == 0 ? "" : ",", R"({"type":"NFC"})");
  CHECK(contains(with(concat_text(R"("normalizer":{"type":"Sequence","normalizers":[)", steps, "]}")),
                 "more than 64 steps"));
}

TEST_CASE("tokenizer.json: hostile rules cost an error, neither memory nor time") {
  // Each of 60 steps doubles the length.
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += concat_text(i == 0 ? "" : ",", R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})");
  }
  const std::unique_ptr<Tokenizer> grows =
      read_tokenizer(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges),
                                    concat_text(R"(,"normalizer":{"type":"Sequence","normalizers":[)", steps, "]}")));
  CHECK(contains(error_text([&] { (void)grows->encode("aaaaaaaa"); }), "the normaliser turned a text"));
  // A pattern with exponential backtracking.
  const std::unique_ptr<Tokenizer> slow = read_tokenizer(tokenizer_text(
      bpe_text(kBpeVocab, kBpeMerges),
      R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a|aa|b?a)+[cd]"},"behavior":"Isolated"})"));
  CHECK(slow->encode("aabaac") == Ids{0, 2, 3, 5});
  CHECK(seconds_taken([&] {
          CHECK(contains(error_text([&] { (void)slow->encode(std::string(400, 'a') + "b"); }), "needs too many steps"));
        }) < 20);
  // Cyclic merges: a and b become ab, which is merged into its own parts.
  const std::unique_ptr<Tokenizer> cyclic = read_tokenizer(
      tokenizer_text(bpe_text(R"("a":0,"b":1,"ab":2,"aba":3,"abab":4)", R"("ab ab","ab a","a b","aba b")")));
  CHECK(cyclic->encode("ababab") == Ids{4, 2});
}

TEST_CASE("tokenizer.json: a decoder that makes much text of little is refused") {
  const std::string doubles = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})",
                    by_pattern = R"({"type":"Replace","pattern":{"Regex":"a"},"content":"aa"})",
                    fuse = R"({"type":"Fuse"})";
  for (const std::string& first : {doubles, by_pattern, fuse})
    for (const std::string& step : {doubles, by_pattern}) {
      std::string steps = first;
      for (int i = 0; i < 40; ++i) steps += "," + step;
      const std::unique_ptr<Tokenizer> t = read_tokenizer(tokenizer_text(
          bpe_text(kBpeVocab, kBpeMerges), concat_text(R"(,"decoder":{"type":"Sequence","decoders":[)", steps, "]}")));
      const std::string said = error_text([&] { (void)t->decode(t->encode("aaaa")); });
      CHECK_MESSAGE(contains(said, "makes far more text than its tokens have"), said);
    }
}

TEST_CASE("tokenizer.json: a word of a million characters takes no longer than its length times its logarithm") {
  const std::unique_ptr<Tokenizer> t = read_tokenizer(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges)));
  CHECK(t->encode("aaaaaab") == Ids{4, 0, 2});
  const std::string many(1000000, 'a');
  std::vector<TokenId> ids;
  CHECK(seconds_taken([&] { ids = t->encode(many); }) < 30);
  CHECK(ids == Ids(250000, 4));
  const std::unique_ptr<Tokenizer> u = read_tokenizer(tokenizer_text(kUnigramText));
  CHECK(seconds_taken([&] { ids = u->encode(many); }) < 30);
  CHECK(ids == Ids(1000000, 1));
  // Marks in descending combining class, for which an insertion sort would need hours.
  const std::unique_ptr<Tokenizer> nfd =
      read_tokenizer(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges), R"(,"normalizer":{"type":"NFC"})"));
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i) marks += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";
  CHECK(seconds_taken([&] { ids = nfd->encode(marks); }) < 30);
}

TEST_CASE("tokenizer.json: long and short words are merged alike") {
  // The pair scan for short words and the heap for long ones: the same text, split where nothing merges across.
  const std::unique_ptr<Tokenizer> t = read_tokenizer(tokenizer_text(bpe_text(kBpeVocab, kBpeMerges)));
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::string whole;
    Ids want;
    for (int part = 0; part < 12; ++part) {
      std::string piece;
      for (std::uint32_t i = 0; i < 1 + state % 11; ++i) {
        state = state * 1664525u + 1013904223u;
        piece += "aaab"[state >> 30];
      }
      piece += 'c';
      whole += piece;  // no token begins with c or continues after one
      const Ids ids = t->encode(piece);
      want.insert(want.end(), ids.begin(), ids.end());
    }
    CHECK(t->encode(whole) == want);
  }
}

TEST_CASE("StreamDecoder: pieces never end inside a character") {
  // The bytes of two characters in three tokens: C3 A9 F0 9F | 98 | 80.
  const std::unique_ptr<Tokenizer> t = read_tokenizer(
      tokenizer_text(bpe_text(R"("Ã©ðŁ":0,"ĺ":1,"Ģ":2,"!":3,"<s>":4)", ""),
                     R"(,"added_tokens":[{"id":4,"content":"<s>","special":true}],"decoder":{"type":"ByteLevel"})"));
  StreamDecoder stream(*t);
  CHECK(stream.push(0) == "é");
  CHECK(stream.push(1).empty());
  CHECK(stream.push(4).empty());
  CHECK(stream.push(2) == "\xF0\x9F\x98\x80");
  CHECK(stream.push(0) == "é");
  CHECK(stream.push(3) == "\xEF\xBF\xBD!");
  CHECK(stream.push(1) == "\xEF\xBF\xBD");
  CHECK(stream.push(0) == "é");
  CHECK(stream.flush() == "\xEF\xBF\xBD");
  CHECK(stream.flush().empty());
  CHECK(t->decode(Ids{0, 1, 2}) == "é\xF0\x9F\x98\x80");
  StreamDecoder with_special(*t, false);
  CHECK(with_special.push(4) == "<s>");
}

}  // namespace rlx
