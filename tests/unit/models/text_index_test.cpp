// Indexes of texts: what a search finds, what an update reads and embeds, and files that were damaged or made to harm.
#include "rlx/models/text_index.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "rlx/formats/mapped_file.h"
#include "rlx/models/search/index_file.h"
#include "rlx/models/search/vector_rows.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/tensor/half.h"
#include "tests/support/error_text.h"
#include "tests/support/index_bytes.h"
#include "tests/support/needs.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

using namespace rlx;
using namespace rlx::test;

namespace {

// A folder of texts, the index of it, and the tiny model.
struct Indexed {
  TinyModel model;
  TempDir dir;
  std::string path = dir.file("texts.rlxi"), texts = dir.file("texts");
  SentenceEncoder encoder{model.path()};

  Indexed() {
    dir.write("texts/one.txt", "a b\nc\n");
    dir.write("texts/two.txt", "b b b\na b\n");
    dir.write("texts/sub/three.md", "c c a\n");
  }
  TextIndexUpdate update(TextIndexOptions options = {}) {
    if (options.passages == PassageKind::Chunks) options.passages = PassageKind::Lines;
    return update_text_index(path, std::span(&texts, 1), encoder, options);
  }
  // So long ago that its times are believed.
  void age(const std::string& name) const {
    std::filesystem::last_write_time(dir.file(name),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
};

std::vector<std::string> found_texts(const std::vector<IndexMatch>& matches) {
  std::vector<std::string> out;
  for (const IndexMatch& m : matches) out.push_back(m.text);
  return out;
}

}  // namespace

TEST_CASE("vector rows: encoded vectors give the products of what they stand for") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::size_t width : {1, 3, 15, 16, 17, 100, 384}) {
    std::vector<float> vector(width), query(width);
    double squares = 0;
    for (float& v : vector) v = 3 * normal(random), squares += double{v} * v;
    for (float& v : query) v = normal(random);
    for (const DType type : {DType::F16, DType::I8}) {
      std::string rows, scales;
      append_vector(vector, type, rows, scales);
      CHECK(rows.size() == width * (type == DType::F16 ? 2 : 1));
      CHECK(scales.size() == (type == DType::F16 ? 0 : 4));
      double expected = 0, size = 0;
      for (std::size_t i = 0; i < width; ++i) {
        expected += double{vector[i]} / std::sqrt(squares) * query[i];
        size += std::fabs(double{vector[i]} / std::sqrt(squares) * query[i]);
      }
      float scale = 1;
      if (!scales.empty()) std::memcpy(&scale, scales.data(), 4);
      const float got = dot_row(reinterpret_cast<const std::byte*>(rows.data()), type, query) * scale;
      CHECK(std::fabs(got - expected) <= size * (type == DType::F16 ? 1e-3 : 3e-2) + 1e-6);
    }
  }
  // Every finite f16, alone.
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float one = 1, expected = f16_bits_to_float(half);
    if (!std::isfinite(expected)) continue;
    const float got = dot_row(reinterpret_cast<const std::byte*>(&half), DType::F16, std::span(&one, 1));
    if (got != expected) CHECK_MESSAGE(got == expected, bits);
  }
  std::string rows, scales;
  append_vector(std::vector<float>(4, 0.0f), DType::I8, rows, scales);
  const std::vector<float> ones(4, 1.0f);
  CHECK(dot_row(reinterpret_cast<const std::byte*>(rows.data()), DType::I8, ones) == 0);
  for (const DType type : {DType::F16, DType::I8})
    for (const float v : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const std::string before = rows;
      const std::vector<float> vector{1, v, 2, 3};
      CHECK(contains(error_text([&] { append_vector(vector, type, rows, scales); }), "has a NaN or an infinity"));
      CHECK(rows == before);
    }
}

TEST_CASE("text index: a search finds what a comparison of all vectors finds, the same text once") {
  Indexed t;
  const TextIndexUpdate done = t.update();
  CHECK(done.files == 3);
  CHECK(done.added == 3);
  CHECK(done.passages == 4);  // "a b" is in two files
  CHECK(done.embedded == 4);
  CHECK(done.written);
  const std::vector<std::string> all = {"a b", "c", "b b b", "c c a"};
  const Tensor vectors = t.encoder.embed(all);
  for (const DType type : {DType::F16, DType::I8}) {
    TextIndexOptions options;
    options.vectors = type;
    const TextIndexUpdate again = t.update(options);
    CHECK(again.rebuilt == (type == DType::F16 ? "" : "its vectors are of type f16"));
    const TextIndex index = TextIndex::open(t.path);
    CHECK(index.num_files() == 3);
    CHECK(index.num_passages() == 4);
    CHECK(index.dimensions() == 4);
    CHECK(index.options().vectors == type);
    for (const std::string query : {"a", "b", "c c", "a b c"}) {
      CAPTURE(query);
      const std::vector<IndexMatch> got = index.search(t.encoder, query, 10);
      REQUIRE(got.size() == 4);
      const Tensor embedded = t.encoder.embed(query);
      double last = 2;
      for (const IndexMatch& m : got) {
        const auto row = static_cast<std::size_t>(std::find(all.begin(), all.end(), m.text) - all.begin());
        REQUIRE(row < 4);
        const double exact = cosine_similarity(embedded.values<float>(), vectors.values<float>().subspan(row * 4, 4));
        CHECK(std::fabs(m.score - exact) < (type == DType::F16 ? 2e-3 : 2e-2));
        CHECK(m.score <= last);
        last = m.score;
        REQUIRE(m.places.size() == (m.text == "a b" ? 2 : 1));
        CHECK(m.places[0].file.starts_with(t.texts + "/"));
        if (m.text == "a b") CHECK(m.places[1].line == 2);
      }
    }
    CHECK(index.search(t.encoder, "a", 1).size() == 1);
    CHECK(index.search(t.encoder, "a", 0).empty());
  }
}

TEST_CASE("text index: an update reads what changed, and embeds what is new") {
  Indexed t;
  for (const char* name : {"texts/one.txt", "texts/two.txt", "texts/sub/three.md"}) t.age(name);
  CHECK(t.update().embedded == 4);
  const std::string bytes = test::read_file(t.path);
  const TextIndexUpdate same = t.update();
  CHECK_FALSE(same.written);
  CHECK(same.unchanged == 3);
  CHECK(same.embedded == 0);
  CHECK(test::read_file(t.path) == bytes);
  // New text in an old file: one new passage. A file that moved keeps its vectors. One that is gone is gone.
  t.dir.write("texts/one.txt", "a b\na c\n");
  std::filesystem::rename(t.dir.file("texts/two.txt"), t.dir.file("texts/moved.txt"));
  std::filesystem::remove(t.dir.file("texts/sub/three.md"));
  const TextIndexUpdate changed = t.update();
  CHECK(changed.written);
  CHECK(changed.changed == 1);
  CHECK(changed.added == 1);
  CHECK(changed.removed == 2);
  CHECK(changed.embedded == 1);
  CHECK(changed.passages == 3);
  const TextIndex index = TextIndex::open(t.path);
  std::vector<std::string> texts = found_texts(index.search(t.encoder, "a", 9));
  std::sort(texts.begin(), texts.end());
  CHECK(texts == std::vector<std::string>{"a b", "a c", "b b b"});
  CHECK(index.is_current(t.texts + "/one.txt"));
  t.dir.write("texts/one.txt", "c b\na c\n");
  CHECK_FALSE(index.is_current(t.texts + "/one.txt"));
  CHECK_FALSE(index.is_current(t.texts + "/two.txt"));
  // Another way to split: the texts are read again, equal passages keep their vectors.
  TextIndexOptions paragraphs;
  paragraphs.passages = PassageKind::Paragraphs;
  CHECK(t.update(paragraphs).embedded == 2);
  CHECK(TextIndex::open(t.path).options().passages == PassageKind::Paragraphs);
}

TEST_CASE("text index: a change that size and times do not show is found where they are not certain") {
  Indexed t;
  CHECK(t.update().written);  // the files are seconds old: their times are not believed
  const std::string one = t.dir.file("texts/one.txt");
  const auto time = std::filesystem::last_write_time(one);
  t.dir.write("texts/one.txt", "b a\nc\n");
  std::filesystem::last_write_time(one, time);
  CHECK(t.update().changed == 1);
  // An old file with its time put back: the time of its entry changed.
  t.age("texts/one.txt");
  const auto old = std::filesystem::last_write_time(one);
  CHECK(t.update().changed == 0);
  t.dir.write("texts/one.txt", "a a\nc\n");
  std::filesystem::last_write_time(one, old);
  CHECK(t.update().changed == 1);
  TextIndexOptions reread;
  reread.check_content = true;
  CHECK(t.update(reread).changed == 0);
}

TEST_CASE("text index: another model, another kind of file, no text") {
  Indexed t;
  t.update();
  TinyModel other;
  std::vector<NamedTensor> weights = TinyModel::tensors();
  weights[0].tensor.set(5, 9);
  other.write_weights(weights);
  SentenceEncoder encoder(other.path());
  CHECK(encoder.fingerprint() != t.encoder.fingerprint());
  CHECK(SentenceEncoder(t.model.path()).fingerprint() == t.encoder.fingerprint());
  CHECK(SentenceEncoder(t.model.path(), {.dimensions = 2}).fingerprint() != t.encoder.fingerprint());
  const TextIndex index = TextIndex::open(t.path);
  CHECK(contains(error_text([&] { (void)index.search(encoder, "a", 1); }), "are those of another model than"));
  const TextIndexUpdate anew =
      update_text_index(t.path, std::span(&t.texts, 1), encoder,
                        t.encoder.passage_prompt().empty() ? index.options() : TextIndexOptions{});
  CHECK(anew.rebuilt == "it was made with another model");
  CHECK(anew.embedded == 4);
  CHECK(index.search(t.encoder, "a", 1).size() == 1);  // the old file, still mapped
  const std::string text = t.dir.write("notes.txt", "my notes"), empty = t.dir.file("empty");
  CHECK(contains(error_text([&] { (void)update_text_index(text, std::span(&t.texts, 1), t.encoder); }),
                 "notes.txt\" is not an index of texts, and is not replaced by one"));
  CHECK(test::read_file(text) == "my notes");
  t.dir.write("empty/binary", std::string_view("a\0b", 3));
  CHECK(contains(error_text([&] { (void)update_text_index(t.dir.file("e.rlxi"), std::span(&empty, 1), t.encoder); }),
                 "the files hold no text to search"));
  CHECK_FALSE(std::filesystem::exists(t.dir.file("e.rlxi")));
  CHECK(contains(error_text([&] { (void)TextIndex::open(text); }), "notes.txt\" is not an index of texts"));
}

TEST_CASE("text index: a file that is cut, too long, altered or of another version is refused by name") {
  Indexed t;
  t.update();
  const std::string bytes = test::read_file(t.path), bad = t.dir.file("bad.rlxi");
  const auto problem = [&](const std::string& content) {
    t.dir.write("bad.rlxi", content);
    return error_text([&] { (void)TextIndex::open(bad).search(t.encoder, "a", 9); });
  };
  CHECK(problem(bytes).empty());
  for (std::size_t size = 0; size < bytes.size(); size += size < 100 ? 1 : 37) {
    const std::string text = problem(bytes.substr(0, size));
    CHECK_MESSAGE(contains(text, "bad.rlxi"), size, ": ", text);
  }
  CHECK(contains(problem(bytes + "x"), "is too long"));
  CHECK(contains(problem("RLXINDEX\2" + bytes.substr(9)), "has version 2; this program reads version 1"));
  // Every byte that is altered is noticed, but for the zeros between sections.
  std::size_t noticed = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 1 + at / 400) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x41);
    const std::string text = problem(altered);
    if (text.empty()) CHECK_MESSAGE(bytes[at] == '\0', at);
    noticed += text.empty() ? 0 : 1;
  }
  CHECK(noticed > 300);
}

TEST_CASE("text index: numbers that were made to harm, with right checksums") {
  Indexed t;
  TextIndexOptions options;
  for (const DType type : {DType::F16, DType::I8}) {
    options.vectors = type;
    t.update(options);
    const std::string bytes = test::read_file(t.path), bad = t.dir.file("bad.rlxi");
    REQUIRE(resealed_index(bytes) == bytes);
    std::size_t refused = 0, read = 0;
    const auto attempt_reading = [&](const std::string& content) {
      t.dir.write("bad.rlxi", content);
      const std::string text = error_text([&] {
        const TextIndex index = TextIndex::open(bad);
        for (const IndexMatch& m : index.search(t.encoder, "a", 9)) {
          CHECK(std::isfinite(m.score));
          CHECK(m.text.size() <= content.size());
        }
        (void)index.is_current(t.texts + "/one.txt");
      });
      CHECK_MESSAGE((text.empty() || contains(text, "bad.rlxi")), text);
      CHECK_FALSE(contains(text, "please report"));
      ++(text.empty() ? read : refused);
      return text;
    };
    for (const char* key : {"num_files", "num_places", "num_passages", "path_bytes", "text_bytes", "width", "max_bytes",
                            "max_tokens", "overlap", "started_ns"}) {
      const std::string before = "\"" + std::string(key) + "\":" + std::to_string(index_head_number(bytes, key));
      for (const char* number : {"0", "1", "3", "-1", "4294967295", "4294967296", "9223372036854775807",
                                 "18446744073709551615", "1e300", "null", "\"x\"", "[]"})
        attempt_reading(resealed_index(bytes, before, "\"" + std::string(key) + "\":" + number));
    }
    CHECK(contains(attempt_reading(resealed_index(bytes, "\"vectors\":", "\"vectors\":\"f64\",\"v\":")), "f64"));
    CHECK(
        contains(attempt_reading(resealed_index(bytes, "\"passages\":\"lines\"", "\"passages\":\"words\"")), "words"));
    CHECK(!attempt_reading(resealed_index(bytes, "{", "[")).empty());
    CHECK(!attempt_reading(resealed_index(bytes, "\"paths\":[", "\"paths\":[],\"p\":[")).empty());
    // Every byte of the tables, texts and vectors.
    const std::size_t begin = (16 + index_number(bytes, 12, 4) + 16 + 63) / 64 * 64;
    const std::size_t step = repetitions(8) == 8 ? 1 : 7;
    for (std::size_t at = begin; at < bytes.size(); at += step)
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string altered = bytes;
        altered[at] = static_cast<char>(altered[at] ^ change);
        attempt_reading(resealed_index(altered));
      }
    CHECK(refused > repetitions(500));
    CHECK(read > repetitions(50));
  }
}

TEST_CASE("text index: an index that is made shorter while it is mapped is an error, and heals") {
  Indexed t;
  std::string lines;
  for (const char* first : {"a", "b", "c"})
    for (const char* second : {"", "a", "b", "c"})
      for (const char* third : {"", "a", "b", "c"})
        for (const char* fourth : {"", "a", "b", "c"})
          lines += concat_text(first, " ", second, " ", third, " ", fourth, "\n");
  t.dir.write("texts/many.txt", lines);
  t.update();
  const TextIndex index = TextIndex::open(t.path);
  CHECK(index.search(t.encoder, "a", 1).size() == 1);
  REQUIRE(::truncate(t.path.c_str(), 4096) == 0);
  CHECK(contains(error_text([&] { (void)index.search(t.encoder, "a", 9); }), "shorter"));
  const TextIndexUpdate healed = t.update();
  CHECK(contains(healed.rebuilt, "is cut short"));
  CHECK(healed.written);
  CHECK(TextIndex::open(t.path).search(t.encoder, "a", 9).size() > 3);
}

TEST_CASE("text index: files that are no text, and passages longer than the model reads") {
  Indexed t;
  t.dir.write("texts/binary.bin", std::string_view("a\0b", 3));
  t.dir.write("texts/latin.txt", "caf\xe9\n");
  t.dir.write("texts/nothing.txt", "\xe2\x80\x8b\n\n");
  t.dir.write("texts/long.txt", "a b c c b a a c b b c a\n");
  const TextIndexUpdate done = t.update();
  CHECK(done.files == 5);
  REQUIRE(done.left_out.size() == 2);
  CHECK(done.left_out[0].binary);
  CHECK(contains(done.left_out[1].why.message, "latin.txt:1: not valid UTF-8"));
  std::string all;
  for (const IndexMatch& m : TextIndex::open(t.path).search(t.encoder, "a", 99))
    if (m.places[0].file.ends_with("long.txt")) {
      all += m.text + "|";
      CHECK(t.encoder.tokenizer().encode(m.text, false).size() <= 4);
    }
  CHECK(std::count(all.begin(), all.end(), '|') >= 3);
}

TEST_CASE("text index: threads search one index while it is replaced") {
  Indexed t;
  t.update();
  const TextIndex index = TextIndex::open(t.path);
  const std::vector<std::string> expected = found_texts(index.search(t.encoder, "a b", 4));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      SentenceEncoder own(t.model.path());
      for (int n = 0; n < 5; ++n) right += found_texts(index.search(own, "a b", 4)) == expected ? 1 : 0;
    });
  t.dir.write("texts/four.txt", "c c c\n");
  CHECK(t.update().embedded == 1);
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 15);
  CHECK(TextIndex::open(t.path).num_passages() == 5);
}

TEST_CASE("sentence encoder: a model with a head of another task is refused by name") {
  // The message names the folder, the class and the way out. modules.json makes it an embedding model.
  struct OtherHead {
    std::string architecture, part;
  };
  for (const OtherHead& head : {OtherHead{"BertForSequenceClassification", "a cross-encoder or a classifier"},
                                {"XLMRobertaForSequenceClassification", "use Reranker or `rlx rerank`"},
                                {"Qwen3ForCausalLM", "a language model or a reranker"},
                                {"BertForTokenClassification", "a tagger of tokens"},
                                {"BertForQuestionAnswering", "marks answers"},
                                {"BertForMultipleChoice", "chooses answers"},
                                {"BertModel", ""},
                                {"BertForMaskedLM", ""},
                                {"BertForPreTraining", ""}}) {
    CAPTURE(head.architecture);
    TinyModel model;
    const std::string config = test::read_file(model.file("config.json"));
    model.write("config.json", "{\"architectures\":[\"" + head.architecture + "\"]," + config.substr(1));
    const std::string text = error_text([&] { (void)SentenceEncoder(model.path()); });
    if (head.part.empty()) {
      CHECK(text.empty());
      continue;
    }
    CHECK_MESSAGE(contains(text, head.part), text);
    CHECK(contains(text, model.path()));
    CHECK(contains(text, "\"" + head.architecture + "\""));
    model.write("modules.json",
                R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},)"
                R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}])");
    model.write("1_Pooling/config.json", R"({"word_embedding_dimension":4,"pooling_mode_mean_tokens":true})");
    CHECK(error_text([&] { (void)SentenceEncoder(model.path()); }).empty());
  }
}
