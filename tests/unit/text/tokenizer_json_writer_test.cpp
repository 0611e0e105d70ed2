// tokenizer.json of the vocabularies in GGUF files: the same ids and texts as from the GGUF file itself.
#include "rlx/text/tokenizer/tokenizer_json_writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/text/tokenizer.h"
#include "rlx/text/tokenizer/byte_level.h"
#include "rlx/text/tokenizer/gguf_patterns.h"
#include "tests/support/gguf_bytes.h"

namespace rlx {
namespace {

using test::GgufBytes;

// A random vocabulary, and texts that it meets.
class RandomVocabulary {
 public:
  explicit RandomVocabulary(std::uint64_t seed) : rng_(seed) {}

  std::size_t pick(std::size_t n) { return rng_() % n; }
  void special(const std::string& text, std::int32_t type) { add(text, type); }

  std::string random_text() {
    static const std::vector<std::string> pieces{"a",        "b",
                                                 "ab",       " ",
                                                 "  ",       "\n",
                                                 "1",        "23",
                                                 "'s",       "A",
                                                 "\xC3\xA9", "!",
                                                 "...",      "\xE4\xB8\x96",
                                                 "x",        "\t",
                                                 "-",        "</s>",
                                                 "<s>",      "\xF0\x9F\x98\x80",
                                                 "run",      "ning",
                                                 "can't",    "\r\n"};
    std::string out;
    for (std::size_t i = pick(14); i-- > 0;) out += pieces[pick(pieces.size())];
    return out;
  }

  GgufBytes byte_level(std::string_view pre) {
    special("<s>", 3), special("</s>", 3), special("<tool>", 4);
    for (int b = 0; b < 256; ++b) {
      std::string c;
      append_byte_characters(c, std::string(1, static_cast<char>(b)));
      add(c, 1);
    }
    merge_randomly(3);
    GgufBytes g;
    g.text("tokenizer.ggml.model", pre == "gemma4" ? "gemma4" : "gpt2").text("tokenizer.ggml.pre", pre);
    write_tokens(g);
    std::string payload;
    for (const auto& [left, right] : merges_) payload += test::gguf_string(left + " " + right);
    g.array("tokenizer.ggml.merges", GgufKind::String, merges_.size(), payload);
    return ids(g, {{"bos", 0}, {"eos", 1}});
  }
  GgufBytes sentence_pieces(bool gemma) {
    special("<unk>", 2), special("<s>", 3), special("</s>", 3), special("<tool>", 4);
    for (int b = 0; b < 256; ++b) {
      static constexpr char kHex[] = "0123456789ABCDEF";
      add(concat_text("<0x", kHex[b >> 4], kHex[b & 15], ">"), 6);
    }
    const std::size_t first = tokens_.size();
    for (const char* c : {"a", "b", "x", "r", "u", "n", "i", "g", "1", "2", "s", "\xE2\x96\x81", "\xC3\xA9", "A"})
      add(c, 1);
    merge_randomly(first);
    GgufBytes g;
    g.text("tokenizer.ggml.model", gemma ? "gemma4" : "llama");
    write_tokens(g);
    if (gemma) {
      std::string payload;
      for (const auto& [left, right] : merges_) payload += test::gguf_string(left + " " + right);
      g.array("tokenizer.ggml.merges", GgufKind::String, merges_.size(), payload);
    } else {
      write_scores(g);
      g.number<std::uint8_t>("tokenizer.ggml.add_space_prefix", GgufKind::Bool, static_cast<std::uint8_t>(pick(2)));
      g.number<std::uint8_t>("tokenizer.ggml.add_eos_token", GgufKind::Bool, static_cast<std::uint8_t>(pick(2)));
    }
    return ids(g, {{"unknown", 0}, {"bos", 1}, {"eos", 2}});
  }
  GgufBytes word_pieces() {
    special("[PAD]", 3), special("[UNK]", 3), special("[CLS]", 3), special("[SEP]", 3);
    for (const char* t : {"\xE2\x96\x81run", "ning", "\xE2\x96\x81,",
                          "\xE2\x96\x81"
                          "a",
                          "b",
                          "\xE2\x96\x81"
                          "ab",
                          "a", "\xE2\x96\x81!", "\xE2\x96\x81\xE4\xB8\x96",
                          "\xE2\x96\x81"
                          "A",
                          "1",
                          "\xE2\x96\x81"
                          "23"})
      add(t, 1);
    GgufBytes g;
    g.text("tokenizer.ggml.model", "bert");
    write_tokens(g);
    g.number<std::uint8_t>("tokenizer.ggml.normalizer.lowercase", GgufKind::Bool, static_cast<std::uint8_t>(pick(2)));
    return ids(g, {{"padding", 0}, {"unknown", 1}, {"cls", 2}, {"seperator", 3}});
  }
  GgufBytes unigrams() {
    special("<pad>", 3), special("</s>", 3), special("<unk>", 2);
    const std::size_t first = tokens_.size();
    for (const char* c : {"a", "b", "x", "r", "u", "n", "1", "2", "\xE2\x96\x81", "\xC3\xA9", "!"}) add(c, 1);
    merge_randomly(first);
    GgufBytes g;
    g.text("tokenizer.ggml.model", "t5");
    write_tokens(g);
    write_scores(g);
    g.number<std::uint8_t>("tokenizer.ggml.add_space_prefix", GgufKind::Bool, static_cast<std::uint8_t>(pick(2)));
    g.number<std::uint8_t>("tokenizer.ggml.remove_extra_whitespaces", GgufKind::Bool,
                           static_cast<std::uint8_t>(pick(2)));
    return ids(g, {{"padding", 0}, {"eos", 1}, {"unknown", 2}});
  }

 private:
  bool add(const std::string& text, std::int32_t type) {
    if (!known_.insert(text).second) return false;
    tokens_.push_back(text);
    types_.push_back(type);
    return true;
  }
  void merge_randomly(std::size_t first) {
    for (int i = 0; i < 300; ++i) {
      // Copies: the list grows.
      const std::string left = tokens_[first + pick(tokens_.size() - first)],
                        right = tokens_[first + pick(tokens_.size() - first)];
      if (left.size() + right.size() < 12 && add(left + right, 1)) merges_.emplace_back(left, right);
    }
  }
  void write_tokens(GgufBytes& g) {
    std::string texts, types;
    for (const std::string& t : tokens_) texts += test::gguf_string(t);
    for (const std::int32_t t : types_) types += test::number_bytes(t);
    g.array("tokenizer.ggml.tokens", GgufKind::String, tokens_.size(), texts);
    g.array("tokenizer.ggml.token_type", GgufKind::I32, tokens_.size(), types);
  }
  // Different ones.
  void write_scores(GgufBytes& g) {
    std::vector<float> scores;
    for (std::size_t i = 0; i < tokens_.size(); ++i) scores.push_back(-0.25F * static_cast<float>(i));
    std::shuffle(scores.begin(), scores.end(), rng_);
    std::string payload;
    for (const float s : scores) payload += test::number_bytes(s);
    g.array("tokenizer.ggml.scores", GgufKind::F32, scores.size(), payload);
  }
  static GgufBytes ids(GgufBytes& g, std::initializer_list<std::pair<const char*, std::uint32_t>> named) {
    for (const auto& [name, id] : named)
      g.number<std::uint32_t>(concat_text("tokenizer.ggml.", name, "_token_id"), GgufKind::U32, id);
    return g;
  }

  std::mt19937_64 rng_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::set<std::string> known_;
};

void check_same(const GgufBytes& g, RandomVocabulary& texts) {
  const std::string bytes = g.bytes();
  const auto file = GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "m.gguf");
  const std::unique_ptr<Tokenizer> own = tokenizer_from_gguf(*file);
  std::vector<std::string> notes;
  const std::string json = tokenizer_json_of(*file, [&](const std::string& n) { notes.push_back(n); });
  CHECK(notes.empty());
  const std::unique_ptr<Tokenizer> read = tokenizer_from_json(JsonDocument::parse(json, "tokenizer.json"));
  REQUIRE(read->vocab_size() == own->vocab_size());
  CHECK(read->pad_id() == own->pad_id());
  for (TokenId id = 0; id < static_cast<TokenId>(own->vocab_size()); ++id) {
    CAPTURE(id);
    CHECK(read->id_to_token(id) == own->id_to_token(id));
    for (const bool skip : {false, true})
      CHECK(read->decode(std::span(&id, 1), skip) == own->decode(std::span(&id, 1), skip));
  }
  for (int i = 0; i < 60; ++i) {
    const std::string text = texts.random_text(), second = texts.random_text();
    CAPTURE(text);
    const std::vector<TokenId> ids = own->encode(text);
    CHECK(read->encode(text) == ids);
    CHECK(read->encode(text, false) == own->encode(text, false));
    CHECK(read->decode(ids) == own->decode(ids));
    CHECK(read->decode(ids, false) == own->decode(ids, false));
    CHECK(read->encode_pair(text, second).ids == own->encode_pair(text, second).ids);
    CHECK(read->encode_pair(text, second).types == own->encode_pair(text, second).types);
  }
}

}  // namespace

TEST_CASE("tokenizer_json_of: every kind of GGUF vocabulary is read back to the same tokenizer") {
  std::set<const std::string_view*> seen;  // entries with the same patterns are one kind
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
    if (!pre.bytes || !seen.insert(pre.patterns.data()).second) continue;
    CAPTURE(pre.name);
    RandomVocabulary v(7);
    check_same(v.byte_level(pre.name), v);
  }
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    for (const bool gemma : {false, true}) {
      RandomVocabulary v(seed);
      check_same(v.sentence_pieces(gemma), v);
    }
    RandomVocabulary words(seed), unigrams(seed);
    check_same(words.word_pieces(), words);
    check_same(unigrams.unigrams(), unigrams);
  }
}

TEST_CASE("tokenizer_json_of: what the format cannot hold is said") {
  const auto notes_of = [](std::initializer_list<std::string_view> tokens, std::initializer_list<float> scores) {
    GgufBytes g;
    g.text("tokenizer.ggml.model", "llama");
    std::string texts, numbers;
    for (const std::string_view t : tokens) texts += test::gguf_string(t);
    for (const float s : scores) numbers += test::number_bytes(s);
    g.array("tokenizer.ggml.tokens", GgufKind::String, tokens.size(), texts);
    g.array("tokenizer.ggml.scores", GgufKind::F32, scores.size(), numbers);
    g.number<std::uint8_t>("tokenizer.ggml.add_bos_token", GgufKind::Bool, 0);
    const std::string bytes = g.bytes();
    std::string said;
    const std::string json = tokenizer_json_of(*GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "m.gguf"),
                                               [&](const std::string& n) { said += n + "\n"; });
    (void)tokenizer_from_json(JsonDocument::parse(json, "tokenizer.json"));
    return said;
  };
  CHECK(notes_of({"<unk>", "a", "b", "ab"}, {0, -1, -2, -3}).empty());
  CHECK(notes_of({"<unk>", "a", "b", "ab", "a", ""}, {0, -1, -2, -3, -4, -5}).find("2 tokens without text") !=
        std::string::npos);
  CHECK(notes_of({"<unk>", "a", "b", "ab", "ba"}, {0, -1, -2, -3, -3}).find("1 tokens have the score") !=
        std::string::npos);
}

}  // namespace rlx
