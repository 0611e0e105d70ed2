// Model files that are something else: what failed downloads leave behind is named by every reader.
#include "rlx/formats/foreign_file.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rlx/formats/encoding_error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/generation/grammar.h"
#include "rlx/tensor/block_search.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("foreign files: pointers of Git LFS, pages and UTF-16 are named") {
  const std::string lfs =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef0123456789abcdef\nsize 123456\n";
  struct Case {
    std::string content, what;
  };
  for (const Case& c : {Case{lfs, "this is a Git LFS pointer"},
                        Case{"\n<!DOCTYPE HTML>\n<html><body>Sign in</body></html>", "this is an HTML page"},
                        Case{"<html lang=en>\n<body></body></html>", "this is an HTML page"},
                        Case{"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "this is an XML text"},
                        Case{std::string("\xFF\xFE{\0}\0", 6) + std::string(20, '\0'), "this is text in UTF-16"}}) {
    CAPTURE(c.what);
    const test::TempDir dir;
    const bool utf16 = contains(c.what, "UTF-16");
    const std::string file = dir.write("model.gguf", c.content);
    CHECK(contains(error_text([&] { (void)GgufFile::open(file); }), file + ": " + c.what));
    CHECK(contains(error_text([&] { (void)JsonDocument::read(file); }), file + ": not JSON: " + c.what));
    if (utf16) continue;  // FF FE may begin the length of a header
    const std::string one = dir.write("model.safetensors", c.content);
    CHECK(contains(error_text([&] { (void)SafetensorsFile::open(one); }), one + ": " + c.what));
    const test::TempDir shards;
    shards.write("model.safetensors.index.json", R"({"weight_map": {"a": "model-1.safetensors"}})");
    const std::string shard = shards.write("model-1.safetensors", c.content);
    CHECK(contains(error_text([&] { (void)SafetensorsFolder::open(shards.path()); }), shard + ": " + c.what));
  }
  CHECK_FALSE(foreign_file("{\"a\": 1}").has_value());
  CHECK_FALSE(foreign_file("").has_value());
  CHECK_FALSE(foreign_file("version 1 of the text").has_value());
}

TEST_CASE("foreign files: a byte order mark before a text is no part of it") {
  const std::string bom = "\xEF\xBB\xBF";
  CHECK(JsonDocument::parse(bom + "{\"a\": 3}", "t").root_object().get_int("a") == 3);
  CHECK(JsonDocument::parse(bom + "17", "t").root().as_int("t") == 17);
  CHECK(contains(error_text([&] { (void)JsonDocument::parse(bom, "t"); }), "not valid JSON"));
  const test::TempDir dir;
  CHECK(JsonDocument::read(dir.write("a.json", bom + "[1]")).root().size() == 1);
  CHECK(Grammar::from_gbnf(bom + "root ::= \"a\"").matches("a"));
  dir.write("vocab.txt", bom + "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  CHECK(load_tokenizer(dir.path())->token_to_id("[PAD]") == 0);
  CHECK(without_bom("\xEF\xBB") == "\xEF\xBB");
}

TEST_CASE("encoding errors: amplitudes that a type cannot hold are told, others are not") {
  std::vector<float> x(2048);
  std::uint32_t state = 1;
  for (float& v : x) {  // roughly normal
    v = 0;
    for (int i = 0; i < 12; ++i) v += static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24F;
    v -= 6;
  }
  struct Range {
    GgufType type;
    double low, high;  // amplitudes that must be fine
  };
  for (const Range& r :
       {Range{GgufType::Q4_0, 1e-6, 1e5}, Range{GgufType::Q4_1, 1e-6, 1e4}, Range{GgufType::Q5_0, 1e-5, 1e5},
        Range{GgufType::Q5_1, 1e-5, 1e4}, Range{GgufType::Q8_0, 1e-4, 1e6}, Range{GgufType::Q2_K, 1e-6, 1e5},
        Range{GgufType::Q3_K, 1e-5, 1e6}, Range{GgufType::Q4_K, 1e-5, 1e6}, Range{GgufType::Q5_K, 1e-4, 1e6},
        Range{GgufType::Q6_K, 1e-3, 1e6}}) {
    const GgufTypeInfo& info = gguf_type_info(r.type);
    CAPTURE(info.name);
    for (const double amplitude : {1e-30, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1.0, 1e3, 1e4, 1e5, 1e6, 1e8, 1e30}) {
      CAPTURE(amplitude);
      std::vector<float> scaled;
      for (const float v : x) scaled.push_back(v * static_cast<float>(amplitude));
      std::vector<std::byte> bytes(gguf_size_bytes(r.type, std::vector<std::int64_t>{8, 256}));
      search_blocks(info.scheme, scaled, {}, bytes);
      const EncodingError error = encoding_error(r.type, scaled, bytes);
      const std::string problem = encoding_problem(r.type, error);
      // Measured once more, by hand.
      std::vector<float> decoded(x.size());
      decode_gguf(r.type, bytes, decoded);
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        difference += std::pow(double{decoded[i]} - double{scaled[i]}, 2);
        norm += std::pow(double{scaled[i]}, 2);
      }
      CHECK(error.relative() == doctest::Approx(std::sqrt(difference / norm)));
      CHECK(problem.empty() == (error.relative() <= usual_encoding_error(r.type)));
      if (amplitude >= r.low && amplitude <= r.high) CHECK(problem.empty());
      if (amplitude <= 1e-8 || amplitude >= 1e30) CHECK(contains(problem, "the relative error of"));
    }
  }
}

}  // namespace rlx
