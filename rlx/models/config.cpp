// Reads config.json and the other configuration files of a sentence-embedding model.
#include "rlx/models/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer.h"

namespace rlx {
namespace {

// Far above any real model. Keeps products of sizes within 64 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;
constexpr std::int64_t kMaxLayers = 1024;  // each layer is built: a typo must not take minutes

[[noreturn]] void bad_file(const std::string& source, const std::string& message, std::string hint = {}) {
  throw Error(ErrorCode::BadFile, concat_text(source, ": ", message), std::move(hint));
}

[[noreturn]] void unsupported(const std::string& source, const std::string& message, std::string hint = {}) {
  throw Error(ErrorCode::Unsupported, concat_text(source, ": ", message), std::move(hint));
}

std::int64_t get_size(const JsonValue& config, std::string_view key, const std::string& source,
                      std::int64_t most = kMaxSize) {
  const std::int64_t value = config.get_int(key);
  if (value < 1 || value > most) bad_file(source, concat_text("\"", key, "\" is ", value, ", expected 1 to ", most));
  return value;
}

HiddenActivation parse_activation(std::string_view name, const std::string& source) {
  if (name == "gelu") return HiddenActivation::Gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return HiddenActivation::GeluTanh;
  if (name == "relu") return HiddenActivation::Relu;
  if (name == "silu" || name == "swish") return HiddenActivation::Silu;
  unsupported(source, concat_text("\"hidden_act\" is \"", name, "\""),
              "supported are gelu, gelu_new, gelu_pytorch_tanh, relu, silu and swish");
}

constexpr const char* kKnownPoolings = "supported are mean, cls, max, mean_sqrt_len and lasttoken";

Pooling parse_pooling(const JsonDocument& document, std::int64_t hidden_size) {
  struct Mode {
    std::string_view key, name;
    Pooling pooling;
  };
  static constexpr Mode kModes[] = {
      {"pooling_mode_mean_tokens", "mean", Pooling::Mean},
      {"pooling_mode_cls_token", "cls", Pooling::Cls},
      {"pooling_mode_max_tokens", "max", Pooling::Max},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::MeanSqrtLength},
      {"pooling_mode_lasttoken", "lasttoken", Pooling::LastToken}};
  const std::string& source = document.source();
  const JsonValue config = document.root();
  const std::int64_t width = config.get_int("word_embedding_dimension", hidden_size);
  if (width != hidden_size) {
    bad_file(source, concat_text("\"word_embedding_dimension\" is ", width, ", but \"hidden_size\" of config.json is ",
                                 hidden_size));
  }
  // Newer files have one string for the mode.
  const std::optional<JsonValue> named = config.find("pooling_mode");
  std::optional<Pooling> found;
  for (const auto& [key, value] : config.members("pooling configuration")) {
    if (key.substr(0, 13) != "pooling_mode_" || !value.as_bool(key)) continue;
    std::optional<Pooling> mode;
    for (const Mode& m : kModes) {
      if (m.key == key) mode = m.pooling;
    }
    if (!mode) unsupported(source, concat_text("the pooling \"", key, "\" is not supported"), kKnownPoolings);
    if (found && *found != *mode)
      unsupported(source, "several pooling modes are on", "rlx supports one pooling mode at a time");
    found = mode;
  }
  if (named && !named->is_null()) {
    const std::string_view name = named->as_string("pooling_mode");
    for (const Mode& m : kModes) {
      if (m.name == name) found = m.pooling;
    }
    if (!found) unsupported(source, concat_text("the pooling \"", name, "\" is not supported"), kKnownPoolings);
  }
  if (!found) bad_file(source, "no pooling mode is on");
  if (!config.get_bool("include_prompt", true))
    unsupported(source, "\"include_prompt\" is false", "rlx always pools the tokens of the prompt too");
  return *found;
}

// Reads the Dense module in `folder` of a model.
DenseSpec read_dense(const std::string& model, std::string_view folder, std::int64_t width) {
  const std::string path = join_path(join_path(model, std::string(folder)), "config.json");
  if (!has_file(path))
    throw Error(ErrorCode::NotFound,
                concat_text("modules.json names a Dense module, but \"", path, "\" does not exist"));
  const JsonDocument document = JsonDocument::read(path);
  const JsonValue root = document.root_object();
  DenseSpec out{.name = concat_text(folder, "/linear")};
  out.in = get_size(root, "in_features", path), out.out = get_size(root, "out_features", path);
  out.bias = root.get_bool("bias", true);
  if (out.in != width)
    bad_file(path, concat_text("\"in_features\" is ", out.in, ", but the vectors from the module before have ", width,
                               " elements"));
  const std::string_view name = root.get_string("activation_function", "torch.nn.modules.activation.Tanh");
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (last == "Tanh")
    out.activation = ActivationKind::Tanh;
  else if (last == "ReLU")
    out.activation = ActivationKind::Relu;
  else if (last == "GELU")
    out.activation = ActivationKind::Gelu;
  else if (last == "Sigmoid")
    out.activation = ActivationKind::Sigmoid;
  else if (last == "SiLU")
    out.activation = ActivationKind::Silu;
  else if (last != "Identity")
    unsupported(path, concat_text("\"activation_function\" is \"", name, "\""),
                "supported are Identity, Tanh, ReLU, GELU, Sigmoid and SiLU");
  return out;
}

// Reads the prompts of config_sentence_transformers.json.
void read_prompts(const std::string& folder, SentenceModelConfig& out) {
  const std::string path = join_path(folder, "config_sentence_transformers.json");
  if (!has_file(path)) return;
  const JsonDocument document = JsonDocument::read(path);
  const JsonValue root = document.root_object();
  const std::optional<JsonValue> prompts = root.find("prompts");
  if (prompts && !prompts->is_null())
    for (const auto& [name, text] : prompts->members("prompts"))
      out.prompts.emplace_back(name, std::string(text.as_string(name)));
  const std::optional<JsonValue> chosen = root.find("default_prompt_name");
  if (!chosen || chosen->is_null()) return;
  out.default_prompt = chosen->as_string("default_prompt_name");
  for (const auto& prompt : out.prompts)
    if (prompt.first == out.default_prompt) return;
  bad_file(path, concat_text("\"default_prompt_name\" is \"", out.default_prompt, "\", which is not in its prompts"));
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::string_view pooling_name(Pooling pooling) {
  switch (pooling) {
    case Pooling::Mean: return "mean";
    case Pooling::Cls: return "cls";
    case Pooling::Max: return "max";
    case Pooling::MeanSqrtLength: return "mean-sqrt-length";
    case Pooling::LastToken: return "last-token";
  }
  return "unknown";
}

BertConfig parse_bert_config(const JsonDocument& document) {
  const std::string& source = document.source();
  const JsonValue root = document.root();
  const std::string_view type = root.get_string("model_type");
  if (type != "bert") {
    unsupported(source, concat_text("\"model_type\" is \"", type, "\", expected \"bert\""),
                "this class supports only BERT encoders");
  }
  for (const std::string_view key : {"is_decoder", "add_cross_attention"}) {
    if (root.get_bool(key, false))
      unsupported(source, concat_text("\"", key, "\" is true"), "this class supports only BERT encoders");
  }
  const std::string_view positions = root.get_string("position_embedding_type", "absolute");
  if (positions != "absolute")
    unsupported(source, concat_text("\"position_embedding_type\" is \"", positions, "\", expected \"absolute\""));

  BertConfig c;
  c.hidden_size = get_size(root, "hidden_size", source);
  c.num_layers = get_size(root, "num_hidden_layers", source, kMaxLayers);
  c.num_heads = get_size(root, "num_attention_heads", source);
  c.intermediate_size = get_size(root, "intermediate_size", source);
  c.vocab_size = get_size(root, "vocab_size", source);
  c.max_positions = get_size(root, "max_position_embeddings", source);
  c.type_vocab_size = root.find("type_vocab_size") ? get_size(root, "type_vocab_size", source) : 2;
  if (c.hidden_size % c.num_heads != 0) {
    bad_file(source, concat_text("\"hidden_size\" ", c.hidden_size, " is not a multiple of \"num_attention_heads\" ",
                                 c.num_heads));
  }
  c.layer_norm_eps = root.get_number("layer_norm_eps");
  if (!(c.layer_norm_eps >= 0) || c.layer_norm_eps > 1) {
    bad_file(source,
             concat_text("\"layer_norm_eps\" is ", c.layer_norm_eps, ", expected a small number such as 1e-12"));
  }
  c.activation = parse_activation(root.get_string("hidden_act"), source);
  return c;
}

JsonDocument read_model_config(const std::string& folder) try {
  const std::string config_path = join_path(folder, "config.json");
  if (!has_file(config_path)) {
    std::error_code ignored;
    const char* what = std::filesystem::is_directory(folder, ignored) ? "holds no config.json"
                       : is_file(folder)                              ? "is a file, expected a folder"
                       : std::filesystem::exists(folder, ignored)     ? "is not a folder"
                                                                      : "does not exist";
    throw Error(
        ErrorCode::NotFound, concat_text("\"", folder, "\" ", what),
        "give the folder of a Hugging Face model: config.json, model.safetensors and tokenizer.json or vocab.txt");
  }
  return JsonDocument::read(config_path);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_model_config");
}

SentenceModelConfig read_sentence_config(const std::string& folder) try {
  SentenceModelConfig out;
  {
    const JsonDocument config = read_model_config(folder);
    if (config.root_object().get_string("model_type") == "bert") out.bert = parse_bert_config(config);
    out.encoder = parse_encoder_config(config);
  }
  std::string pooling_folder = "1_Pooling";
  bool pooling_required = false;
  const std::string modules_path = join_path(folder, "modules.json");
  if (has_file(modules_path)) {
    const JsonDocument modules = JsonDocument::read(modules_path);
    out.normalize = false;
    for (const JsonValue& module : modules.root().elements("modules")) {
      const std::string_view type = module.get_string("type");
      const std::string_view path = module.get_string("path", "");
      if (ends_with(type, ".Transformer")) {
        if (!path.empty()) {
          unsupported(modules_path, concat_text("the transformer is in the folder \"", path, "\""),
                      "move its files up into the model folder");
        }
      } else if (ends_with(type, ".Pooling")) {
        pooling_folder = path;
        pooling_required = true;
      } else if (ends_with(type, ".Normalize")) {
        out.normalize = true;
      } else if (ends_with(type, ".Dense")) {
        if (!pooling_required || out.normalize)
          unsupported(modules_path,
                      concat_text("a Dense module comes ",
                                  out.normalize ? "after a Normalize module" : "before the Pooling module"),
                      "the supported order is Transformer, Pooling, Dense, Normalize");
        out.dense.push_back(read_dense(folder, path, out.width()));
      } else {
        unsupported(modules_path, concat_text("the module \"", type, "\" is not supported"),
                    "supported are Transformer, Pooling, Dense and Normalize");
      }
    }
    if (!pooling_required)
      unsupported(modules_path, "no module pools the token vectors",
                  "rlx computes one vector for each text, so it needs a Pooling module");
  }
  const std::string pooling_path = join_path(join_path(folder, pooling_folder), "config.json");
  if (has_file(pooling_path)) {
    out.pooling = parse_pooling(JsonDocument::read(pooling_path), out.encoder.hidden_size);
  } else if (pooling_required) {
    throw Error(ErrorCode::NotFound,
                concat_text(modules_path, " names a pooling module, but \"", pooling_path, "\" does not exist"));
  }

  out.max_sequence = out.encoder.max_tokens;
  const std::string sentence_path = join_path(folder, "sentence_bert_config.json");
  if (has_file(sentence_path)) {
    const JsonDocument sentence = JsonDocument::read(sentence_path);
    const JsonValue root = sentence.root_object();
    const std::int64_t limit = root.get_int("max_seq_length", out.encoder.max_tokens);
    if (limit < 1) bad_file(sentence_path, concat_text("\"max_seq_length\" is ", limit, ", expected at least 1"));
    out.max_sequence = std::min(out.max_sequence, limit);
    out.lowercase_text = root.get_bool("do_lower_case", false);
  }
  read_prompts(folder, out);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_sentence_config");
}

std::string weights_path(const std::string& folder) {
  std::string path = join_path(folder, "model.safetensors");
  if (has_file(path)) return path;
  std::string hint = "put the model's safetensors file there";
  if (is_file(join_path(folder, "model.safetensors.index.json"))) {
    hint = "the weights are split over several files; merge them into one with the Python package safetensors";
  } else if (is_file(join_path(folder, "pytorch_model.bin"))) {
    hint =
        "pytorch_model.bin is not read; convert it: safetensors.torch.save_file(torch.load(\"pytorch_model.bin\"), "
        "\"model.safetensors\")";
  }
  throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no model.safetensors"), hint);
}

namespace {

void check_rows(std::int64_t rows, const Tokenizer& tokenizer, const std::string& folder) {
  const std::int64_t size = tokenizer.vocab_size();
  // Tables are often padded by a few rows. A vocabulary that lacks a tenth of them is truncated or of another model,
  // and most words would silently become unknown.
  if (size <= rows && size >= rows - rows / 10) return;
  bad_file(folder,
           concat_text("the tokeniser has ids up to ", size - 1, ", but \"vocab_size\" of config.json is ", rows),
           size < rows ? "the vocabulary is incomplete, or belongs to another model than the weights"
                       : "the vocabulary and the weights belong to different models");
}

}  // namespace

void check_vocabulary(const BertConfig& config, const Tokenizer& tokenizer, const std::string& folder) {
  check_rows(config.vocab_size, tokenizer, folder);
}
void check_vocabulary(const EncoderConfig& config, const Tokenizer& tokenizer, const std::string& folder) {
  check_rows(config.vocab_size, tokenizer, folder);
}

}  // namespace rlx
