// Granite: Llama with scales of embedding, residuals, scores and logits.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_granite(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.embedding_scale = k.positive("embedding_multiplier", 1);
  c.residual_scale = k.positive("residual_multiplier", 1);
  c.attention_scale = k.positive("attention_multiplier", 1);
  c.logit_scale = 1 / k.positive("logits_scaling", 1);
}

void read_granite(const GgufKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  c.embedding_scale = k.positive_or("embedding_scale", 1);
  c.residual_scale = k.positive_or("residual_scale", 1);
  c.logit_scale = 1 / k.positive_or("logit_scale", 1);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
}

// clang-format off
constexpr SettingRule kGraniteSettings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(1e4),
    {"attention_multiplier", "attention.scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"embedding_multiplier", "embedding_scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"residual_multiplier", "residual_scale", GgufKind::F32, SettingNeed::Fallback, 1},
    {"logits_scaling", "logit_scale", GgufKind::F32, SettingNeed::Fallback, 1},
};
// clang-format on

constexpr DecoderFamily kGranite{
    .model_type = "granite",
    .hf_class = "GraniteForCausalLM",
    .read_config = read_granite,
    .gguf = "granite",
    .read_gguf = read_granite,
    .tensors = kLlamaTensors,
    .settings = kGraniteSettings,
    .rope = {.llama3 = true},
};

}  // namespace

extern const ModelFamily granite_family;
const ModelFamily granite_family{.decoder = &kGranite, .encoder = nullptr};

}  // namespace rlx
