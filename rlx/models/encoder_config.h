// What an encoder of texts is made of: its sizes, and which of the known variants each part is. One description serves
// every family; what a family's `config.json` calls things is its record in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

class JsonDocument;

/// How token vectors [B, S, H] become one vector [B, H]; padding never counts.
enum class Pooling : std::uint8_t { Mean, Cls, Max, MeanSqrtLength, LastToken };

/// Where tokens learn their places from besides rotation.
enum class EncoderPositions : std::uint8_t {
  None,
  Learned,       // row i of a table for token i
  AfterPadding,  // RoBERTa's: row padding + i for the i-th token (from 1) that is no padding
};

/// What may differ from layer to layer.
struct EncoderLayer {
  std::int64_t reach = 0;      // tokens that a token sees on each side (causal: before itself); 0: all
  int rope = -1;               // in `ropes`; -1: none
  bool attention_norm = true;  // whether `names.attention_norm` is there
};

/// Names of weights, without ".weight" and ".bias"; those of layers behind `layer`, where "{}" stands for the number.
/// An empty name: the model has no such part.
struct EncoderNames {
  std::string prefix;  // that files may have before the names of all but the head
  std::string embedding, positions, types, embedding_norm, relative_bias, layer, final_norm;
  std::string q, k, v, qkv, o, q_norm, k_norm;
  std::string gate, up, gate_up, down;
  // Norms of what enters a part, of what leaves it, and of the sum with what entered.
  std::string attention_norm, attention_post_norm, attention_sum_norm;
  std::string ff_norm, ff_post_norm, ff_sum_norm;
  std::string token_head;            // what logits of tokens are made with: the embedding where they share it
  std::vector<std::string> others;   // beginnings of names of heads that files may hold and that are not read
  std::vector<std::string> ignored;  // ends of such names
};

/// The tokens that a language model answers a question with.
struct AnswerTokens {
  std::int32_t no = 0, yes = 0;
};

/// What `*ForSequenceClassification` puts on the tokens: pool, act(dense), norm, out.
struct ClassifierSpec {
  std::int64_t labels = 1;
  Pooling pooling = Pooling::Cls;
  std::string dense{}, norm{}, out{};  // names of weights; empty: no such part
  bool dense_bias = true, norm_bias = true, out_bias = true;
  ActivationKind activation = ActivationKind::Tanh;
  std::optional<AnswerTokens> answers{};  // `out` makes logits of tokens, and the one label is yes's above no's
};

/// A linear layer on pooled vectors, act(x w^T + b): the Dense module of sentence-transformers.
struct DenseSpec {
  std::string name;  // of its weights, without ".weight" and ".bias"
  std::int64_t in = 0, out = 0;
  bool bias = true;
  std::optional<ActivationKind> activation{};
};

/// An encoder of texts: tokens in, a vector of each out.
struct EncoderConfig {
  std::string family;  // "bert", "modernbert", ...: `model_type`
  std::int64_t vocab_size = 0, hidden_size = 0, ff_size = 0;
  std::int64_t num_heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_tokens = 0;  // of a text
  EncoderPositions positions = EncoderPositions::None;
  std::int64_t position_rows = 0;    // of the table of positions
  std::int64_t padding_id = 0;       // of AfterPadding
  std::int64_t type_vocab_size = 0;  // 0: no token types
  NormKind norm = NormKind::Layer;
  double norm_eps = 1e-12;
  double norm_offset = 0;  // added to the norms' weights (Gemma: 1)
  bool norm_bias = true;
  ActivationKind activation = ActivationKind::Gelu;
  bool gated = false;  // down(act(gate(x)) * up(x)), else down(act(up(x))); `gate_up` has gate first
  bool qkv_bias = true, o_bias = true, up_bias = true, down_bias = true;
  QkNorm qk_norm = QkNorm::None;
  QkvLayout qkv_layout = QkvLayout::Parts;
  std::optional<double> attention_scale{};  // head_dim^-0.5
  std::optional<double> attention_softcap{};
  double embedding_scale = 1;
  double residual_scale = 1;             // of what a part adds
  bool causal = false;                   // a token sees itself and those before it
  std::int64_t relative_buckets = 0;     // of distances with a bias of the scores each (MPNet); 0: none
  std::int64_t relative_distance = 128;  // from which on all share the last one
  std::vector<RopeSpec> ropes;
  std::vector<EncoderLayer> layers;
  EncoderNames names;
  std::optional<ClassifierSpec> classifier;
};

/// Reads a `config.json`: one of encoder_families(), or a decoder without experts, latent heads or sinks, which is run
/// without a cache. Errors: BadFile for missing keys, wrong types, and sizes that do not fit together; Unsupported for
/// another family, naming those that are known, or a variant of one that is not built.
EncoderConfig parse_encoder_config(const JsonDocument& document);
/// The families of encoders that are known, by their `model_type`, sorted.
std::vector<std::string> encoder_families();

}  // namespace rlx
