// The MiniLM sentence encoder against its published numbers, and the encoder graph on a tiny model made here.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "rlx/formats/safetensors.h"
#include "rlx/ir/evaluate.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

BertConfig tiny() {
  BertConfig c;
  c.hidden_size = 4, c.num_layers = 2, c.num_heads = 2, c.intermediate_size = 3, c.vocab_size = 8, c.max_positions = 6,
  c.type_vocab_size = 2;
  c.layer_norm_eps = 1e-3;
  return c;
}

// Every parameter of the graph, filled with its own sequence.
NamedTensors weights_of(const Graph& g, DType dtype) {
  NamedTensors out;
  int n = 0;
  for (NodeId id : g.leaves(OpKind::Param)) {
    out.emplace(g.leaf_name(id), sequence(g.node(id).shape().static_dims(), 0.3 + 0.02 * n, 0.05 * (n % 3), dtype));
    ++n;
  }
  return out;
}

Tensor token_ids(std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
  return Tensor::of<std::int32_t>(std::move(dims), values);
}

}  // namespace

TEST_CASE("sentence encoder: the three known sentences" * doctest::test_suite(kNeedsModel)) {
  const std::string folder = model_dir();
  if (folder.empty()) return skip("the all-MiniLM-L6-v2 model");
  SentenceEncoder encoder(folder);
  CHECK(encoder.hidden_size() == 384);
  const std::vector<std::string> texts{"The weather is lovely today.", "It's so sunny outside!",
                                       "He drove to the stadium."};
  std::size_t done = 0;
  std::vector<TruncationNotice> notices;
  const Tensor y = encoder.embed(texts, &notices, [&](std::size_t n) { done = n; });
  CHECK(done == 3);
  CHECK(notices.empty());
  REQUIRE(y.dims() == std::vector<std::int64_t>{3, 384});
  const std::span<const float> v = y.values<float>();
  auto cosine = [&](std::size_t a, std::size_t b) {
    return cosine_similarity(v.subspan(a * 384, 384), v.subspan(b * 384, 384));
  };
  CHECK(cosine(0, 1) == doctest::Approx(0.6660).epsilon(1e-4));
  CHECK(cosine(0, 2) == doctest::Approx(0.1046).epsilon(5e-4));
  CHECK(cosine(1, 2) == doctest::Approx(0.1411).epsilon(5e-4));
  const double known[] = {0.019196, 0.120085, 0.159598, 0.067066};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::fabs(v[i] - known[i]) < 1e-6);
  // A text alone gives the same as in a batch padded to another length.
  const Tensor alone = encoder.embed(texts[2]);
  for (std::int64_t i = 0; i < 384; ++i) CHECK(std::fabs(alone.at(i) - y.at(2 * 384 + i)) < 1e-6);
}

TEST_CASE("sentence encoder: long text is cut with a notice, bad text is named" * doctest::test_suite(kNeedsModel)) {
  const std::string folder = model_dir();
  if (folder.empty()) return skip("the all-MiniLM-L6-v2 model");
  SentenceEncoderOptions options;
  options.max_sequence = 6;
  SentenceEncoder encoder(folder, options);
  std::vector<TruncationNotice> notices;
  const std::vector<std::string> texts{"short", "one two three four five six seven"};
  const Tensor y = encoder.embed(texts, &notices);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].text_index == 1);
  CHECK(notices[0].num_tokens == 9);
  CHECK(notices[0].max_length == 6);
  expect_close(y.rows(1, 1), encoder.embed("one two three four").reshaped({1, 384}), 1e-6);
  CHECK(contains(error_text([&] { (void)encoder.embed(std::vector<std::string>{"good", "bad \xff"}); }), "text 2"));
  CHECK(encoder.embed(std::vector<std::string>{}).dims() == std::vector<std::int64_t>{0, 384});
  options.max_sequence = 513;
  CHECK(contains(error_text([&] { SentenceEncoder(folder, options); }), "max_sequence"));
  options.max_sequence = 2;
  CHECK(contains(error_text([&] { SentenceEncoder(folder, options); }), "max_sequence"));
}

TEST_CASE("encoder graph: padding changes nothing, whatever the padded ids") {
  BertGraphOptions o;
  o.dtype = DType::F64, o.mask = DType::F64;
  for (Pooling pooling : {Pooling::Mean, Pooling::Cls, Pooling::Max, Pooling::MeanSqrtLength}) {
    o.pooling = pooling;
    const Graph g = build_sentence_encoder(tiny(), o);
    NamedTensors in = weights_of(g, DType::F64);
    in["ids"] = token_ids({1, 3}, {5, 1, 7});
    in["mask"] = doubles({1, 3}, {1, 1, 1});
    const Tensor y = evaluate(g, in)[0];
    in["ids"] = token_ids({2, 5}, {1, 2, 3, 4, 5, 5, 1, 7, 6, 2});
    in["mask"] = doubles({2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
    expect_close(evaluate(g, in)[0].rows(1, 1), y, 1e-12);
    double norm = 0;
    for (double v : y.to_f64()) norm += v * v;
    CHECK(norm == doctest::Approx(1));
  }
}

TEST_CASE("a vector does not depend on the texts that it is computed with, bit for bit") {
  TinyModel model;
  SentenceEncoderOptions options;
  const std::vector<std::string> texts{"a", "b c", "c", "a b c", "b", "c c", "a a", "b b c a"};
  SentenceEncoder together(model.path(), options), alone(model.path(), options);
  const Tensor all = together.embed(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    const Tensor one = alone.embed(texts[i]);
    CHECK(std::memcmp(one.data(), all.rows(static_cast<std::int64_t>(i), 1).data(), one.size_bytes()) == 0);
  }
}

TEST_CASE("encoder graph: Bool, integer and float masks agree; static and symbolic shapes agree") {
  BertGraphOptions o;
  o.dtype = DType::F64, o.mask = DType::F64, o.normalize = false;
  auto run = [&](const Tensor& mask) {
    o.mask = mask.dtype();
    const Graph g = build_sentence_encoder(tiny(), o);
    NamedTensors in = weights_of(g, DType::F64);
    in["ids"] = token_ids({2, 3}, {5, 1, 7, 2, 0, 0});
    in["mask"] = mask;
    return evaluate(g, in)[0];
  };
  const Tensor mask = doubles({2, 3}, {1, 1, 1, 1, 0, 0});
  const Tensor y = run(mask);
  expect_close(run(mask.cast(DType::Bool)), y);
  expect_close(run(mask.cast(DType::I32)), y);
  o.batch = 2, o.sequence = 3;
  CHECK(build_sentence_encoder(tiny(), o).is_static());
  expect_close(run(mask), y);
}

TEST_CASE("pooling: known answers") {
  auto pooled = [](Pooling pooling, const Tensor& mask) {
    Graph g;
    Expr x = g.input("x", Shape({1, 3, 2}, DType::F64)), m = g.input("m", Shape({1, 3}, DType::F64));
    g.set_outputs({pool_tokens(x, m, pooling)});
    return evaluate(g, {{"x", doubles({1, 3, 2}, {1, -5, 4, -1, 100, 100})}, {"m", mask}})[0];
  };
  const Tensor two = doubles({1, 3}, {1, 1, 0}), none = doubles({1, 3}, {0, 0, 0});
  expect_close(pooled(Pooling::Mean, two), {2.5, -3});
  expect_close(pooled(Pooling::Max, two), {4, -1});
  expect_close(pooled(Pooling::Cls, two), {1, -5});
  expect_close(pooled(Pooling::MeanSqrtLength, two), {5 / std::sqrt(2.0), -6 / std::sqrt(2.0)});
  expect_close(pooled(Pooling::Mean, none), {0, 0});
}

TEST_CASE("encoder graph: sizes that do not fit are named") {
  auto message = [](auto change) {
    BertConfig c = tiny();
    BertGraphOptions o;
    change(c, o);
    return error_text([&] { (void)build_sentence_encoder(c, o); });
  };
  CHECK(message([](BertConfig&, BertGraphOptions&) {}).empty());
  CHECK(contains(message([](BertConfig& c, BertGraphOptions&) { c.num_heads = 3; }), "must divide"));
  CHECK(contains(message([](BertConfig& c, BertGraphOptions&) { c.vocab_size = 0; }), "vocab_size"));
  CHECK(contains(message([](BertConfig&, BertGraphOptions& o) { o.sequence = 7; }), "[1, 6]"));
  CHECK(contains(message([](BertConfig&, BertGraphOptions& o) { o.ids = DType::F32; }), "ids"));
}

TEST_CASE("checkpoint: a missing weight, a wrong shape and a prefix") {
  const TempDir folder;
  const std::string path = folder.path() + "/model.safetensors";
  auto compiled = [] {
    Graph g;
    g.set_outputs({g.param("a.weight", Shape({2}, DType::F32)) * 2});
    return Session().compile(std::move(g));
  };
  auto load = [&] {
    CompiledGraph f = compiled();
    f.load_params(open_checkpoint(path), LoadMode::Subset);
    return f.run()[0];
  };
  write_safetensors(path,
                    std::vector<NamedTensor>{{"bert.a.weight", Tensor::of<double>({2}, std::vector<double>{1, 2})},
                                             {"bert.position_ids", Tensor::zeros(Shape({2}, DType::I64))}});
  CHECK(load() == std::vector<float>{2, 4});
  write_safetensors(path, std::vector<NamedTensor>{{"a.weights", Tensor::zeros(Shape({2}, DType::F32))}});
  CHECK(contains(error_text([&] { (void)load(); }), "did you mean 'a.weights'?"));
  write_safetensors(path, std::vector<NamedTensor>{{"a.weight", Tensor::zeros(Shape({3}, DType::F32))}});
  CHECK(contains(error_text([&] { (void)load(); }), "the graph needs [2] f32"));
  write_safetensors(path, std::vector<NamedTensor>{{"a.weight", Tensor::zeros(Shape({2}, DType::I64))}});
  CHECK(contains(error_text([&] { (void)load(); }), "the graph needs [2] f32"));
}

TEST_CASE(
    "sentence encoder: layers of config.json and of the weights that differ are refused, before the graph is built") {
  const TinyModel model;
  auto message = [&] { return error_text([&] { SentenceEncoder encoder(model.path()); }); };
  CHECK(message().empty());
  model.write_config(1);  // this once gave vectors of the first layer
  CHECK(contains(message(), "model.safetensors: config.json does not account for the tensor 'encoder.layer.1."));
  model.write_config(1000);
  CHECK(contains(message(),
                 "model.safetensors: the file holds 2 layers (encoder.layer.N), but \"num_hidden_layers\" of "
                 "config.json is 1000"));
  model.write_config(1000000000);
  CHECK(contains(message(), "config.json: \"num_hidden_layers\" is 1000000000, expected 1 to 1024"));
  model.write_config(2);
  std::vector<NamedTensor> weights = TinyModel::tensors();
  weights.push_back({"pooler.dense.weight", Tensor::zeros(Shape({4, 4}, DType::F32))});  // unused and ignored
  model.write_weights(weights);
  CHECK(message().empty());
  weights.push_back({"encoder.layer.0.adapter.weight", Tensor::zeros(Shape({4, 4}, DType::F32))});
  model.write_weights(weights);
  CHECK(contains(message(), "'encoder.layer.0.adapter.weight'"));
  weights = TinyModel::tensors();
  for (NamedTensor& t : weights)
    if (t.name == "encoder.layer.1.output.dense.bias") t.name = "encoder.layer.1.output.dense.bais";
  model.write_weights(weights);  // a missing weight is reported before a surplus one
  CHECK(
      contains(message(), "model.safetensors: the weights have no tensor 'encoder.layer.1.output.dense.bias' [4] f32"));
}

TEST_CASE("sentence encoder: companions that leave nothing or are no objects") {
  const TinyModel model;
  auto message = [&] { return error_text([&] { SentenceEncoder encoder(model.path()); }); };
  model.write("sentence_bert_config.json", R"({"max_seq_length": 2})");
  CHECK(contains(message(), model.path() + ": texts may have 2 tokens"));
  model.write("sentence_bert_config.json", "[]");
  CHECK(contains(message(), "sentence_bert_config.json: expected an object, got an array"));
  model.write("sentence_bert_config.json", "{}");
  model.write("tokenizer_config.json", "[]");
  CHECK(contains(message(), "tokenizer_config.json: expected an object, got an array"));
  std::filesystem::create_directory(model.file("tokenizer.json"));
  CHECK(contains(message(), "tokenizer.json\" is a folder, expected a file"));
}

TEST_CASE("sentence encoder: texts without tokens and vectors that are not finite are refused, by the caller's names") {
  const TinyModel model;
  auto message = [&](std::vector<std::string> texts) {
    SentenceEncoder encoder(model.path());
    return error_text([&] {
      (void)encoder.embed(texts, nullptr, nullptr, [](std::size_t i) { return concat_text("notes:", i + 10); });
    });
  };
  CHECK(message({"a b", "b a c"}).empty());
  for (const char* empty : {"", "  ", "\t\xc2\xa0", "\x01"})
    CHECK(contains(message({"a", empty}), "notes:11 is empty: it has no tokens"));
  SentenceEncoder encoder(model.path());
  CHECK(contains(error_text([&] { (void)encoder.embed(""); }), "text 1 is empty"));
  std::vector<NamedTensor> weights = TinyModel::tensors();
  weights[0].tensor.set(7 * 4, std::numeric_limits<double>::quiet_NaN());  // the word embedding of "c"
  model.write_weights(weights);
  CHECK(message({"a b", "b"}).empty());
  const std::string text = message({"a b", "b", "a c"});
  CHECK(contains(text, "notes:12: element "));
  CHECK(contains(text, " of its vector is nan"));
  CHECK(contains(text, model.file("model.safetensors")));
}

TEST_CASE("cosine similarity") {
  const float a[] = {1, 0}, b[] = {1, 1}, zero[] = {0, 0};
  CHECK(cosine_similarity(a, b) == doctest::Approx(std::sqrt(0.5)));
  CHECK(cosine_similarity(a, zero) == 0);
  CHECK(contains(error_text([&] { (void)cosine_similarity(a, std::span(b, 1)); }), "cosine"));
}

TEST_CASE("sentence encoder: vectors do not depend on threads, batches beside each other or the texts around") {
  const TinyModel model;
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    const char* const words[] = {"a", "b", "c", "a b", "c b", "b a c", "c c a b"};
    texts.emplace_back(words[i * i % 7]);
  }
  SentenceEncoderOptions options;
  options.max_batch = 3;
  options.num_threads = 1;
  const Tensor one = SentenceEncoder(model.path(), options).embed(texts);
  for (int threads : {2, 3}) {
    CAPTURE(threads);
    options.num_threads = threads;
    SentenceEncoder encoder(model.path(), options);
    for (int round = 0; round < 3; ++round) {
      std::size_t last = 0;
      const Tensor y = encoder.embed(texts, nullptr, [&](std::size_t done) {
        CHECK(done > last);
        last = done;
      });
      CHECK(last == texts.size());
      CHECK(std::memcmp(y.data(), one.data(), one.size_bytes()) == 0);
    }
  }
  options.max_batch = 60;
  const Tensor wide = SentenceEncoder(model.path(), options).embed(texts);
  CHECK(std::memcmp(wide.data(), one.data(), one.size_bytes()) == 0);
}

TEST_CASE("sentence encoder: a callback that calls the encoder is an error, on every thread") {
  const TinyModel model;
  const std::vector<std::string> texts(60, "a b");
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    SentenceEncoderOptions options;
    options.max_batch = 3;
    options.num_threads = threads;
    SentenceEncoder encoder(model.path(), options);
    const Tensor want = encoder.embed(texts);
    const auto in_progress = [&](const std::function<void()>& call) {
      return error_text([&] { (void)encoder.embed(texts, nullptr, [&](std::size_t) { call(); }); });
    };
    const std::string inside = "an encoder is called from inside its own call";
    CHECK(contains(in_progress([&] { (void)encoder.embed("a"); }), inside));
    CHECK(contains(in_progress([&] { (void)encoder.weight_bytes(); }), inside));
    CHECK(in_progress([&] { (void)encoder.fingerprint(); }).empty());
    CHECK(encoder.embed(texts).identical(want));  // it works on
    // It may be destroyed or replaced there: the call goes on.
    auto destroyed = std::make_unique<SentenceEncoder>(model.path(), options);
    SentenceEncoder* const at = destroyed.get();
    CHECK(at->embed(texts, nullptr, [&](std::size_t) { destroyed.reset(); }).identical(want));
    bool done = false;
    CHECK(encoder
              .embed(texts, nullptr,
                     [&](std::size_t) {
                       if (!std::exchange(done, true)) encoder = SentenceEncoder(model.path(), options);
                     })
              .identical(want));
    CHECK(encoder.embed(texts).identical(want));
  }
}

TEST_CASE("sentence encoder: a text without tokens is an error or, by option, a vector of zeros") {
  const TinyModel model;
  const std::vector<std::string> texts{"a b", "", "\xe2\x80\x8b", "c"};
  SentenceEncoderOptions options;
  SentenceEncoder strict(model.path(), options);
  CHECK(contains(error_text([&] { strict.embed(texts); }), "text 2 is empty: it has no tokens"));
  CHECK(strict.has_tokens("a"));
  CHECK_FALSE(strict.has_tokens("\xe2\x80\x8b"));
  options.zero_empty = true;
  SentenceEncoder zeros(model.path(), options);
  const Tensor y = zeros.embed(texts), both = strict.embed(std::vector<std::string>{"a b", "c"});
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(y.at(i) == both.at(i));
    CHECK(y.at(4 + i) == 0);
    CHECK(y.at(8 + i) == 0);
    CHECK(y.at(12 + i) == both.at(4 + i));
  }
  CHECK(zeros.embed(std::vector<std::string>{"", ""}).at(7) == 0);
}
