// Tokenizers from GGUF metadata: the meaning of the keys, and the errors of keys that do not fit.
#include <doctest/doctest.h>

#include "rlx/formats/gguf.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/error_text.h"
#include "tests/support/gguf_bytes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
using test::GgufBytes;
using Ids = std::vector<TokenId>;

GgufBytes& add_strings(GgufBytes& g, std::string_view key, std::initializer_list<std::string_view> values) {
  std::string payload;
  for (const std::string_view v : values) payload += test::gguf_string(v);
  return g.array(key, GgufKind::String, values.size(), payload);
}

template <class T>
GgufBytes& add_numbers(GgufBytes& g, std::string_view key, GgufKind kind, std::initializer_list<T> values) {
  std::string payload;
  for (const T v : values) payload += test::number_bytes(v);
  return g.array(key, kind, values.size(), payload);
}

std::unique_ptr<Tokenizer> read_gguf(const GgufBytes& g) {
  const std::string bytes = g.bytes();
  const auto file = GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "m.gguf");
  return tokenizer_from_gguf(*file);  // keeps no reference to the file
}

std::string message_of_gguf(const GgufBytes& g) {
  return error_text([&] { (void)read_gguf(g); });
}

GgufBytes gpt2_file(std::string_view pre = "qwen2") {
  GgufBytes g;
  g.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
  add_strings(g, "tokenizer.ggml.tokens", {"a", "b", "ab", "Ġ", "Ġab", "<|end|>", "1"});
  add_numbers<std::int32_t>(g, "tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 1, 1, 3, 1});
  add_strings(g, "tokenizer.ggml.merges", {"a b", "Ġ ab"});
  return g;
}

GgufBytes llama_file() {
  GgufBytes g;
  g.text("tokenizer.ggml.model", "llama");
  add_strings(g, "tokenizer.ggml.tokens",
              {"<unk>", "<s>", "</s>", "a", "b", "ab", "\xE2\x96\x81",
               "\xE2\x96\x81"
               "ab",
               "ba"});
  add_numbers<float>(g, "tokenizer.ggml.scores", GgufKind::F32, {0, 0, 0, -9, -9, -2, -9, -1, -1.5f});
  add_numbers<std::int32_t>(g, "tokenizer.ggml.token_type", GgufKind::I32, {2, 3, 3, 1, 1, 1, 1, 1, 1});
  g.number<std::uint32_t>("tokenizer.ggml.bos_token_id", GgufKind::U32, 1);
  g.number<std::uint32_t>("tokenizer.ggml.eos_token_id", GgufKind::U32, 2);
  return g;
}

}  // namespace

TEST_CASE("tokenizer_from_gguf: byte-level BPE") {
  const std::unique_ptr<Tokenizer> t = read_gguf(gpt2_file());
  CHECK(t->encode("ab ab<|end|>11") == Ids{2, 4, 5, 6, 6});
  CHECK(t->decode(Ids{2, 4, 5, 6}) == "ab ab1");
  CHECK(t->decode(Ids{2, 5}, false) == "ab<|end|>");
  CHECK(t->prefix_ids().empty());
  CHECK(t->vocab_size() == 7);
  // llama-bpe puts the BOS token before a text if the file does not say otherwise.
  CHECK(contains(message_of_gguf(gpt2_file("llama-bpe")), "tokenizer.ggml.bos_token_id"));
  GgufBytes g = gpt2_file("llama-bpe");
  g.number<std::uint32_t>("tokenizer.ggml.bos_token_id", GgufKind::U32, 5);
  CHECK(read_gguf(g)->encode("ab") == Ids{5, 2});
}

TEST_CASE("tokenizer_from_gguf: SentencePiece by scores") {
  const std::unique_ptr<Tokenizer> t = read_gguf(llama_file());
  CHECK(t->encode("ab") == Ids{1, 7});
  CHECK(t->encode("aba b") == Ids{1, 6, 3, 8, 6, 4});  // "ba" has the better score than "ab"
  CHECK(t->encode("x", false) == Ids{6, 0});           // no byte tokens: the unknown token
  CHECK(t->decode(t->encode("ab ab")) == "ab ab");
  GgufBytes g = llama_file();
  g.number<std::uint8_t>("tokenizer.ggml.add_space_prefix", GgufKind::Bool, 0);
  g.number<std::uint8_t>("tokenizer.ggml.add_bos_token", GgufKind::Bool, 0);
  g.number<std::uint8_t>("tokenizer.ggml.add_eos_token", GgufKind::Bool, 1);
  CHECK(read_gguf(g)->encode("ab") == Ids{5, 2});
}

TEST_CASE("tokenizer_from_gguf: WordPiece with marks at beginnings of words") {
  GgufBytes g;
  g.text("tokenizer.ggml.model", "bert");
  add_strings(g, "tokenizer.ggml.tokens",
              {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81run", "ning", "\xE2\x96\x81,"});
  for (const auto& [name, id] : {std::pair("unknown", 1u), std::pair("cls", 2u), std::pair("seperator", 3u)}) {
    g.number<std::uint32_t>(concat_text("tokenizer.ggml.", name, "_token_id"), GgufKind::U32, id);
  }
  const std::unique_ptr<Tokenizer> t = read_gguf(g);
  CHECK(t->encode("Running, run x") == Ids{2, 4, 5, 6, 4, 1, 3});
  CHECK(t->token_to_id("##ning") == 5);
}

TEST_CASE("tokenizer_from_gguf: Unigram") {
  GgufBytes g;
  g.text("tokenizer.ggml.model", "t5");
  add_strings(g, "tokenizer.ggml.tokens",
              {"<pad>", "</s>", "<unk>", "\xE2\x96\x81", "a",
               "\xE2\x96\x81"
               "a",
               "aa"});
  add_numbers<float>(g, "tokenizer.ggml.scores", GgufKind::F32, {0, 0, 0, -2, -3, -4, -3.5f});
  add_numbers<std::int32_t>(g, "tokenizer.ggml.token_type", GgufKind::I32, {3, 3, 2, 1, 1, 1, 1});
  g.number<std::uint32_t>("tokenizer.ggml.eos_token_id", GgufKind::U32, 1);
  g.number<std::uint32_t>("tokenizer.ggml.unknown_token_id", GgufKind::U32, 2);
  g.number<std::uint8_t>("tokenizer.ggml.remove_extra_whitespaces", GgufKind::Bool, 1);
  const std::unique_ptr<Tokenizer> t = read_gguf(g);
  CHECK(t->encode(" aa   axx ") == Ids{3, 6, 5, 2, 1});
  CHECK(t->decode(Ids{3, 6, 5, 1}) == "aa a");
}

TEST_CASE("tokenizer_from_gguf: what does not fit is named") {
  GgufBytes none;
  CHECK(contains(message_of_gguf(none), "tokenizer.ggml.model"));
  none.text("tokenizer.ggml.model", "rwkv");
  add_strings(none, "tokenizer.ggml.tokens", {"a"});
  CHECK(contains(message_of_gguf(none), "the tokeniser \"rwkv\" (tokenizer.ggml.model) is not supported"));
  CHECK(contains(message_of_gguf(gpt2_file("klingon-bpe")), "the pre-tokeniser \"klingon-bpe\""));

  GgufBytes g;
  g.text("tokenizer.ggml.model", "gpt2");
  add_strings(g, "tokenizer.ggml.tokens", {"a", "b"});
  CHECK(contains(message_of_gguf(g), "tokenizer.ggml.merges"));
  add_strings(g, "tokenizer.ggml.merges", {"a b"});
  CHECK(contains(message_of_gguf(g), "merge 0 (\"a b\") has a token that is not in the vocabulary"));

  g = {};
  g.text("tokenizer.ggml.model", "llama");
  add_strings(g, "tokenizer.ggml.tokens", {"a", "\xFF"});
  CHECK(contains(message_of_gguf(g), "token 1 is not valid UTF-8"));

  g = {};
  g.text("tokenizer.ggml.model", "llama");
  add_strings(g, "tokenizer.ggml.tokens", {"a", "b"});
  add_numbers<float>(g, "tokenizer.ggml.scores", GgufKind::F32, {0});
  CHECK(contains(message_of_gguf(g), "\"tokenizer.ggml.scores\" has 1 elements for 2 tokens"));

  g = llama_file();
  CHECK(message_of_gguf(g).empty());
}

TEST_CASE("tokenizer_from_gguf: special tokens that the vocabulary lacks are left out") {
  for (const char* name : {"padding", "eos", "bos", "unknown", "seperator", "cls", "mask"})
    for (const std::int64_t id : {std::int64_t{77}, std::int64_t{0xFFFFFFFF}, std::int64_t{-1}}) {
      CAPTURE(name);
      CAPTURE(id);
      GgufBytes g;
      g.text("tokenizer.ggml.model", "llama");
      add_strings(g, "tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
      add_numbers<float>(g, "tokenizer.ggml.scores", GgufKind::F32, {0, 0, 0, -9});
      for (const auto& [key, good] : {std::pair("unknown", 0), std::pair("bos", 1), std::pair("eos", 2)})
        if (std::string_view(key) != name)
          g.number<std::uint32_t>(concat_text("tokenizer.ggml.", key, "_token_id"), GgufKind::U32,
                                  static_cast<std::uint32_t>(good));
      g.number<std::uint8_t>("tokenizer.ggml.add_space_prefix", GgufKind::Bool, 0);
      g.number<std::int64_t>(concat_text("tokenizer.ggml.", name, "_token_id"), GgufKind::I64, id);
      const bool bos = std::string_view(name) != "bos";
      CHECK(read_gguf(g)->encode("a") == (bos ? Ids{1, 3} : Ids{3}));
      const std::string bytes = g.bytes();
      const auto file = GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "m.gguf");
      const std::vector<std::string> problems = special_token_problems(*file);
      REQUIRE(problems.size() == 1);
      CHECK(problems[0] == concat_text("m.gguf: tokenizer.ggml.", name, "_token_id is ", id,
                                       ", but there are 4 tokens: the model is used without this token"));
    }
}

}  // namespace rlx
