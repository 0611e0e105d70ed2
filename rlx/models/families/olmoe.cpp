// OLMoE: experts in every layer; q and k are normalised over all heads.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_olmoe(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.norm_eps = k.positive("rms_norm_eps", 1e-5);
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

void read_olmoe(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.qk_norm = QkNorm::Width;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
  c.moe = read_experts(k, c.ff_size);
  c.moe->normalize = k.flag("expert_weights_norm", false);
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

void write_olmoe(SettingsWriter& out) {
  out.need("norm_topk_prob", false);
  if (present(out.config(), "clip_qkv")) SettingsWriter::refuse("\"clip_qkv\"");
}
void write_olmoe_config(ConfigWriter& out) {
  out.settings(), out.heads();
  out.member("norm_topk_prob", false);
  out.flags();
}

// clang-format off
constexpr SettingRule kOlmoeSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4),
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
// clang-format on

constexpr DecoderFamily kOlmoe{
    .model_type = "olmoe",
    .hf_class = "OlmoeForCausalLM",
    .read_config = read_olmoe,
    .gguf = "olmoe",
    .read_gguf = read_olmoe,
    .tensors = kQwen3MoeTensors,
    .settings = kOlmoeSettings,
    .llama_cpp = {.heads_fill_width = true, .head_is_own = true},
    .write_gguf = write_olmoe,
    .write_config = write_olmoe_config,
};

}  // namespace

extern const ModelFamily olmoe_family;
const ModelFamily olmoe_family{.decoder = &kOlmoe, .encoder = nullptr};

}  // namespace rlx
