// The configuration of a text encoder: its sizes, and the variant of each part. One struct serves every family; each
// family's key names are its record in families/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/models/decoder_config.h"

namespace rlx {

class JsonDocument;

/// How token vectors [B, S, H] become one vector [B, H]. Padding is ignored.
enum class Pooling : std::uint8_t { Mean, Cls, Max, MeanSqrtLength, LastToken };

/// Position encodings besides rotary ones.
enum class EncoderPositions : std::uint8_t {
  None,
  Learned,       // row i of a table for token i
  AfterPadding,  // RoBERTa: row padding + i for the i-th token (from 1) that is not padding
};

/// Properties that may differ between layers.
struct EncoderLayer {
  std::int64_t reach = 0;      // tokens attended to on each side (causal: before itself); 0: all
  int rope = -1;               // index in `ropes`; -1: none
  bool attention_norm = true;  // whether the layer has `names.attention_norm`
};

/// Names of weights, without ".weight" and ".bias". Names of layer weights follow `layer`, where "{}" stands for the
/// layer number. An empty name means that the model has no such part.
struct EncoderNames {
  std::string prefix;  // prefix of all names but the head; files may omit it
  std::string embedding, positions, types, embedding_norm, relative_bias, layer, final_norm;
  std::string q, k, v, qkv, o, q_norm, k_norm;
  std::string gate, up, gate_up, down;
  // Norms of the input of a part, of its output, and of the residual sum.
  std::string attention_norm, attention_post_norm, attention_sum_norm;
  std::string ff_norm, ff_post_norm, ff_sum_norm;
  std::string token_head;            // the matrix of token logits: the embedding where they share it
  std::vector<std::string> others;   // prefixes of names of heads that files may hold and the model does not read
  std::vector<std::string> ignored;  // suffixes of such names
};

/// The answer tokens of a language model that is asked a yes/no question.
struct AnswerTokens {
  std::int32_t no = 0, yes = 0;
};

/// The head of `*ForSequenceClassification`: pool, act(dense), norm, out.
struct ClassifierSpec {
  std::int64_t labels = 1;
  Pooling pooling = Pooling::Cls;
  std::string dense{}, norm{}, out{};  // names of weights; empty: no such part
  bool dense_bias = true, norm_bias = true, out_bias = true;
  ActivationKind activation = ActivationKind::Tanh;
  std::optional<AnswerTokens> answers{};  // the label is the logit of yes minus that of no
};

/// A linear layer on pooled vectors, act(x w^T + b): the Dense module of sentence-transformers.
struct DenseSpec {
  std::string name;  // name of the weights, without ".weight" and ".bias"
  std::int64_t in = 0, out = 0;
  bool bias = true;
  std::optional<ActivationKind> activation{};
};

/// A text encoder: token ids in, one vector per token out.
struct EncoderConfig {
  std::string family;  // "bert", "modernbert", ...: `model_type`
  std::int64_t vocab_size = 0, hidden_size = 0, ff_size = 0;
  std::int64_t num_heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_tokens = 0;  // maximum tokens of a text
  EncoderPositions positions = EncoderPositions::None;
  std::int64_t position_rows = 0;    // rows of the position table
  std::int64_t padding_id = 0;       // for AfterPadding
  std::int64_t type_vocab_size = 0;  // 0: no token types
  NormKind norm = NormKind::Layer;
  double norm_eps = 1e-12;
  double norm_offset = 0;  // added to the norms' weights (Gemma: 1)
  bool norm_bias = true;
  ActivationKind activation = ActivationKind::Gelu;
  bool gated = false;  // down(act(gate(x)) * up(x)), else down(act(up(x))); `gate_up` has gate rows first
  bool qkv_bias = true, o_bias = true, up_bias = true, down_bias = true;
  QkNorm qk_norm = QkNorm::None;
  QkvLayout qkv_layout = QkvLayout::Parts;
  std::optional<double> attention_scale{};  // unset: head_dim^-0.5
  std::optional<double> attention_softcap{};
  double embedding_scale = 1;
  double residual_scale = 1;             // factor of each part's output
  bool causal = false;                   // a token attends to itself and earlier tokens
  std::int64_t relative_buckets = 0;     // buckets of the relative position bias (MPNet); 0: none
  std::int64_t relative_distance = 128;  // distances from here on share the last bucket
  std::vector<RopeSpec> ropes;
  std::vector<EncoderLayer> layers;
  EncoderNames names;
  std::optional<ClassifierSpec> classifier;
};

/// Reads a `config.json` of one of encoder_families(), or of a decoder without experts, latent attention or sinks,
/// which runs without a cache. Errors: BadFile for missing keys, wrong types, and inconsistent sizes; Unsupported for
/// an unknown family, naming the known ones, or an unsupported variant.
EncoderConfig parse_encoder_config(const JsonDocument& document);
/// The supported encoder families, by their `model_type`, sorted.
std::vector<std::string> encoder_families();

}  // namespace rlx
