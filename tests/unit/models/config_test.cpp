// Configurations of encoders: keys that are read, refusals and their texts.
#include "rlx/models/config.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

const std::string kConfig =
    R"({"model_type":"bert","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":16,
  "vocab_size":30,"max_position_embeddings":12,"type_vocab_size":2,"layer_norm_eps":1e-12,"hidden_act":"gelu"})";
const std::string kPooling =
    R"({"word_embedding_dimension":8,"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string message(const std::string& text) {
  return error_text([&] { parse_bert_config(JsonDocument::parse(text, "config.json")); });
}

std::string folder_message(const test::TempDir& folder) {
  return error_text([&] { read_sentence_config(folder.path()); });
}

}  // namespace

TEST_CASE("config: sizes of a BERT encoder") {
  const BertConfig c = parse_bert_config(JsonDocument::parse(kConfig, "config.json"));
  CHECK(c.hidden_size == 8);
  CHECK(c.num_layers == 2);
  CHECK(c.num_heads == 4);
  CHECK(c.head_dim() == 2);
  CHECK(c.intermediate_size == 16);
  CHECK(c.vocab_size == 30);
  CHECK(c.max_positions == 12);
  CHECK(c.type_vocab_size == 2);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK(c.activation == HiddenActivation::Gelu);
  const auto activation = [](const std::string& name) {
    return parse_bert_config(JsonDocument::parse(with(kConfig, "\"gelu\"", "\"" + name + "\""), "c")).activation;
  };
  CHECK(activation("gelu_new") == HiddenActivation::GeluTanh);
  CHECK(activation("relu") == HiddenActivation::Relu);
  CHECK(activation("silu") == HiddenActivation::Silu);
}

TEST_CASE("config: faults are named") {
  CHECK(message(kConfig).empty());
  CHECK(contains(message(with(kConfig, "\"bert\"", "\"llama\"")),
                 "config.json: \"model_type\" is \"llama\", expected \"bert\""));
  CHECK(contains(message(with(kConfig, "hidden_size", "hiden_size")),
                 "missing key \"hidden_size\"\n  hint: did you mean 'hiden_size'?"));
  CHECK(!contains(message(with(kConfig, "\"hidden_size\":8,", "")), "hint"));  // hidden_act is similar, but another key
  CHECK(contains(message(with(kConfig, "\"hidden_size\":8", "\"hidden_size\":\"8\"")),
                 "\"hidden_size\" must be an integer, got a string"));
  CHECK(contains(message(with(kConfig, "\"hidden_size\":8", "\"hidden_size\":9")),
                 "\"hidden_size\" 9 is not a multiple of \"num_attention_heads\" 4"));
  CHECK(contains(message(with(kConfig, "\"hidden_size\":8", "\"hidden_size\":0")), "\"hidden_size\" is 0, expected 1"));
  CHECK(contains(message(with(kConfig, "\"vocab_size\":30", "\"vocab_size\":99999999999")),
                 "\"vocab_size\" is 99999999999"));
  CHECK(contains(message(with(kConfig, "1e-12", "-1")), "\"layer_norm_eps\" is -1"));
  CHECK(contains(message(with(kConfig, "\"gelu\"", "\"mish\"")), "\"hidden_act\" is \"mish\""));
  CHECK(contains(message(with(kConfig, "{", "{\"position_embedding_type\":\"relative_key\",")),
                 "\"position_embedding_type\" is \"relative_key\""));
  CHECK(contains(message(with(kConfig, "{", "{\"is_decoder\":true,")), "\"is_decoder\" is true"));
  CHECK(contains(message("[]"), "expected an object with the key \"model_type\", got an array"));
  CHECK(contains(message("{"), "not valid JSON"));
}

TEST_CASE("config: a folder with and without its companions") {
  const test::TempDir folder;
  CHECK(contains(folder_message(folder), "holds no config.json"));
  folder.write("config.json", kConfig);
  CHECK(contains(error_text([&] { read_sentence_config(folder.file("none")); }), "none\" does not exist"));
  CHECK(
      contains(error_text([&] { read_sentence_config(folder.file("config.json")); }), "is a file, expected a folder"));
  CHECK(contains(error_text([] { read_sentence_config("/dev/null"); }), "\"/dev/null\" is not a folder"));
  SentenceModelConfig c = read_sentence_config(folder.path());
  CHECK(c.pooling == Pooling::Mean);
  CHECK(c.normalize);
  CHECK(c.max_sequence == 12);

  folder.write("sentence_bert_config.json", R"({"max_seq_length": 10, "do_lower_case": true})");
  folder.write("modules.json",
               R"([{"path":"","type":"sentence_transformers.models.Transformer"},
           {"path":"p","type":"sentence_transformers.models.Pooling"}])");
  CHECK(contains(folder_message(folder), "p/config.json\" does not exist"));
  folder.write("p/config.json", R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})");
  c = read_sentence_config(folder.path());
  CHECK(c.max_sequence == 10);
  CHECK(c.lowercase_text);
  CHECK(c.pooling == Pooling::Cls);
  CHECK(pooling_name(c.pooling) == "cls");
  CHECK_FALSE(c.normalize);
  folder.write("p/config.json", R"({"pooling_mode":"max"})");
  CHECK(read_sentence_config(folder.path()).pooling == Pooling::Max);
  folder.write("p/config.json", R"({"pooling_mode_lasttoken":true})");
  CHECK(read_sentence_config(folder.path()).pooling == Pooling::LastToken);
  folder.write("p/config.json", R"({"pooling_mode":"lasttoken"})");
  CHECK(pooling_name(read_sentence_config(folder.path()).pooling) == "last-token");
  folder.write("p/config.json", R"({"pooling_mode":"max"})");
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 10000})");
  CHECK(read_sentence_config(folder.path()).max_sequence == 12);
  folder.write("sentence_bert_config.json", R"({"max_seq_length": null})");
  CHECK(read_sentence_config(folder.path()).max_sequence == 12);
  folder.write("sentence_bert_config.json", R"({"max_seq_length": "long"})");
  CHECK(contains(folder_message(folder), "\"max_seq_length\" must be an integer, got a string"));
  folder.write("sentence_bert_config.json", R"({"max_seq_length": -1})");
  CHECK(contains(folder_message(folder), "\"max_seq_length\" is -1"));
  folder.write("sentence_bert_config.json", "{}");

  folder.write("p/config.json", R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true})");
  CHECK(contains(folder_message(folder), "several pooling modes are on"));
  folder.write("p/config.json", R"({"pooling_mode_weightedmean_tokens":true})");
  CHECK(contains(folder_message(folder), "the pooling \"pooling_mode_weightedmean_tokens\" is not supported"));
  folder.write("p/config.json", R"({"pooling_mode_mean_tokens":false})");
  CHECK(contains(folder_message(folder), "no pooling mode is on"));
  folder.write("p/config.json", with(kPooling, "8", "9"));
  CHECK(contains(folder_message(folder), "\"word_embedding_dimension\" is 9, but \"hidden_size\" of config.json is 8"));
  folder.write("p/config.json", kPooling);
  CHECK(folder_message(folder).empty());
  folder.write("modules.json", R"([{"path":"2","type":"sentence_transformers.models.Dense"}])");
  CHECK(contains(folder_message(folder), "a Dense module comes before the Pooling"));
  folder.write("modules.json", R"([{"path":"2","type":"sentence_transformers.models.LSTM"}])");
  CHECK(contains(folder_message(folder), "the module \"sentence_transformers.models.LSTM\" is not supported"));
  folder.write("modules.json", R"([{"path":"0_Transformer","type":"sentence_transformers.models.Transformer"}])");
  CHECK(contains(folder_message(folder), "the transformer is in the folder \"0_Transformer\""));
  folder.write("modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  CHECK(contains(folder_message(folder), "modules.json: no module pools the token vectors"));
  folder.write("modules.json", R"({"a":1})");
  CHECK(contains(folder_message(folder), "\"modules\" must be an array"));
}

TEST_CASE("config: weights and vocabulary") {
  const test::TempDir folder;
  const auto missing = [&] { return error_text([&] { weights_path(folder.path()); }); };
  CHECK(contains(missing(), "holds no model.safetensors"));
  std::filesystem::create_directory(folder.file("model.safetensors"));
  CHECK(contains(missing(), "model.safetensors\" is a folder, expected a file"));
  std::filesystem::remove(folder.file("model.safetensors"));
  folder.write("pytorch_model.bin", "x");
  CHECK(contains(missing(), "pytorch_model.bin is not read; convert it"));
  folder.write("model.safetensors.index.json", "{}");
  CHECK(contains(missing(), "split over several files"));
  folder.write("model.safetensors", "x");
  CHECK(weights_path(folder.path()) == folder.file("model.safetensors"));

  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  BertConfig c = parse_bert_config(JsonDocument::parse(kConfig, "config.json"));
  const auto vocabulary = [&] {
    return error_text([&] { check_vocabulary(c, *load_tokenizer(folder.path()), folder.path()); });
  };
  CHECK(contains(vocabulary(),
                 "ids up to 3, but \"vocab_size\" of config.json is 30\n  hint: the vocabulary is incomplete"));
  c.vocab_size = 4;
  CHECK(vocabulary().empty());
  c.vocab_size = 3;
  CHECK(contains(vocabulary(), "ids up to 3, but \"vocab_size\" of config.json is 3\n"));
}

TEST_CASE("config: the MiniLM folder" * doctest::test_suite(test::kNeedsModel)) {
  const std::string folder = test::model_dir();
  if (folder.empty()) return test::skip("the all-MiniLM-L6-v2 model");
  const SentenceModelConfig c = read_sentence_config(folder);
  CHECK(c.bert.hidden_size == 384);
  CHECK(c.bert.num_layers == 6);
  CHECK(c.bert.head_dim() == 32);
  CHECK(c.bert.layer_norm_eps == 1e-12);
  CHECK(c.pooling == Pooling::Mean);
  CHECK(c.normalize);
  CHECK(c.max_sequence == 256);
  check_vocabulary(c.bert, *load_tokenizer(folder), folder);
}

}  // namespace rlx
