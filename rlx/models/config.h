// The configuration of a sentence-embedding encoder in a Hugging Face model folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/error.h"
#include "rlx/models/encoder_config.h"

namespace rlx {

class JsonDocument;
class Tokenizer;

/// The activation between the two linear layers of a block.
enum class HiddenActivation : std::uint8_t { Gelu, GeluTanh, Relu, Silu };

/// Sizes of a BERT encoder, as in `config.json`.
struct BertConfig {
  std::int64_t hidden_size = 0;  // H
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t intermediate_size = 0;  // width of the feed-forward layer
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;    // rows of the position embedding
  std::int64_t type_vocab_size = 0;  // rows of the token type embedding
  double layer_norm_eps = 0;
  HiddenActivation activation = HiddenActivation::Gelu;

  /// Throws InvalidArgument when there are no heads.
  std::int64_t head_dim() const {
    if (num_heads < 1)
      throw Error(ErrorCode::InvalidArgument, concat_text("BertConfig::num_heads must be at least 1, got ", num_heads));
    return hidden_size / num_heads;
  }
};

/// "mean", "cls", "max", "mean-sqrt-length", "last-token".
std::string_view pooling_name(Pooling pooling);

/// The configuration of a sentence-embedding model folder, without weights and vocabulary.
struct SentenceModelConfig {
  EncoderConfig encoder;
  BertConfig bert;  // the BERT sizes of a BERT model; zeros for other families
  Pooling pooling = Pooling::Mean;
  std::vector<DenseSpec> dense;   // layers after pooling; names begin with the folder of the weights and a slash
  bool normalize = true;          // divide the vector by its L2 norm
  bool lowercase_text = false;    // texts are lower-cased before tokenisation
  std::int64_t max_sequence = 0;  // tokens per text, including special ones
  std::vector<std::pair<std::string, std::string>> prompts;  // names, and the text put before an input
  std::string default_prompt;                                // a name, or empty

  /// Number of elements of a vector.
  std::int64_t width() const { return dense.empty() ? encoder.hidden_size : dense.back().out; }
};

/// Reads a `config.json`. Errors: BadFile for missing keys, wrong types and inconsistent sizes; Unsupported for another
/// architecture, activation or kind of position embedding.
BertConfig parse_bert_config(const JsonDocument& document);

/// Reads `config.json`, and if present `modules.json` with the modules it names, `sentence_bert_config.json` and
/// `config_sentence_transformers.json`. A folder without `modules.json` gets mean pooling (or the one of
/// `1_Pooling/config.json`) and L2 normalisation. Errors: NotFound when there is no `config.json`; those of
/// parse_encoder_config; Unsupported for unknown modules or another order of modules.
SentenceModelConfig read_sentence_config(const std::string& folder);

/// The `config.json` of a model folder. Errors: NotFound naming what the folder holds instead; those of
/// JsonDocument::read.
JsonDocument read_model_config(const std::string& folder);

/// Path of the weights, `model.safetensors`. Errors: NotFound with advice for the formats found instead.
std::string weights_path(const std::string& folder);

/// Checks that every id of the tokeniser has a row in the embedding, and that at least nine tenths of the rows have an
/// id. Errors: BadFile.
void check_vocabulary(const BertConfig& config, const Tokenizer& tokenizer, const std::string& folder);
void check_vocabulary(const EncoderConfig& config, const Tokenizer& tokenizer, const std::string& folder);

}  // namespace rlx
