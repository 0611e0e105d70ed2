// Phi-1.5 and Phi-2: parallel attention and feed-forward after one layer norm.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

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

void read_phi2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  c.parallel = c.head_bias = true;
  DecoderNames& n = c.names;
  n.gate = "", n.ff_norm = n.attention_norm;
  if (k.has_tensor("blk.0.attn_qkv.weight")) n.q = n.k = n.v = "", n.qkv = "attn_qkv";
}

void write_phi(SettingsWriter& out) { out.need("qk_layernorm", false); }
void write_phi_config(ConfigWriter& out) {
  out.settings(), out.heads();
  out.member("partial_rotary_factor", out.part_rotated());
  out.flags();
}

// clang-format off
constexpr TensorRule kPhiTensors[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight", TensorChange::None, TensorNeed::Optional},
    {"lm_head.bias", "output.bias"},
    {"model.final_layernorm.weight", "output_norm.weight"},
    {"model.final_layernorm.bias", "output_norm.bias"},
    RLX_INPUT_LAYER_NORM,
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    {"model.layers.{}.self_attn.dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.dense.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias"},
};
constexpr SettingRule kPhiSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
};
// clang-format on

constexpr DecoderFamily kPhi{
    .model_type = "phi",
    .hf_class = "PhiForCausalLM",
    .read_config = read_phi,
    .gguf = "phi2",
    .read_gguf = read_phi2,
    .tensors = kPhiTensors,
    .settings = kPhiSettings,
    .activation = "gelu_new",
    .rope = {.part = 0.5, .partly = true},
    .llama_cpp = {.heads_fill_width = true, .head_is_own = true},
    .write_gguf = write_phi,
    .write_config = write_phi_config,
};

}  // namespace

extern const ModelFamily phi_family;
const ModelFamily phi_family{.decoder = &kPhi, .encoder = nullptr};

}  // namespace rlx
