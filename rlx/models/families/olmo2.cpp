// OLMo 2: norms after attention and feed-forward instead of before them; q and k are normalised over all heads.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_olmo2(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.norm_eps = k.positive("rms_norm_eps", 1e-5);
  c.ff_bias = false;
  c.qk_norm = QkNorm::Width;
  DecoderNames& n = c.names;
  n.q_norm = "self_attn.q_norm", n.k_norm = "self_attn.k_norm";
  n.attention_norm = n.ff_norm = "";
  n.attention_post_norm = "post_attention_layernorm", n.ff_post_norm = "post_feedforward_layernorm";
}

void read_olmo2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.qk_norm = QkNorm::Width;
  DecoderNames& n = c.names;
  n.q_norm = "attn_q_norm", n.k_norm = "attn_k_norm", n.attention_norm = n.ff_norm = "";
  name_post_norms(n);
}

// clang-format off
constexpr TensorRule kOlmo2Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_QK_NORMS(None), RLX_GATED_TENSORS(Always),
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
};
constexpr SettingRule kOlmo2Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(1e4)};
// clang-format on

constexpr DecoderFamily kOlmo2{
    .model_type = "olmo2",
    .hf_class = "Olmo2ForCausalLM",
    .read_config = read_olmo2,
    .gguf = "olmo2",
    .read_gguf = read_olmo2,
    .tensors = kOlmo2Tensors,
    .settings = kOlmo2Settings,
    .llama_cpp = {.heads_fill_width = true, .head_is_own = true},
};

}  // namespace

extern const ModelFamily olmo2_family;
const ModelFamily olmo2_family{.decoder = &kOlmo2, .encoder = nullptr};

}  // namespace rlx
