// Qwen3 with experts.
#include <algorithm>
#include <vector>

#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_qwen3_moe(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  // transformers 5 writes the second key.
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

void read_qwen3_moe(const GgufKeys& k, DecoderConfig& c) {
  read_qwen3(k, c);
  c.moe = read_experts(k);
  c.moe->normalize = k.flag("expert_weights_norm", true);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].moe = k.has_tensor("blk." + std::to_string(i) + ".ffn_gate_inp.weight");
}

// Assumptions of readers: all layers have experts, whose weights sum to one.
void write_qwen3_moe(SettingsWriter& out) {
  if (const auto dense = present(out.config(), "mlp_only_layers"); dense && dense->size() > 0)
    SettingsWriter::refuse("\"mlp_only_layers\", layers without experts,");
  if (out.config().get_int("decoder_sparse_step", 1) != 1)
    SettingsWriter::refuse("a \"decoder_sparse_step\" other than 1");
  if (!out.config().get_bool("norm_topk_prob", false)) SettingsWriter::refuse("\"norm_topk_prob\": false");
}
void write_qwen3_moe_config(ConfigWriter& out) {
  out.settings(), out.heads(), out.flags();
  out.member("norm_topk_prob", true);
}

// clang-format off
constexpr SettingRule kQwen3MoeSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
};
// clang-format on

constexpr DecoderFamily kQwen3Moe{
    .model_type = "qwen3_moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .read_config = read_qwen3_moe,
    .gguf = "qwen3moe",
    .read_gguf = read_qwen3_moe,
    .tensors = kQwen3MoeTensors,
    .settings = kQwen3MoeSettings,
    .write_gguf = write_qwen3_moe,
    .write_config = write_qwen3_moe_config,
};

}  // namespace

extern const ModelFamily qwen3_moe_family;
const ModelFamily qwen3_moe_family{.decoder = &kQwen3Moe, .encoder = nullptr};

}  // namespace rlx
