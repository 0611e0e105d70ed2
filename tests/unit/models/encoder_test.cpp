// Encoders of every family against vectors and scores of Python's transformers, and whole model folders against
// sentence-transformers.
#include "rlx/models/encoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "rlx/formats/json.h"
#include "rlx/formats/safetensors_folder.h"
#include "rlx/models/reranker.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/runtime/session.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/encoder_run.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::encoder_reference;
using test::EncoderReference;
using test::error_text;
using test::relative_error;

constexpr double kNearVectors = 2e-5;  // of the largest element

EncoderConfig config_of(const EncoderReference& r) {
  return parse_encoder_config(JsonDocument::parse(r.config, r.name + "/config.json"));
}

EncoderReference with_config(EncoderReference r, const std::string& from, const std::string& to) {
  const std::size_t at = r.config.find(from);
  REQUIRE(at != std::string::npos);
  r.config.replace(at, from.size(), to);
  return r;
}

// Vectors of tokens [T, H], pooled here by the definitions.
std::vector<float> pooled_here(const EncoderReference& r, Pooling pooling) {
  const std::span<const float> v = r.hidden.values<float>();
  const auto width = static_cast<std::size_t>(r.hidden.dim(1));
  std::vector<float> out;
  std::size_t row = 0;
  for (const std::int64_t length : r.lengths) {
    for (std::size_t h = 0; h < width; ++h) {
      double sum = 0, most = -1e30;
      for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
        const double x = v[(row + t) * width + h];
        sum += x;
        if (!(x <= most)) most = x;
      }
      const double first = v[row * width + h], last = v[(row + static_cast<std::size_t>(length) - 1) * width + h];
      const auto n = static_cast<double>(length);
      out.push_back(static_cast<float>(pooling == Pooling::Mean             ? sum / n
                                       : pooling == Pooling::MeanSqrtLength ? sum / std::sqrt(n)
                                       : pooling == Pooling::Max            ? most
                                       : pooling == Pooling::Cls            ? first
                                                                            : last));
    }
    row += static_cast<std::size_t>(length);
  }
  return out;
}

std::string load_message(const EncoderReference& r, EncoderOutput output = EncoderOutput::Text) {
  EncoderGraphOptions o;
  o.output = output;
  return error_text([&] { (void)test::run_encoder(r, o); });
}

}  // namespace

TEST_CASE("encoder: every family gives the reference's vectors and scores, of padded rows and alone") {
  const std::vector<std::string> names = test::encoder_references();
  CHECK(names.size() >= 14);
  std::set<std::string> families;
  for (const std::string& name : names) {
    CAPTURE(name);
    const EncoderReference r = encoder_reference(name);
    const EncoderConfig c = config_of(r);
    families.insert(c.family);
    EncoderGraphOptions o;
    o.output = EncoderOutput::Tokens;
    o.types = c.type_vocab_size > 1;
    CHECK(relative_error(r.tokens_of(test::run_encoder(r, o)), r.hidden) <= kNearVectors);
    // A row alone, without the padding of the batch.
    std::int64_t row = 0;
    for (std::size_t b = 0; b < r.lengths.size(); ++b) {
      const EncoderReference one = test::row_of(r, static_cast<std::int64_t>(b));
      CHECK(relative_error(one.tokens_of(test::run_encoder(one, o)), r.hidden.rows(row, r.lengths[b])) <= kNearVectors);
      row += r.lengths[b];
    }
    if (r.scores.empty()) continue;
    o.output = EncoderOutput::Scores;
    CHECK(relative_error(test::run_encoder(r, o), r.scores) <= kNearVectors);
  }
  for (const std::string& family : encoder_families())
    CHECK_MESSAGE(families.contains(family), family, " is not proved");
}

TEST_CASE("encoder: configurations of Nomic-BERT as newer versions of transformers write them") {
  EncoderReference r = encoder_reference("nomic_bert");
  r.config =
      R"({"model_type":"nomic_bert","vocab_size":64,"hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":40,"max_position_embeddings":64,"type_vocab_size":2,"layer_norm_eps":1e-12,)"
      R"("hidden_act":"silu","rope_parameters":{"rope_type":"default","rope_theta":1000.0}})";
  EncoderGraphOptions o;
  o.output = EncoderOutput::Tokens, o.types = true;
  CHECK(relative_error(r.tokens_of(test::run_encoder(r, o)), r.hidden) <= kNearVectors);
}

TEST_CASE("encoder: poolings, dense layers, cuts and norms are what their definitions say") {
  for (const char* name : {"modernbert", "roberta"}) {
    CAPTURE(name);
    const EncoderReference r = encoder_reference(name);
    const std::int64_t batch = r.batch(), width = r.hidden.dim(1);
    for (const Pooling pooling :
         {Pooling::Mean, Pooling::Cls, Pooling::Max, Pooling::MeanSqrtLength, Pooling::LastToken}) {
      CAPTURE(std::string(pooling_name(pooling)));
      EncoderGraphOptions o;
      o.pooling = pooling, o.normalize = false;
      const std::vector<float> want = pooled_here(r, pooling);
      CHECK(relative_error(test::run_encoder(r, o), Tensor::of<float>({batch, width}, want)) <= kNearVectors);
      o.normalize = true, o.dimensions = 11;
      std::vector<float> cut;
      for (std::int64_t b = 0; b < batch; ++b) {
        double norm = 0;
        const auto at = [&](std::int64_t i) {
          return static_cast<double>(want[static_cast<std::size_t>(b * width + i)]);
        };
        for (std::int64_t i = 0; i < 11; ++i) norm += at(i) * at(i);
        for (std::int64_t i = 0; i < 11; ++i) cut.push_back(static_cast<float>(at(i) / std::sqrt(norm)));
      }
      CHECK(relative_error(test::run_encoder(r, o), Tensor::of<float>({batch, 11}, cut)) <= kNearVectors);
    }
  }
}

TEST_CASE("encoder: what a configuration says is heard: each change of one moves the vectors") {
  struct Change {
    const char *model, *from, *to;
  };
  for (const Change& c : {
           Change{"modernbert", "\"local_attention\":8", "\"local_attention\":10"},
           {"modernbert", "\"global_attn_every_n_layers\":3", "\"global_attn_every_n_layers\":2"},
           {"modernbert", "\"local_rope_theta\":10000.0", "\"local_rope_theta\":1000.0"},
           {"modernbert", "\"global_rope_theta\":160000.0", "\"global_rope_theta\":1600.0"},
           {"nomic_bert", "\"rotary_emb_base\":1000", "\"rotary_emb_base\":10000"},
           {"nomic_bert", "\"swiglu\"", "\"geglu\""},
           {"nomic_bert_plain", "\"rotary_emb_interleaved\":true", "\"rotary_emb_interleaved\":false"},
           {"roberta", "\"pad_token_id\":1", "\"pad_token_id\":0"},
           {"bert_labels", "\"hidden_act\":\"gelu_new\"", "\"hidden_act\":\"relu\""},
           {"qwen2_window", "\"sliding_window\":5", "\"sliding_window\":6"},
           {"gemma3_text", "\"use_bidirectional_attention\":true", "\"use_bidirectional_attention\":false"},
           {"gemma3_text", "\"sliding_window\":8", "\"sliding_window\":6"},
       }) {
    CAPTURE(c.model);
    CAPTURE(c.to);
    const EncoderReference r = with_config(encoder_reference(c.model), c.from, c.to);
    EncoderGraphOptions o;
    o.output = EncoderOutput::Tokens;
    o.types = config_of(r).type_vocab_size > 1;
    CHECK(relative_error(r.tokens_of(test::run_encoder(r, o)), r.hidden) > 1e-4);
  }
}

TEST_CASE("encoder: checkpoints of the bare model, of other heads, with buffers") {
  for (const char* name : {"roberta", "distilbert", "modernbert", "qwen3"}) {
    CAPTURE(name);
    EncoderReference r = encoder_reference(name);
    const EncoderConfig c = config_of(r);
    std::vector<NamedTensor> bare;
    for (NamedTensor& w : r.weights)
      if (w.name.starts_with(c.names.prefix)) bare.push_back({w.name.substr(c.names.prefix.size()), w.tensor});
    REQUIRE(bare.size() > 8);
    r.weights = bare;
    if (!c.names.ignored.empty()) r.weights.push_back({c.names.ignored[0], Tensor::zeros(Shape({1, 24}, DType::I64))});
    r.weights.push_back({c.names.others[0] + "extra.weight", Tensor::zeros(Shape({3}, DType::F32))});
    EncoderGraphOptions o;
    o.output = EncoderOutput::Tokens;
    CHECK(relative_error(r.tokens_of(test::run_encoder(r, o)), r.hidden) <= kNearVectors);
    CHECK(contains(load_message(r, EncoderOutput::Scores), "missing: "));
  }
}

TEST_CASE("encoder: tensors missing, too many or of another shape are named") {
  const EncoderReference good = encoder_reference("modernbert");
  const auto message = [&](const std::function<void(EncoderReference&)>& spoil) {
    EncoderReference bad = good;
    spoil(bad);
    return load_message(bad, EncoderOutput::Scores);
  };
  const auto named = [](EncoderReference& r, const std::string& name) {
    return std::find_if(r.weights.begin(), r.weights.end(), [&](const NamedTensor& w) { return w.name == name; });
  };
  CHECK(message([](EncoderReference&) {}).empty());
  const std::string norm = "model.layers.1.attn_norm.weight";
  CHECK(contains(message([&](EncoderReference& r) { r.weights.erase(named(r, norm)); }),
                 "1 tensor is missing: 'layers.1.attn_norm.weight'"));
  CHECK(contains(message([&](EncoderReference& r) { named(r, norm)->tensor = Tensor::zeros(Shape({7}, DType::F32)); }),
                 "'layers.1.attn_norm.weight' is [7], expected [32]"));
  CHECK(contains(message([&](EncoderReference& r) {
                   r.weights.push_back({"model.layers.0.attn_norm.weight", Tensor::zeros(Shape({32}, DType::F32))});
                 }),
                 "1 tensor belongs to no part of a modernbert of 5 layers: 'layers.0.attn_norm.weight'"));
  CHECK(contains(
      message([](EncoderReference& r) { r = with_config(r, "\"hidden_size\":32", "\"hidden_size\":1073741824"); }),
      "'embeddings.tok_embeddings.weight' is [64, 32], expected [64, 1073741824]"));
  // A bias table for so many distances would be gigabytes.
  const EncoderReference far = with_config(encoder_reference("mpnet"), "\"max_position_embeddings\":142",
                                           "\"max_position_embeddings\":1073741824");
  CHECK(contains(load_message(far), "'embeddings.position_embeddings.weight' is [142, 32], expected [1073741824, 32]"));
  CHECK(contains(
      message([](EncoderReference& r) { r = with_config(r, "\"num_hidden_layers\":5", "\"num_hidden_layers\":1000"); }),
      "tensors, but a modernbert of 1000 layers has more"));
  CHECK(contains(
      message([](EncoderReference& r) { r = with_config(r, "\"num_hidden_layers\":5", "\"num_hidden_layers\":4"); }),
      "belong to no part of a modernbert of 4 layers: 'layers.4."));
}

TEST_CASE("encoder: configurations that are not built are refused by name") {
  const auto message = [](const char* name, const std::string& from, const std::string& to) {
    const EncoderReference r = with_config(encoder_reference(name), from, to);
    return error_text([&] { (void)config_of(r); });
  };
  const std::string unknown = message("bert", "\"model_type\":\"bert\"", "\"model_type\":\"electra\"");
  CHECK(contains(unknown, "bert/config.json: \"model_type\" is \"electra\", which is not a text encoder"));
  for (const std::string& family : encoder_families()) CHECK(contains(unknown, "'" + family + "'"));
  CHECK(contains(unknown, "'qwen3'"));
  CHECK(contains(message("bert", "{", "{\"is_decoder\":true,"), "\"is_decoder\" is true"));
  CHECK(contains(message("roberta", "{", "{\"position_embedding_type\":\"relative_key\","),
                 "\"position_embedding_type\" is \"relative_key\""));
  CHECK(contains(message("roberta", "\"max_position_embeddings\":26", "\"max_position_embeddings\":2"),
                 "\"max_position_embeddings\" 2 leaves no positions after \"pad_token_id\" 1"));
  CHECK(contains(message("distilbert", "\"dim\":32", "\"dim\":33"), "\"dim\" 33 is not a multiple of \"n_heads\" 4"));
  CHECK(contains(message("nomic_bert", "\"prenorm\":false", "\"prenorm\":true"), "\"prenorm\" is true"));
  CHECK(contains(message("nomic_bert", "\"rotary_scaling_factor\":null", "\"rotary_scaling_factor\":2"),
                 "\"rotary_scaling_factor\" is given"));
  CHECK(contains(message("nomic_bert", "\"rotary_emb_fraction\":1.0", "\"rotary_emb_fraction\":0.4"),
                 "of a head of 8 is not an even number"));
  CHECK(contains(message("nomic_bert", "{", "{\"num_experts\":8,"), "\"num_experts\" is given"));
  CHECK(contains(message("modernbert", "\"classifier_pooling\":\"mean\"", "\"classifier_pooling\":\"max\""),
                 "\"classifier_pooling\" is \"max\""));
  CHECK(contains(message("modernbert", "{", "{\"layer_types\":[\"full_attention\"],"),
                 "\"layer_types\" has 1 entries for 5 layers"));
  CHECK(contains(message("modernbert", "\"local_attention\":8", "\"local_attention\":1"), "\"local_attention\" is 1"));
  CHECK(contains(message("bert", "\"id2label\":{\"0\":\"LABEL_0\"}", "\"id2label\":{}"), "\"id2label\" is empty"));
  const auto decoder = [](const std::string& text) {
    return error_text([&] { (void)parse_encoder_config(JsonDocument::parse(text, "c")); });
  };
  CHECK(contains(decoder(R"({"model_type":"gpt2","vocab_size":9,"n_embd":8,"n_layer":1,"n_head":2,"n_positions":4})"),
                 "text embeddings of decoders do not support learned positions, which a gpt2 has"));
}

TEST_CASE("encoder: a vector does not depend on the texts that it is computed with, bit for bit") {
  for (const char* name : {"mean", "last", "max"}) {
    CAPTURE(name);
    const test::FolderReference r = test::folder_reference(name);
    const test::TempDir folder;
    test::write_folder(folder, r);
    SentenceEncoder encoder(folder.path());
    const Tensor all = encoder.embed(r.texts);
    for (std::size_t i = 0; i < r.texts.size(); ++i) {
      const Tensor one = encoder.embed(r.texts[i]);
      CHECK(std::memcmp(one.data(), all.rows(static_cast<std::int64_t>(i), 1).data(), one.size_bytes()) == 0);
    }
  }
}

TEST_CASE("sentence encoder: folders of sentence-transformers: modules, limits, prompts") {
  for (const char* name : {"mean", "last", "max"}) {
    CAPTURE(name);
    const test::FolderReference r = test::folder_reference(name);
    const test::TempDir folder;
    test::write_folder(folder, r);
    SentenceEncoder encoder(folder.path());
    REQUIRE_FALSE(r.vectors.empty());
    for (const auto& known : r.vectors) {
      CAPTURE(known.first);
      const Tensor got = encoder.embed(r.texts, nullptr, nullptr, nullptr, encoder.prompt(known.first));
      CHECK(relative_error(got, known.second) <= kNearVectors);
      if (known.first.empty()) CHECK(relative_error(encoder.embed(r.texts), known.second) <= kNearVectors);
    }
    CHECK(encoder.hidden_size() == r.vectors[0].second.dim(1));
  }
  const test::FolderReference r = test::folder_reference("mean");
  const test::TempDir folder;
  test::write_folder(folder, r);
  SentenceEncoder encoder(folder.path());
  CHECK(encoder.max_sequence() == 16);
  CHECK(encoder.query_prompt() == "query: ");
  CHECK(encoder.passage_prompt() == "passage: ");
  CHECK(contains(error_text([&] { (void)encoder.prompt("title"); }),
                 "the model has no prompt called \"title\"\n  hint: it has 'query', 'passage'"));
  CHECK(contains(error_text([&] { (void)encoder.embed(""); }), "text 1 is empty"));  // though its prompt is not
  SentenceEncoderOptions cut;
  cut.dimensions = 8;
  SentenceEncoder small(folder.path(), cut);
  const Tensor whole = encoder.embed(r.texts), few = small.embed(r.texts);
  CHECK(few.dims() == std::vector<std::int64_t>{static_cast<std::int64_t>(r.texts.size()), 8});
  CHECK(cosine_similarity(few.values<float>().first(8), whole.values<float>().first(8)) == doctest::Approx(1));
  cut.dimensions = 25;
  CHECK(
      contains(error_text([&] { SentenceEncoder(folder.path(), cut); }), "dimensions must be in [1, 24] or 0 for all"));
}

TEST_CASE("sentence encoder: long texts of models without a short limit run alone") {
  const EncoderReference r = encoder_reference("qwen3");
  test::FolderReference f = test::folder_reference("last");
  for (auto& file : f.files) {
    const std::string from = "\"max_position_embeddings\": 256";
    if (file.first == "config.json")
      file.second.replace(file.second.find(from), from.size(), "\"max_position_embeddings\": 2048");
  }
  const test::TempDir folder;
  test::write_folder(folder, f);
  SentenceEncoderOptions o;
  o.num_threads = 1;
  SentenceEncoder encoder(folder.path(), o);
  CHECK(encoder.max_sequence() == 2048);
  const std::string text(700, 'x'), longest(3000, 'y');
  const std::vector<std::string> texts{"a", text, "b c", longest};
  std::vector<TruncationNotice> notices;
  std::vector<std::size_t> done;
  const Tensor all = encoder.embed(texts, &notices, [&](std::size_t n) { done.push_back(n); });
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].num_tokens == 3001);
  CHECK(done.back() == 4);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(std::memcmp(encoder.embed(text).data(), all.rows(1, 1).data(), 32 * sizeof(float)) == 0);
  // The same text truncated to the length of short programs, by another limit.
  o.max_sequence = 512;
  SentenceEncoder brief(folder.path(), o);
  const Tensor a = brief.embed(text), b = encoder.embed(std::string(511, 'x'));
  CHECK(relative_error(a, b) <= kNearVectors);
}

TEST_CASE("sentence encoder: modules that are not built are refused by name") {
  const test::FolderReference good = test::folder_reference("mean");
  const auto message = [&](const std::string& path, const std::string& from, const std::string& to) {
    test::FolderReference r = good;
    bool found = false;
    for (auto& file : r.files) {
      if (file.first != path) continue;
      const std::size_t at = file.second.find(from);
      REQUIRE(at != std::string::npos);
      file.second.replace(at, from.size(), to), found = true;
    }
    REQUIRE(found);
    const test::TempDir folder;
    test::write_folder(folder, r);
    return error_text([&] { SentenceEncoder(folder.path()); });
  };
  CHECK(contains(
      message("2_Dense/config.json", "activation.Tanh", "activation.Mish"),
      "\"activation_function\" is \"torch.nn.modules.activation.Mish\"\n  hint: supported are Identity, Tanh"));
  CHECK(contains(message("2_Dense/config.json", "\"in_features\": 32", "\"in_features\": 31"),
                 "\"in_features\" is 31, but the vectors from the module before have 32 elements"));
  CHECK(
      contains(message("3_Dense/config.json", "\"bias\": false", "\"bias\": true"), "missing: '3_Dense/linear.bias'"));
  CHECK(
      contains(message("modules.json", "models.Normalize", "models.Dense"), "modules.json names a Dense module, but"));
  CHECK(contains(message("modules.json", "models.Pooling", "models.Normalize"),
                 "a Dense module comes after a Normalize"));
  CHECK(contains(message("modules.json", "models.Pooling", "models.WeightedLayerPooling"), "is not supported"));
  CHECK(contains(
      message("1_Pooling/config.json", "mean_tokens", "weightedmean_tokens"),
      "the pooling \"pooling_mode_weightedmean_tokens\" is not supported\n  hint: supported are mean, cls, max"));
  CHECK(contains(message("1_Pooling/config.json", "{", "{\"include_prompt\": false, "), "\"include_prompt\" is false"));
  CHECK(contains(message("config_sentence_transformers.json", "\"default_prompt_name\": \"passage\"",
                         "\"default_prompt_name\": \"title\""),
                 "\"default_prompt_name\" is \"title\", which is not in its prompts"));
  CHECK(contains(message("config_sentence_transformers.json", "\"query: \"", "7"), "must be a string"));
}

}  // namespace rlx
