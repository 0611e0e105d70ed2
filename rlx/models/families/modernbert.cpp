// ModernBERT (Warner et al. 2024, arXiv:2412.13663): sliding windows, two kinds of rotary positions, pre-norm layers.
#include <string>
#include <vector>

#include "rlx/error.h"
#include "rlx/models/encoder_keys.h"
#include "rlx/models/model_family.h"
#include "rlx/models/rope_config.h"

namespace rlx {

namespace {

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
    k.unsupported(concat_text("\"classifier_pooling\" is \"", pooling, "\""), "supported are cls and mean");
  ClassifierSpec s{.labels = label_count(k), .dense = "head.dense", .norm = "head.norm", .out = "classifier"};
  s.pooling = pooling == "cls" ? Pooling::Cls : Pooling::Mean;
  s.dense_bias = k.flag("classifier_bias", false), s.norm_bias = c.norm_bias;
  s.activation = parse_activation(k, "classifier_activation", "gelu");
  c.classifier = s;
}

constexpr EncoderFamily kModernbert{.model_types = {"modernbert"}, .read_config = read_modernbert};

}  // namespace

extern const ModelFamily modernbert_family;
const ModelFamily modernbert_family{.decoder = nullptr, .encoder = &kModernbert};

}  // namespace rlx
