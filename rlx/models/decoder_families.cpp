// What each family of decoders calls its parts, and which variants it is made of.
#include <algorithm>
#include <cmath>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/config_keys.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/rope_config.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostLayers = 1024;   // each is built: a slip of the pen must not take minutes
constexpr std::int64_t kMostExperts = 4096;  // of a layer

double positive(const ConfigKeys& k, std::string_view key, double fallback) { return k.positive(key, fallback); }

std::optional<double> softcap(const ConfigKeys& k, std::string_view key, std::optional<double> fallback = {}) {
  if (!k.has(key)) return k.contains(key) ? std::nullopt : fallback;  // null: the model has none
  return positive(k, key, 1);
}

// Names as Llama has them, which most families took over.
DecoderNames llama_names() {
  DecoderNames n;
  n.embedding = "model.embed_tokens", n.final_norm = "model.norm", n.head = "lm_head", n.layer = "model.layers.{}.";
  n.q = "self_attn.q_proj", n.k = "self_attn.k_proj", n.v = "self_attn.v_proj", n.o = "self_attn.o_proj";
  n.attention_norm = "input_layernorm", n.ff_norm = "post_attention_layernorm";
  n.gate = "mlp.gate_proj", n.up = "mlp.up_proj", n.down = "mlp.down_proj";
  n.ignored = {".rotary_emb.inv_freq"};
  return n;
}

// The sizes that all families but GPT-2 call the same.
void read_sizes(const ConfigKeys& k, DecoderConfig& c, double eps = 1e-6, std::string_view eps_key = "rms_norm_eps") {
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
  c.norm_eps = positive(k, eps_key, eps);
  c.names = llama_names();
}

void read_ropes(const ConfigKeys& k, DecoderConfig& c, double theta = 10000) {
  c.ropes = {read_rope(k, {.head_dim = c.head_dim, .theta = theta, .max_positions = c.max_positions})};
}

// The keys that a token sees in layers with a window; 0 where a file says null.
std::int64_t read_window(const ConfigKeys& k, std::int64_t fallback) {
  constexpr std::string_view key = "sliding_window";
  return k.has(key) ? k.size(key) : k.contains(key) ? 0 : fallback;
}

// A window that all layers have, if there is one.
void read_common_window(const ConfigKeys& k, DecoderConfig& c) {
  for (DecoderLayer& layer : c.layers) layer.window = read_window(k, 0);
}

// Which layers see a window: as "layer_types" says, or else as `windowed(layer)` does.
template <class F>
void read_windows(const ConfigKeys& k, DecoderConfig& c, std::int64_t window, F windowed) {
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
                      "known are full_attention and sliding_attention");
      slides = types[i] == "sliding_attention";
      if (slides && window == 0)
        k.bad("\"layer_types\" holds \"sliding_attention\", but there is no \"sliding_window\"");
    }
    c.layers[i].window = slides ? window : 0;
  }
}

// Qwen's: the layers from max_window_layers on, if any.
void read_optional_windows(const ConfigKeys& k, DecoderConfig& c) {
  const std::int64_t window = k.flag("use_sliding_window", false) ? read_window(k, 4096) : 0;
  const auto first = static_cast<std::size_t>(k.size_or("max_window_layers", 28, 0));
  read_windows(k, c, window, [&](std::size_t i) { return i >= first; });
}

void read_llama(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.ff_bias = k.flag("mlp_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
}

void read_mistral(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.tied = k.flag("tie_word_embeddings", false);
  // Files with types of layers are of Ministral, which is the same otherwise.
  read_windows(k, c, read_window(k, 4096), [](std::size_t) { return true; });
}

void read_qwen2(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = true;
  c.tied = k.flag("tie_word_embeddings", false);
  read_optional_windows(k, c);
}

void read_qwen3(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  if (!k.has("head_dim")) c.head_dim = 128, read_ropes(k, c);
  read_optional_windows(k, c);
}

// Which experts a layer has, and how many a token uses.
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

void read_qwen3_moe(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  // The key that transformers 5 writes is the second.
  const bool second = !k.has("num_experts") && k.has("num_local_experts");
  MoeSpec m = read_experts(k, second ? "num_local_experts" : "num_experts", "moe_intermediate_size");
  m.normalize = k.flag("norm_topk_prob", false);
  c.moe = m;
  c.names.router = "mlp.gate";
  name_experts(c.names, "mlp.experts.{}.");
  std::vector<double> dense;
  if (k.has("mlp_only_layers")) dense = k.numbers("mlp_only_layers");
  const std::int64_t step = k.size_or("decoder_sparse_step", 1, 1, kMostLayers);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].moe = std::find(dense.begin(), dense.end(), static_cast<double>(i)) == dense.end() &&
                      (static_cast<std::int64_t>(i) + 1) % step == 0;
  if (k.flag("use_sliding_window", false)) read_common_window(k, c);
}

void read_gemma(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  if (!k.has("head_dim")) c.head_dim = 256;
  read_ropes(k, c);
  // Files of the first Gemma say "gelu" and mean its approximation; "hidden_activation" came later.
  constexpr std::string_view meant = "gelu_pytorch_tanh";
  if (k.has("hidden_activation"))
    c.activation = parse_activation(k, "hidden_activation", meant);
  else if (c.family == "gemma" && k.text("hidden_act", "gelu") != "gelu")
    c.activation = parse_activation(k, "hidden_act", meant);
  else
    c.activation = ActivationKind::GeluApprox;
  c.bidirectional = k.flag("use_bidirectional_attention", false);
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.tied = k.flag("tie_word_embeddings", true);
  c.norm_offset = 1;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
}

void read_gemma2(const ConfigKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  c.attention_scale = 1 / std::sqrt(positive(k, "query_pre_attn_scalar", 256));
  c.attention_softcap = softcap(k, "attn_logit_softcapping", 50.0);
  c.logit_softcap = softcap(k, "final_logit_softcapping", 30.0);
  c.names.attention_post_norm = "post_attention_layernorm";
  c.names.ff_norm = "pre_feedforward_layernorm", c.names.ff_post_norm = "post_feedforward_layernorm";
  read_windows(k, c, read_window(k, 4096), [](std::size_t i) { return i % 2 == 0; });
  if (c.bidirectional && c.family == "gemma2") k.unsupported("\"use_bidirectional_attention\" is true in a gemma2");
}

void read_gemma3(const ConfigKeys& k, DecoderConfig& c) {
  read_gemma2(k, c);
  c.attention_softcap.reset();  // a key that nobody's code obeys: heads are normalised
  c.logit_softcap = softcap(k, "final_logit_softcapping");
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  const std::int64_t every = k.size_or("sliding_window_pattern", 6);
  // Of tokens on both sides half are before, and the token itself is counted.
  const std::int64_t window = read_window(k, 4096);
  read_windows(k, c, c.bidirectional ? window / 2 + 1 : window,
               [&](std::size_t i) { return (static_cast<std::int64_t>(i) + 1) % every != 0; });
  RopeDefaults d{.head_dim = c.head_dim, .theta = 1e6, .max_positions = c.max_positions};
  d.part = "full_attention";
  RopeDefaults local{.head_dim = c.head_dim, .max_positions = c.max_positions};
  local.theta = positive(k, "rope_local_base_freq", 10000);
  local.part = "sliding_attention";
  c.ropes = {read_rope(k, d), read_local_rope(k, local)};
  for (DecoderLayer& layer : c.layers) layer.rope = layer.window ? 1 : 0;
}

void read_phi3(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partly = true, d.yarn_is_long = true;
  c.ropes = {read_rope(k, d)};
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.q = n.k = n.v = n.gate = n.up = "";
  n.qkv = "self_attn.qkv_proj", n.gate_up = "mlp.gate_up_proj";
  read_common_window(k, c);
}

void read_gpt2(const ConfigKeys& k, DecoderConfig& c) {
  c.vocab_size = k.size("vocab_size");
  c.hidden_size = k.size("n_embd");
  c.layers.assign(static_cast<std::size_t>(k.size("n_layer", 1, kMostLayers)), {.window = 0, .rope = -1, .moe = false});
  c.num_heads = c.kv_heads = k.size("n_head");
  if (c.hidden_size % c.num_heads)
    k.bad(concat_text("\"n_embd\" ", c.hidden_size, " is not a multiple of \"n_head\" ", c.num_heads));
  c.head_dim = c.hidden_size / c.num_heads;
  c.ff_size = k.size_or("n_inner", 4 * c.hidden_size);
  c.max_positions = k.size("n_positions");
  c.norm = NormKind::Layer, c.norm_bias = true;
  c.norm_eps = positive(k, "layer_norm_epsilon", 1e-5);
  c.activation = parse_activation(k, "activation_function", "gelu_new");
  for (const std::string_view key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (k.flag(key, false)) k.unsupported(concat_text("\"", key, "\" is true"));
  if (!k.flag("scale_attn_weights", true)) c.attention_scale = 1;
  c.gated = false;
  c.qkv_bias = c.o_bias = c.ff_bias = true;
  c.weights_in_out = true;
  c.tied = k.flag("tie_word_embeddings", true);
  DecoderNames& n = c.names;
  n.prefix = "transformer.";
  n.embedding = "transformer.wte", n.positions = "transformer.wpe", n.final_norm = "transformer.ln_f";
  n.head = "lm_head", n.layer = "transformer.h.{}.";
  n.qkv = "attn.c_attn", n.o = "attn.c_proj", n.attention_norm = "ln_1", n.ff_norm = "ln_2";
  n.up = "mlp.c_fc", n.down = "mlp.c_proj";
  n.ignored = {".attn.bias", ".attn.masked_bias"};
}

void read_gpt_neox(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5, "layer_norm_eps");
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partial = k.number_or("rotary_pct", 0.25), d.partly = true;
  c.ropes = {read_rope(k, d)};
  // The older layout has a name of its own for it, beside which the common one means nothing.
  if (!k.has("rope_parameters")) c.ropes[0].theta = positive(k, "rotary_emb_base", c.ropes[0].theta);
  c.norm = NormKind::Layer, c.norm_bias = true;
  c.activation = parse_activation(k, "hidden_act", "gelu");
  c.gated = false;
  c.parallel = k.flag("use_parallel_residual", true);
  c.qkv_bias = c.o_bias = k.flag("attention_bias", true);
  c.ff_bias = true;
  c.qkv_layout = QkvLayout::Heads;
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.embedding = "gpt_neox.embed_in", n.final_norm = "gpt_neox.final_layer_norm", n.head = "embed_out";
  n.layer = "gpt_neox.layers.{}.";
  n.q = n.k = n.v = n.gate = "";
  n.qkv = "attention.query_key_value", n.o = "attention.dense";
  n.up = "mlp.dense_h_to_4h", n.down = "mlp.dense_4h_to_h";
  n.ignored = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"};
}

void read_olmo2(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.norm_eps = positive(k, "rms_norm_eps", 1e-5);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Width;
  DecoderNames& n = c.names;
  n.q_norm = "self_attn.q_norm", n.k_norm = "self_attn.k_norm";
  n.attention_norm = n.ff_norm = "";
  n.attention_post_norm = "post_attention_layernorm", n.ff_post_norm = "post_feedforward_layernorm";
}

void read_granite(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.embedding_scale = positive(k, "embedding_multiplier", 1);
  c.residual_scale = positive(k, "residual_multiplier", 1);
  c.attention_scale = positive(k, "attention_multiplier", 1);
  c.logit_scale = 1 / positive(k, "logits_scaling", 1);
}

void read_smollm3(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  read_ropes(k, c, 2e6);
  c.tied = k.flag("tie_word_embeddings", true);
  std::vector<double> roped;
  if (k.has("no_rope_layers")) {  // 1 for a layer with rotation, whatever the key says
    roped = k.numbers("no_rope_layers");
    if (roped.size() != c.layers.size())
      k.bad(concat_text("\"no_rope_layers\" has ", roped.size(), " entries for ", c.layers.size(), " layers"));
  }
  const std::int64_t every = k.size_or("no_rope_layer_interval", 4);
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool rotates = roped.empty() ? (static_cast<std::int64_t>(i) + 1) % every != 0 : roped[i] != 0;
    c.layers[i].rope = rotates ? 0 : -1;
  }
  const bool windows = k.flag("use_sliding_window", false);
  read_windows(k, c, read_window(k, 0), [&](std::size_t i) { return windows && c.layers[i].rope < 0; });
}

void read_mixtral(const ConfigKeys& k, DecoderConfig& c) {
  read_mistral(k, c);
  c.norm_eps = positive(k, "rms_norm_eps", 1e-5);
  if (!k.has("rope_theta") && !k.has("rope_parameters")) read_ropes(k, c, 1e6);
  MoeSpec m = read_experts(k, "num_local_experts", "intermediate_size");
  m.normalize = true;
  c.moe = m;
  DecoderNames& n = c.names;
  const std::string experts = "block_sparse_moe.experts.{}.";
  n.router = "block_sparse_moe.gate";
  n.expert_gate = experts + "w1", n.expert_up = experts + "w3", n.expert_down = experts + "w2";
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

void read_olmoe(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.norm_eps = positive(k, "rms_norm_eps", 1e-5);
  if (k.has("clip_qkv")) k.unsupported("\"clip_qkv\" is set");
  c.ff_bias = false;
  c.qk_norm = QkNorm::Width;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  MoeSpec m = read_experts(k, "num_experts", "intermediate_size");
  m.normalize = k.flag("norm_topk_prob", false);
  c.moe = m;
  c.names.router = "mlp.gate";
  name_experts(c.names, "mlp.experts.{}.");
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

// What StarCoder2, StableLM and Phi have in common: layer norms with biases, and rotary positions of a part of a head.
void read_layer_normed(const ConfigKeys& k, DecoderConfig& c, double part) {
  read_sizes(k, c, 1e-5);
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partial = part, d.partly = part != 1;
  c.ropes = {read_rope(k, d)};
  c.norm = NormKind::Layer, c.norm_bias = true;
  if (k.flag("qk_layernorm", false)) k.unsupported("\"qk_layernorm\" is true");
}

void read_starcoder2(const ConfigKeys& k, DecoderConfig& c) {
  read_layer_normed(k, c, 1);
  c.norm_eps = positive(k, "norm_epsilon", 1e-5);
  c.activation = parse_activation(k, "hidden_act", "gelu_pytorch_tanh");
  c.gated = false;
  c.qkv_bias = c.o_bias = c.ff_bias = k.flag("use_bias", true);
  c.tied = k.flag("tie_word_embeddings", true);
  c.names.gate = "", c.names.up = "mlp.c_fc", c.names.down = "mlp.c_proj";
  if (k.has("sliding_window")) read_windows(k, c, k.size("sliding_window"), [](std::size_t) { return true; });
}

void read_stablelm(const ConfigKeys& k, DecoderConfig& c) {
  read_layer_normed(k, c, 0.25);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = k.flag("use_qkv_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
  c.parallel = k.flag("use_parallel_residual", false);
  if (c.parallel) c.names.ff_norm = c.names.attention_norm;
}

void read_phi(const ConfigKeys& k, DecoderConfig& c) {
  read_layer_normed(k, c, 0.5);
  c.activation = parse_activation(k, "hidden_act", "gelu_new");
  c.gated = false;
  c.parallel = true;
  c.qkv_bias = c.o_bias = c.ff_bias = c.head_bias = true;
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.final_norm = "model.final_layernorm", n.ff_norm = n.attention_norm;
  n.o = "self_attn.dense", n.gate = "", n.up = "mlp.fc1", n.down = "mlp.fc2";
}

void read_gpt_oss(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  read_ropes(k, c, 150000);
  if (!k.has("rope_parameters") && !k.has("rope_scaling")) {  // a file that says nothing means what gpt-oss has
    RopeSpec& s = c.ropes[0];
    s.scaling = RopeScaling::Yarn, s.factor = 32, s.original_context = 4096, s.truncate = false;
    s.beta_fast = 32, s.beta_slow = 1, s.table_scale = 0.1 * std::log(s.factor) + 1;
  }
  c.qkv_bias = c.o_bias = k.flag("attention_bias", true);
  c.tied = k.flag("tie_word_embeddings", false);
  c.names.sinks = "self_attn.sinks";
  MoeSpec m = read_experts(k, "num_local_experts", "intermediate_size");
  m.router = RouterKind::TopKSoftmax;
  m.layout = ExpertLayout::Interleaved;
  m.bias = m.router_bias = true;
  m.clamp = positive(k, "swiglu_limit", 7);
  c.moe = m;
  DecoderNames& n = c.names;
  n.router = "mlp.router", n.expert_gate = "mlp.experts.gate_up_proj", n.expert_down = "mlp.experts.down_proj";
  n.expert_weight = "", n.expert_bias = "_bias";
  for (DecoderLayer& layer : c.layers) layer.moe = true;
  read_windows(k, c, read_window(k, 128), [](std::size_t i) { return i % 2 == 0; });
}

void read_deepseek_v2(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  MlaSpec a;
  a.q_rank = k.size_or("q_lora_rank", 0);
  a.kv_rank = k.size("kv_lora_rank");
  a.nope_dim = k.size("qk_nope_head_dim"), a.rope_dim = k.size("qk_rope_head_dim"), a.v_dim = k.size("v_head_dim");
  c.mla = a;
  c.kv_heads = c.num_heads;
  c.head_dim = a.nope_dim + a.rope_dim;
  read_mla_rope(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.o_bias = k.flag("attention_bias", false);
  c.ff_bias = k.flag("mlp_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
  DecoderNames& n = c.names;
  n.k = n.v = "";
  n.q_a = "self_attn.q_a_proj", n.q_a_norm = "self_attn.q_a_layernorm", n.q_b = "self_attn.q_b_proj";
  n.kv_a = "self_attn.kv_a_proj_with_mqa", n.kv_a_norm = "self_attn.kv_a_layernorm", n.kv_b = "self_attn.kv_b_proj";
  if (!k.has("n_routed_experts")) return;
  MoeSpec m = read_experts(k, "n_routed_experts", "moe_intermediate_size");
  m.shared_ff_size = m.ff_size * k.size_or("n_shared_experts", 0, 0, kMostExperts);
  m.scale = positive(k, "routed_scaling_factor", 1);
  // The scale is for weights that are not normalised, as the authors have it.
  m.normalize = m.used > 1 && k.flag("norm_topk_prob", false);
  if (m.normalize) m.scale = 1;
  const std::string scores = k.text("scoring_func", "softmax"), method = k.text("topk_method", "greedy");
  if (scores != "softmax") k.unsupported(concat_text("\"scoring_func\" is \"", scores, "\", expected \"softmax\""));
  if (method == "group_limited_greedy") {
    m.groups = k.size("n_group", 1, m.experts), m.used_groups = k.size("topk_group", 1, m.groups);
    if (m.experts % m.groups)
      k.bad(concat_text("\"n_routed_experts\" ", m.experts, " is not a multiple of \"n_group\" ", m.groups));
    if (m.used > m.used_groups * (m.experts / m.groups))
      k.bad(concat_text("\"num_experts_per_tok\" is ", m.used, ", but the groups chosen have ",
                        m.used_groups * (m.experts / m.groups), " experts"));
  } else if (method != "greedy" && method != "gready") {
    k.unsupported(concat_text("\"topk_method\" is \"", method, "\""), "known are greedy and group_limited_greedy");
  }
  c.moe = m;
  n.router = "mlp.gate";
  name_experts(n, "mlp.experts.{}.");
  const std::string shared = "mlp.shared_experts.";
  n.shared_gate = shared + "gate_proj", n.shared_up = shared + "up_proj", n.shared_down = shared + "down_proj";
  const std::int64_t dense = k.size_or("first_k_dense_replace", 0, 0), every = k.size_or("moe_layer_freq", 1);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].moe = static_cast<std::int64_t>(i) >= dense && static_cast<std::int64_t>(i) % every == 0;
}

struct Family {
  std::string_view model_type;
  void (*read)(const ConfigKeys&, DecoderConfig&);
};
constexpr Family kFamilies[] = {
    {"deepseek_v2", read_deepseek_v2},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3},
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"gpt_oss", read_gpt_oss},
    {"granite", read_granite},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"olmo2", read_olmo2},
    {"olmoe", read_olmoe},
    {"phi", read_phi},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"smollm3", read_smollm3},
    {"stablelm", read_stablelm},
    {"starcoder2", read_starcoder2},
};

}  // namespace

std::vector<std::string> decoder_families() {
  std::vector<std::string> out;
  for (const Family& f : kFamilies) out.emplace_back(f.model_type);
  return out;
}

DecoderConfig parse_decoder_config(const JsonDocument& document) try {
  DecoderConfig c = parse_decoder_of_texts(document);
  const ConfigKeys keys(document.root_object(), document.source());
  if (c.bidirectional)
    keys.unsupported(
        keys.flag("is_causal", true) ? "\"use_bidirectional_attention\" is true" : "\"is_causal\" is false",
        "such a model embeds texts; it does not write them");
  return c;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_decoder_config");
}

DecoderConfig parse_decoder_of_texts(const JsonDocument& document) try {
  const ConfigKeys keys(document.root_object(), document.source());
  const std::string type(document.root_object().get_string("model_type"));
  for (const Family& f : kFamilies) {
    if (f.model_type != type) continue;
    DecoderConfig c;
    c.family = type;
    f.read(keys, c);
    if (!keys.flag("is_causal", true) && !c.bidirectional) {
      c.bidirectional = true;
      for (DecoderLayer& layer : c.layers)  // then a window is of keys on each side, the token itself not counted
        if (layer.window != 0) ++layer.window;
    }
    return c;
  }
  const std::vector<std::string> known = decoder_families();
  keys.unsupported(concat_text("\"model_type\" is \"", type, "\", which is no decoder that rlx knows"),
                   concat_text("known are ", quoted_names(known, known.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_decoder_of_texts");
}

DecoderConfig read_decoder_config(const std::string& folder) try {
  const std::string path = join_path(folder, "config.json");
  if (!has_file(path))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no config.json"),
                "give the folder of a Hugging Face model: config.json and *.safetensors");
  return parse_decoder_config(JsonDocument::read(path));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_decoder_config");
}

}  // namespace rlx
