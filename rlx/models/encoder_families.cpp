// What each family of encoders calls its parts, and which variants it is made of.
#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/models/config_keys.h"
#include "rlx/models/encoder/encoder_blocks.h"
#include "rlx/models/encoder_config.h"
#include "rlx/models/rope_config.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostEncoderLayers = 1024;  // each is built: a slip of the pen must not take minutes

void divide_heads(const ConfigKeys& k, EncoderConfig& c, std::string_view width, std::string_view heads) {
  if (c.hidden_size % c.num_heads)
    k.bad(concat_text("\"", width, "\" ", c.hidden_size, " is not a multiple of \"", heads, "\" ", c.num_heads));
  c.kv_heads = c.num_heads;
  c.head_dim = c.hidden_size / c.num_heads;
}

double small_number(const ConfigKeys& k, std::string_view key, double fallback) {
  const double v = k.number_or(key, fallback);
  if (!(v >= 0) || v > 1) k.bad(concat_text("\"", key, "\" is ", v, ", expected a small number such as 1e-12"));
  return v;
}

void refuse_flags(const ConfigKeys& k, std::initializer_list<std::string_view> flags) {
  for (const std::string_view key : flags)
    if (k.flag(key, false)) k.unsupported(concat_text("\"", key, "\" is true"), "this version runs encoders alone");
}

std::int64_t label_count(const ConfigKeys& k) {
  const std::optional<ConfigKeys> names = k.object("id2label");
  const std::int64_t count = names ? static_cast<std::int64_t>(names->count()) : k.size_or("num_labels", 2);
  if (count < 1) k.bad("\"id2label\" is empty");
  return count;
}

// The sizes that BERT and what was made after it call the same.
void read_bert_like(const ConfigKeys& k, EncoderConfig& c) {
  refuse_flags(k, {"is_decoder", "add_cross_attention"});
  const std::string positions = k.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    k.unsupported(concat_text("\"position_embedding_type\" is \"", positions, "\", expected \"absolute\""));
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("hidden_size");
  c.layers.resize(static_cast<std::size_t>(k.size("num_hidden_layers", 1, kMostEncoderLayers)));
  c.num_heads = k.size("num_attention_heads");
  c.ff_size = k.size("intermediate_size");
  divide_heads(k, c, "hidden_size", "num_attention_heads");
  c.position_rows = c.max_tokens = k.size("max_position_embeddings");
  c.positions = EncoderPositions::Learned;
  c.norm_eps = small_number(k, "layer_norm_eps", 1e-12);
  c.activation = parse_activation(k, "hidden_act", "gelu");
  c.names = bert_names();
}

void read_bert_types(const ConfigKeys& k, EncoderConfig& c) {
  c.type_vocab_size = k.size_or("type_vocab_size", 2);
  c.names.types = "embeddings.token_type_embeddings";
}

void read_bert(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  read_bert_types(k, c);
  c.names.prefix = "bert.";
  c.names.others = {"pooler.", "cls.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "pooler.dense", .out = "classifier"};
}

// Positions count from behind the padding's row, and padding has that one.
void count_after_padding(const ConfigKeys& k, EncoderConfig& c) {
  c.positions = EncoderPositions::AfterPadding;
  c.padding_id = k.size_or("pad_token_id", 1, 0);
  c.max_tokens = c.position_rows - c.padding_id - 1;
  if (c.max_tokens < 1)
    k.bad(concat_text("\"max_position_embeddings\" ", c.position_rows, " leaves no positions behind \"pad_token_id\" ",
                      c.padding_id));
}

void read_roberta(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  read_bert_types(k, c);
  count_after_padding(k, c);
  c.names.prefix = "roberta.";
  c.names.others = {"pooler.", "lm_head.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "classifier.dense", .out = "classifier.out_proj"};
}

void read_mpnet(const ConfigKeys& k, EncoderConfig& c) {
  read_bert_like(k, c);
  count_after_padding(k, c);
  c.relative_buckets = k.size_or("relative_attention_num_buckets", 32, 4, 1 << 16);
  EncoderNames& n = c.names;
  n.prefix = "mpnet.";
  n.q = "attention.attn.q", n.k = "attention.attn.k", n.v = "attention.attn.v", n.o = "attention.attn.o";
  n.attention_sum_norm = "attention.LayerNorm";
  n.relative_bias = "encoder.relative_attention_bias";
  n.others = {"pooler.", "lm_head.", "classifier."};
  c.classifier = ClassifierSpec{.labels = label_count(k), .dense = "classifier.dense", .out = "classifier.out_proj"};
}

void read_distilbert(const ConfigKeys& k, EncoderConfig& c) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("dim");
  c.layers.resize(static_cast<std::size_t>(k.size("n_layers", 1, kMostEncoderLayers)));
  c.num_heads = k.size("n_heads");
  c.ff_size = k.size("hidden_dim");
  divide_heads(k, c, "dim", "n_heads");
  c.position_rows = c.max_tokens = k.size("max_position_embeddings");
  c.positions = EncoderPositions::Learned;
  c.norm_eps = 1e-12;  // which no file says
  c.activation = parse_activation(k, "activation", "gelu");
  EncoderNames& n = c.names;
  n.prefix = "distilbert.";
  n.embedding = "embeddings.word_embeddings", n.positions = "embeddings.position_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.layer = "transformer.layer.{}.";
  n.q = "attention.q_lin", n.k = "attention.k_lin", n.v = "attention.v_lin", n.o = "attention.out_lin";
  n.attention_sum_norm = "sa_layer_norm", n.ff_sum_norm = "output_layer_norm";
  n.up = "ffn.lin1", n.down = "ffn.lin2";
  n.others = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier.", "classifier."};
  n.ignored = {"embeddings.position_ids"};
  c.classifier = ClassifierSpec{
      .labels = label_count(k), .dense = "pre_classifier", .out = "classifier", .activation = ActivationKind::Relu};
}

void name_nomic_bert(EncoderConfig& c) {
  EncoderNames& n = c.names;
  n.prefix = "bert.";
  n.embedding = "embeddings.word_embeddings";
  if (c.type_vocab_size) n.types = "embeddings.token_type_embeddings";
  n.embedding_norm = "emb_ln";
  n.layer = "encoder.layers.{}.";
  n.qkv = "attn.Wqkv", n.o = "attn.out_proj";
  n.attention_sum_norm = "norm1", n.ff_sum_norm = "norm2";
  n.up = c.gated ? "mlp.fc11" : "mlp.fc1", n.down = "mlp.fc2";
  if (c.gated) n.gate = "mlp.fc12";
  n.others = {"pooler.", "cls.", "classifier."};
  n.ignored = {"rotary_emb.inv_freq"};
}

// Configurations that transformers writes from version 5 on: one gated layer, no biases.
void read_newer_nomic_bert(const ConfigKeys& k, EncoderConfig& c) {
  c.ropes = {read_rope(k, {.head_dim = c.head_dim, .theta = 1000, .max_positions = c.max_tokens})};
  for (EncoderLayer& layer : c.layers) layer.rope = 0;
  c.gated = true;
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = c.o_bias = c.up_bias = c.down_bias = false;
  name_nomic_bert(c);
}

// Nussbaum et al. 2024 (arXiv:2402.01613).
void read_nomic_bert(const ConfigKeys& k, EncoderConfig& c) {
  refuse_flags(k, {"prenorm", "parallel_block", "use_rms_norm", "causal", "scale_attn_by_inverse_layer_idx"});
  for (const std::string_view key : {"rotary_scaling_factor", "rotary_emb_scale_base"})
    if (k.has(key)) k.unsupported(concat_text("\"", key, "\" is given"), "plain rotary positions alone are built");
  if (k.size_or("num_experts", 0, 0) > 0) k.unsupported("\"num_experts\" is given", "dense layers alone are built");
  c.vocab_size = k.size("vocab_size");
  const std::int64_t multiple = k.size_or("pad_vocab_size_multiple", 1);
  c.vocab_size = (c.vocab_size + multiple - 1) / multiple * multiple;
  // Files have GPT-2's names of sizes, or those of transformers from version 5 on.
  const bool newer = k.has("hidden_size") && !k.has("n_embd");
  const std::string_view width = newer ? "hidden_size" : "n_embd", heads = newer ? "num_attention_heads" : "n_head";
  c.hidden_size = k.size(width);
  c.layers.resize(static_cast<std::size_t>(k.size(newer ? "num_hidden_layers" : "n_layer", 1, kMostEncoderLayers)));
  c.num_heads = k.size(heads);
  c.ff_size = k.size_or(newer ? "intermediate_size" : "n_inner", 4 * c.hidden_size);
  divide_heads(k, c, width, heads);
  c.max_tokens = k.size(newer ? "max_position_embeddings" : "n_positions");
  c.type_vocab_size = k.size_or("type_vocab_size", 0, 0);
  c.norm_eps = small_number(k, newer ? "layer_norm_eps" : "layer_norm_epsilon", 1e-12);
  if (newer) return read_newer_nomic_bert(k, c);
  const double fraction = k.number_or("rotary_emb_fraction", 0);
  if (fraction > 0) {
    RopeSpec rope;
    rope.theta = k.positive("rotary_emb_base", 10000);
    rope.rotated = static_cast<std::int64_t>(static_cast<double>(c.head_dim) * fraction);
    if (rope.rotated < 2 || rope.rotated % 2 || rope.rotated > c.head_dim)
      k.bad(concat_text("\"rotary_emb_fraction\" ", fraction, " of a head of ", c.head_dim,
                        " is no even number of elements"));
    if (k.flag("rotary_emb_interleaved", false)) rope.pairing = RopePairing::Interleaved;
    c.ropes = {rope};
    for (EncoderLayer& layer : c.layers) layer.rope = 0;
  } else {
    c.positions = EncoderPositions::Learned;
    c.position_rows = c.max_tokens;
    c.names.positions = "embeddings.position_embeddings";
  }
  const std::string activation = k.text("activation_function", "gelu");
  c.gated = activation == "swiglu" || activation == "geglu" || activation == "glu";
  c.activation = activation == "swiglu"  ? ActivationKind::Silu
                 : activation == "geglu" ? ActivationKind::Gelu
                 : activation == "glu"   ? ActivationKind::Sigmoid
                                         : parse_activation(k, "activation_function", "gelu");
  c.qkv_bias = k.flag("qkv_proj_bias", true);
  c.o_bias = c.qkv_bias;
  c.up_bias = k.flag("mlp_fc1_bias", true), c.down_bias = k.flag("mlp_fc2_bias", true);
  name_nomic_bert(c);
}

// Warner et al. 2024 (arXiv:2412.13663).
void read_modernbert(const ConfigKeys& k, EncoderConfig& c) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("hidden_size");
  c.layers.resize(static_cast<std::size_t>(k.size("num_hidden_layers", 1, kMostEncoderLayers)));
  c.num_heads = k.size("num_attention_heads");
  c.ff_size = k.size("intermediate_size");
  divide_heads(k, c, "hidden_size", "num_attention_heads");
  c.max_tokens = k.size_or("max_position_embeddings", 8192);
  c.norm_eps = small_number(k, "norm_eps", 1e-5);
  c.norm_bias = k.flag("norm_bias", false);
  c.activation = parse_activation(k, "hidden_activation", "gelu");
  c.gated = true;
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.up_bias = c.down_bias = k.flag("mlp_bias", false);
  RopeDefaults global{.head_dim = c.head_dim, .theta = k.positive("global_rope_theta", 160000)};
  global.max_positions = c.max_tokens, global.part = "full_attention";
  RopeDefaults local{.head_dim = c.head_dim, .theta = k.positive("local_rope_theta", 10000)};
  local.max_positions = c.max_tokens, local.part = "sliding_attention";
  c.ropes = {read_rope(k, global), read_local_rope(k, local)};
  const std::int64_t every = k.size_or("global_attn_every_n_layers", 3), window = k.size_or("local_attention", 128);
  std::vector<std::string> types;
  if (k.has("layer_types")) types = k.texts("layer_types");
  if (!types.empty() && types.size() != c.layers.size())
    k.bad(concat_text("\"layer_types\" has ", types.size(), " entries for ", c.layers.size(), " layers"));
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool slides = types.empty() ? static_cast<std::int64_t>(i) % every != 0 : types[i] == "sliding_attention";
    if (slides && window < 2) k.bad(concat_text("\"local_attention\" is ", window, ", expected at least 2"));
    c.layers[i].reach = slides ? window / 2 : 0;
    c.layers[i].rope = slides ? 1 : 0;
    c.layers[i].attention_norm = i > 0;  // the embedding's norm is the first one
  }
  EncoderNames& n = c.names;
  n.prefix = "model.";
  n.embedding = "embeddings.tok_embeddings", n.embedding_norm = "embeddings.norm", n.final_norm = "final_norm";
  n.layer = "layers.{}.";
  n.qkv = "attn.Wqkv", n.o = "attn.Wo", n.attention_norm = "attn_norm";
  n.gate_up = "mlp.Wi", n.down = "mlp.Wo", n.ff_norm = "mlp_norm";
  n.others = {"head.", "decoder.", "classifier."};
  const std::string pooling = k.text("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean")
    k.unsupported(concat_text("\"classifier_pooling\" is \"", pooling, "\""), "known are cls and mean");
  ClassifierSpec s{.labels = label_count(k), .dense = "head.dense", .norm = "head.norm", .out = "classifier"};
  s.pooling = pooling == "cls" ? Pooling::Cls : Pooling::Mean;
  s.dense_bias = k.flag("classifier_bias", false), s.norm_bias = c.norm_bias;
  s.activation = parse_activation(k, "classifier_activation", "gelu");
  c.classifier = s;
}

// A decoder that is run without a cache: its last vectors are what a text is told by.
EncoderConfig encoder_of(const DecoderConfig& d, const ConfigKeys& k) {
  const DecoderNames& from = d.names;
  const char* const lacking = d.moe                     ? "experts"
                              : d.mla                   ? "latent heads"
                              : !from.sinks.empty()     ? "attention sinks"
                              : !from.positions.empty() ? "learned positions"
                              : d.parallel              ? "parallel layers"
                                                        : nullptr;
  if (lacking)
    k.unsupported(concat_text("texts are not embedded by decoders with ", lacking, ", as a ", d.family, " has"));
  EncoderConfig c;
  c.family = d.family;
  c.vocab_size = d.vocab_size, c.hidden_size = d.hidden_size, c.ff_size = d.ff_size;
  c.num_heads = d.num_heads, c.kv_heads = d.kv_heads, c.head_dim = d.head_dim;
  c.max_tokens = d.max_positions;
  c.norm = d.norm, c.norm_eps = d.norm_eps, c.norm_offset = d.norm_offset, c.norm_bias = d.norm_bias;
  c.activation = d.activation, c.gated = d.gated;
  c.qkv_bias = d.qkv_bias, c.o_bias = d.o_bias, c.up_bias = c.down_bias = d.ff_bias;
  c.qk_norm = d.qk_norm, c.qkv_layout = d.qkv_layout;
  c.attention_scale = d.attention_scale, c.attention_softcap = d.attention_softcap;
  c.embedding_scale = d.embedding_scale, c.residual_scale = d.residual_scale;
  c.causal = !d.bidirectional;
  c.ropes = d.ropes;
  for (const DecoderLayer& layer : d.layers)
    c.layers.push_back({.reach = layer.window ? layer.window - 1 : 0, .rope = layer.rope});
  EncoderNames& n = c.names;
  n.prefix = from.embedding.substr(0, from.embedding.find('.') + 1);
  const auto stripped = [&](const std::string& name) {
    return name.starts_with(n.prefix) ? name.substr(n.prefix.size()) : name;
  };
  n.embedding = stripped(from.embedding), n.final_norm = stripped(from.final_norm), n.layer = stripped(from.layer);
  n.q = from.q, n.k = from.k, n.v = from.v, n.qkv = from.qkv, n.o = from.o;
  n.q_norm = from.q_norm, n.k_norm = from.k_norm;
  n.gate = from.gate, n.up = from.up, n.gate_up = from.gate_up, n.down = from.down;
  n.attention_norm = from.attention_norm, n.attention_post_norm = from.attention_post_norm;
  n.ff_norm = from.ff_norm, n.ff_post_norm = from.ff_post_norm;
  n.token_head = d.tied ? n.embedding : from.head;
  n.others = {from.head + ".", "score."};
  n.ignored = from.ignored;
  ClassifierSpec s{.labels = label_count(k), .pooling = Pooling::LastToken, .out = "score"};
  s.out_bias = false;
  c.classifier = s;
  return c;
}

struct EncoderFamily {
  std::string_view model_type;
  void (*read)(const ConfigKeys&, EncoderConfig&);
};
constexpr EncoderFamily kEncoderFamilies[] = {
    {"bert", read_bert},
    {"camembert", read_roberta},
    {"distilbert", read_distilbert},
    {"modernbert", read_modernbert},
    {"mpnet", read_mpnet},
    {"nomic_bert", read_nomic_bert},
    {"roberta", read_roberta},
    {"xlm-roberta", read_roberta},
};

}  // namespace

EncoderNames bert_names() {
  EncoderNames n;
  n.embedding = "embeddings.word_embeddings", n.positions = "embeddings.position_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.layer = "encoder.layer.{}.";
  n.q = "attention.self.query", n.k = "attention.self.key", n.v = "attention.self.value";
  n.o = "attention.output.dense", n.attention_sum_norm = "attention.output.LayerNorm";
  n.up = "intermediate.dense", n.down = "output.dense", n.ff_sum_norm = "output.LayerNorm";
  n.ignored = {"embeddings.position_ids", "embeddings.token_type_ids"};
  return n;
}

std::vector<std::string> encoder_families() {
  std::vector<std::string> out;
  for (const EncoderFamily& f : kEncoderFamilies) out.emplace_back(f.model_type);
  return out;
}

EncoderConfig parse_encoder_config(const JsonDocument& document) try {
  const JsonValue root = document.root_object();
  const ConfigKeys keys(root, document.source());
  const std::string type(root.get_string("model_type"));
  for (const EncoderFamily& f : kEncoderFamilies) {
    if (f.model_type != type) continue;
    EncoderConfig c;
    c.family = type;
    f.read(keys, c);
    return c;
  }
  const std::vector<std::string> decoders = decoder_families();
  if (std::find(decoders.begin(), decoders.end(), type) != decoders.end())
    return encoder_of(parse_decoder_of_texts(document), keys);
  const std::vector<std::string> known = encoder_families();
  keys.unsupported(concat_text("\"model_type\" is \"", type, "\", which is no encoder of texts that rlx knows"),
                   concat_text("known are ", quoted_names(known, known.size()),
                               ", and decoders: ", quoted_names(decoders, decoders.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_encoder_config");
}

}  // namespace rlx
