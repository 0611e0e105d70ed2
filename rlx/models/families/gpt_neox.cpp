// GPT-NeoX and Pythia: fused q, k and v of each head in turn, parallel attention and feed-forward.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_gpt_neox(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5, "layer_norm_eps");
  RopeDefaults d{.head_dim = c.head_dim, .max_positions = c.max_positions};
  d.partial = k.number_or("rotary_pct", 0.25), d.partly = true;
  c.ropes = {read_rope(k, d)};
  // Older files have the base under a key of this family, which then replaces the common key.
  if (!k.has("rope_parameters")) c.ropes[0].theta = k.positive("rotary_emb_base", c.ropes[0].theta);
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

void read_gpt_neox(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::Gelu;
  c.gated = false;
  c.parallel = k.flag("use_parallel_residual", true);
  DecoderNames& n = c.names;
  n.qkv = "attn_qkv", n.q = n.k = n.v = n.gate = "";
}

void write_gpt_neox(SettingsWriter& out) { out.need("attention_bias", true); }
void write_gpt_neox_config(ConfigWriter& out) {
  out.settings();
  out.member("rotary_pct", out.part_rotated()), out.member("rotary_emb_base", static_cast<float>(out.theta()));
  out.flags();
}

// clang-format off
constexpr TensorRule kGptNeoxTensors[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight"},
    {"gpt_neox.final_layer_norm.weight", "output_norm.weight"},
    {"gpt_neox.final_layer_norm.bias", "output_norm.bias"},
    {"embed_out.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"gpt_neox.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"gpt_neox.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"gpt_neox.layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight", TensorChange::HeadsToParts},
    {"gpt_neox.layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias", TensorChange::HeadsToParts},
    {"gpt_neox.layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"gpt_neox.layers.{}.attention.dense.bias", "blk.{}.attn_output.bias"},
    {"gpt_neox.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gpt_neox.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias"},
};
constexpr SettingRule kGptNeoxSettings[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
    {"rotary_emb_base", "rope.freq_base", GgufKind::F32, SettingNeed::Optional},
    {"use_parallel_residual", "use_parallel_residual", GgufKind::Bool, SettingNeed::Fallback, 1},
    {"vocab_size", "vocab_size"},
};
// clang-format on

constexpr DecoderFamily kGptNeox{
    .model_type = "gpt_neox",
    .hf_class = "GPTNeoXForCausalLM",
    .read_config = read_gpt_neox,
    .gguf = "gptneox",
    .read_gguf = read_gpt_neox,
    .tensors = kGptNeoxTensors,
    .settings = kGptNeoxSettings,
    .activation = "gelu",
    .has_head_dim = false,
    .ignored = {".attention.bias", ".attention.masked_bias"},
    .attention_bias = "blk.0.attn_qkv.bias",
    .rope = {.part = 0.25, .partly = true, .part_key = "rotary_pct"},
    .llama_cpp = {.heads_fill_width = true, .head_is_own = true},
    .write_gguf = write_gpt_neox,
    .write_config = write_gpt_neox_config,
};

}  // namespace

extern const ModelFamily gpt_neox_family;
const ModelFamily gpt_neox_family{.decoder = &kGptNeox, .encoder = nullptr};

}  // namespace rlx
