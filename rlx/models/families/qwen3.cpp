// Qwen3: q and k are normalised for each head.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_qwen3(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  if (!k.has("head_dim")) c.head_dim = 128, read_ropes(k, c);
  read_optional_windows(k, c);
}

void read_qwen3(const GgufKeys& k, DecoderConfig& c) {
  read_qwen2(k, c);
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
}

namespace {

// clang-format off
constexpr TensorRule kQwen3Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_LAYER_NORMS,
    RLX_GATED_TENSORS(Always),
};
constexpr SettingRule kQwen3Settings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"head_dim", "attention.key_length", GgufKind::U32, SettingNeed::Fallback, 128},
};
// clang-format on

constexpr DecoderFamily kQwen3{
    .model_type = "qwen3",
    .hf_class = "Qwen3ForCausalLM",
    .read_config = read_qwen3,
    .gguf = "qwen3",
    .read_gguf = read_qwen3,
    .tensors = kQwen3Tensors,
    .settings = kQwen3Settings,
};

}  // namespace

extern const ModelFamily qwen3_family;
const ModelFamily qwen3_family{.decoder = &kQwen3, .encoder = nullptr};

}  // namespace rlx
