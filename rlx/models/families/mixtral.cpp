// Mixtral: Mistral with experts. GGUF files have the architecture llama.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_mixtral(const ConfigKeys& k, DecoderConfig& c) {
  read_mistral(k, c);
  c.norm_eps = k.positive("rms_norm_eps", 1e-5);
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

// clang-format off
constexpr TensorRule kMixtralTensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(QueryPairs, KeyPairs), RLX_LAYER_NORMS,
    {"model.layers.{}.block_sparse_moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w1.weight", "blk.{}.ffn_gate_exps.weight", TensorChange::Experts},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w3.weight", "blk.{}.ffn_up_exps.weight", TensorChange::Experts},
    {"model.layers.{}.block_sparse_moe.experts.{e}.w2.weight", "blk.{}.ffn_down_exps.weight", TensorChange::Experts},
};
constexpr SettingRule kMixtralSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e6),
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
// clang-format on

constexpr DecoderFamily kMixtral{
    .model_type = "mixtral",
    .hf_class = "MixtralForCausalLM",
    .read_config = read_mixtral,
    .gguf = "llama",
    .files = GgufFiles::WithExperts,
    .tensors = kMixtralTensors,
    .settings = kMixtralSettings,
    .window = GgufWindow::AllLayers,
    .rope = {.llama3 = true},
};

}  // namespace

extern const ModelFamily mixtral_family;
const ModelFamily mixtral_family{.decoder = &kMixtral, .encoder = nullptr};

}  // namespace rlx
