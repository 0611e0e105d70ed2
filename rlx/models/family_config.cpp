// Readers that the configuration files of many decoder families share.
#include "rlx/models/family_config.h"

#include <vector>

#include "rlx/error.h"

namespace rlx {

DecoderNames llama_names() {
  DecoderNames n;
  n.embedding = "model.embed_tokens", n.final_norm = "model.norm", n.head = "lm_head", n.layer = "model.layers.{}.";
  n.q = "self_attn.q_proj", n.k = "self_attn.k_proj", n.v = "self_attn.v_proj", n.o = "self_attn.o_proj";
  n.attention_norm = "input_layernorm", n.ff_norm = "post_attention_layernorm";
  n.gate = "mlp.gate_proj", n.up = "mlp.up_proj", n.down = "mlp.down_proj";
  n.ignored = {".rotary_emb.inv_freq"};
  return n;
}

void read_sizes(const ConfigKeys& k, DecoderConfig& c, double eps, std::string_view eps_key) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("hidden_size");
  c.ff_size = k.size("intermediate_size");
  c.layers.resize(static_cast<std::size_t>(k.size("num_hidden_layers", 1, kMostLayers)));
  c.num_heads = k.size("num_attention_heads");
  c.kv_heads = k.size_or("num_key_value_heads", c.num_heads);
  if (!k.has("head_dim") && c.hidden_size % c.num_heads)
    k.bad(
        concat_text("\"hidden_size\" ", c.hidden_size, " is not a multiple of \"num_attention_heads\" ", c.num_heads));
  c.head_dim = k.size_or("head_dim", c.hidden_size / c.num_heads);
  if (c.num_heads % c.kv_heads)
    k.bad(concat_text("\"num_attention_heads\" ", c.num_heads, " is not a multiple of \"num_key_value_heads\" ",
                      c.kv_heads));
  c.max_positions = k.size("max_position_embeddings");
  c.norm_eps = k.positive(eps_key, eps);
  c.names = llama_names();
}

void read_ropes(const ConfigKeys& k, DecoderConfig& c, double theta) {
  c.ropes = {read_rope(k, {.head_dim = c.head_dim, .theta = theta, .max_positions = c.max_positions})};
}

std::optional<double> read_softcap(const ConfigKeys& k, std::string_view key, std::optional<double> fallback) {
  if (!k.has(key)) return k.contains(key) ? std::nullopt : fallback;  // null: the model has no cap
  return k.positive(key, 1);
}

std::int64_t read_window(const ConfigKeys& k, std::int64_t fallback) {
  constexpr std::string_view key = "sliding_window";
  return k.has(key) ? k.size(key) : k.contains(key) ? 0 : fallback;
}

void read_common_window(const ConfigKeys& k, DecoderConfig& c) {
  for (DecoderLayer& layer : c.layers) layer.window = read_window(k, 0);
}

void read_windows(const ConfigKeys& k, DecoderConfig& c, std::int64_t window,
                  const std::function<bool(std::size_t)>& windowed) {
  std::vector<std::string> types;
  if (k.has("layer_types")) {
    types = k.texts("layer_types");
    if (types.size() != c.layers.size())
      k.bad(concat_text("\"layer_types\" has ", types.size(), " entries for ", c.layers.size(), " layers"));
  }
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    bool slides = windowed(i);
    if (!types.empty()) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention")
        k.unsupported(concat_text("\"layer_types\" holds \"", types[i], "\""),
                      "supported are full_attention and sliding_attention");
      slides = types[i] == "sliding_attention";
      if (slides && window == 0)
        k.bad("\"layer_types\" holds \"sliding_attention\", but there is no \"sliding_window\"");
    }
    c.layers[i].window = slides ? window : 0;
  }
}

void read_optional_windows(const ConfigKeys& k, DecoderConfig& c) {
  const std::int64_t window = k.flag("use_sliding_window", false) ? read_window(k, 4096) : 0;
  const auto first = static_cast<std::size_t>(k.size_or("max_window_layers", 28, 0));
  read_windows(k, c, window, [&](std::size_t i) { return i >= first; });
}

MoeSpec read_experts(const ConfigKeys& k, std::string_view count, std::string_view width) {
  MoeSpec m;
  m.experts = k.size(count, 1, kMostExperts);
  m.used = k.size("num_experts_per_tok", 1, kMostExperts);
  m.ff_size = k.size(width);
  if (m.used > m.experts)
    k.bad(concat_text("\"num_experts_per_tok\" is ", m.used, ", but there are ", m.experts, " experts"));
  return m;
}

void name_experts(DecoderNames& n, const std::string& prefix) {
  n.expert_gate = prefix + "gate_proj", n.expert_up = prefix + "up_proj", n.expert_down = prefix + "down_proj";
}

void read_layer_normed(const ConfigKeys& k, DecoderConfig& c, double part) {
  read_sizes(k, c, 1e-5);
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partial = part, d.partly = part != 1;
  c.ropes = {read_rope(k, d)};
  c.norm = NormKind::Layer, c.norm_bias = true;
  if (k.flag("qk_layernorm", false)) k.unsupported("\"qk_layernorm\" is true");
}

}  // namespace rlx
