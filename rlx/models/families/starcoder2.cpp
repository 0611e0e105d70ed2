// StarCoder2.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_starcoder2(const ConfigKeys& k, DecoderConfig& c) {
  read_layer_normed(k, c, 1);
  c.norm_eps = k.positive("norm_epsilon", 1e-5);
  c.activation = parse_activation(k, "hidden_act", "gelu_pytorch_tanh");
  c.gated = false;
  c.qkv_bias = c.o_bias = c.ff_bias = k.flag("use_bias", true);
  c.tied = k.flag("tie_word_embeddings", true);
  c.names.gate = "", c.names.up = "mlp.c_fc", c.names.down = "mlp.c_proj";
  if (k.has("sliding_window")) read_windows(k, c, k.size("sliding_window"), [](std::size_t) { return true; });
}

void read_starcoder2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.gated = false;
  c.names.gate = "";
}

void write_starcoder2(SettingsWriter& out) {
  if (present(out.config(), "sliding_window") && out.config().get_bool("use_sliding_window", true))
    SettingsWriter::refuse("a sliding window of starcoder2");
  out.need("use_bias", true);
}
void write_starcoder2_config(ConfigWriter& out) {
  out.settings(), out.heads();
  out.member("use_bias", out.has_tensor("blk.0.attn_q.bias"));
  out.flags();
  out.write_common_window();
}

// clang-format off
constexpr TensorRule kStarcoder2Tensors[] = {
    RLX_TABLE_TENSORS, {"model.norm.bias", "output_norm.bias"}, RLX_INPUT_LAYER_NORM,
    RLX_ATTENTION_TENSORS(None, None),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"model.layers.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", TensorChange::None, TensorNeed::Optional},
    {"model.layers.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias", TensorChange::None, TensorNeed::Optional},
};
constexpr SettingRule kStarcoder2Settings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_THETA(1e4),
    {"norm_epsilon", "attention.layer_norm_epsilon", GgufKind::F32, SettingNeed::Fallback, 1e-5},
};
// clang-format on

constexpr DecoderFamily kStarcoder2{
    .model_type = "starcoder2",
    .hf_class = "Starcoder2ForCausalLM",
    .read_config = read_starcoder2,
    .gguf = "starcoder2",
    .read_gguf = read_starcoder2,
    .tensors = kStarcoder2Tensors,
    .settings = kStarcoder2Settings,
    .activation = "gelu_pytorch_tanh",
    .tied = true,
    .llama_cpp = {.heads_fill_width = true},
    .write_gguf = write_starcoder2,
    .write_config = write_starcoder2_config,
};

}  // namespace

extern const ModelFamily starcoder2_family;
const ModelFamily starcoder2_family{.decoder = &kStarcoder2, .encoder = nullptr};

}  // namespace rlx
