// StableLM, without norms of q and k.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_stablelm(const ConfigKeys& k, DecoderConfig& c) {
  read_layer_normed(k, c, 0.25);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = k.flag("use_qkv_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
  c.parallel = k.flag("use_parallel_residual", false);
  if (c.parallel) c.names.ff_norm = c.names.attention_norm;
}

// Where attention and feed-forward share one norm, the second norm is absent.
void read_stablelm(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  if (k.has_tensor("blk.0.attn_q_norm.weight")) k.unsupported("its q and k have layer norms (StableLM 2 12B)");
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.parallel = !k.has_tensor("blk.0.ffn_norm.weight");
  if (c.parallel) c.names.ff_norm = c.names.attention_norm;
}

void write_stablelm(SettingsWriter& out) { out.need("qk_layernorm", false); }
void write_stablelm_config(ConfigWriter& out) {
  out.settings(), out.heads();
  out.member("partial_rotary_factor", out.part_rotated());
  out.member("use_qkv_bias", out.has_tensor("blk.0.attn_q.bias"));
  out.flags();
}

// clang-format off
constexpr TensorRule kStablelmTensors[] = {
    RLX_TABLE_TENSORS, {"model.norm.bias", "output_norm.bias"}, RLX_INPUT_LAYER_NORM,
    RLX_ATTENTION_TENSORS(None, None),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::None,
     TensorNeed::Optional},
    {"model.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias", TensorChange::None, TensorNeed::Optional},
    RLX_GATED_TENSORS(Always),
};
constexpr SettingRule kStablelmSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"layer_norm_eps", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
    {"use_parallel_residual", "use_parallel_residual", GgufKind::Bool, SettingNeed::Fallback, 0},
};
// clang-format on

constexpr DecoderFamily kStablelm{
    .model_type = "stablelm",
    .hf_class = "StableLmForCausalLM",
    .read_config = read_stablelm,
    .gguf = "stablelm",
    .read_gguf = read_stablelm,
    .tensors = kStablelmTensors,
    .settings = kStablelmSettings,
    .rope = {.part = 0.25, .partly = true},
    .llama_cpp = {.heads_fill_width = true, .head_is_own = true},
    .write_gguf = write_stablelm,
    .write_config = write_stablelm_config,
};

}  // namespace

extern const ModelFamily stablelm_family;
const ModelFamily stablelm_family{.decoder = &kStablelm, .encoder = nullptr};

}  // namespace rlx
