// Gemma 2: norms before and after attention and feed-forward, soft caps of scores and logits, a sliding window in every
// second layer.
#include <cmath>

#include "rlx/error.h"
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_gemma2(const ConfigKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  c.attention_scale = 1 / std::sqrt(k.positive("query_pre_attn_scalar", 256));
  c.attention_softcap = read_softcap(k, "attn_logit_softcapping", 50.0);
  c.logit_softcap = read_softcap(k, "final_logit_softcapping", 30.0);
  c.names.attention_post_norm = "post_attention_layernorm";
  c.names.ff_norm = "pre_feedforward_layernorm", c.names.ff_post_norm = "post_feedforward_layernorm";
  read_windows(k, c, read_window(k, 4096), [](std::size_t i) { return i % 2 == 0; });
  if (c.bidirectional && c.family == "gemma2") k.unsupported("\"use_bidirectional_attention\" is true in a gemma2");
}

// The largest model of Gemma 2 and 3 scales scores by hidden size / heads, all others by the head dimension.
void scale_gemma(DecoderConfig& c, std::size_t layers_of_largest) {
  if (c.layers.size() == layers_of_largest)
    c.attention_scale = std::sqrt(static_cast<double>(c.num_heads) / static_cast<double>(c.hidden_size));
}

void check_gemma_scale(SettingsWriter& out, std::int64_t layers_of_largest) {
  const std::int64_t scalar = out.config().get_int("query_pre_attn_scalar", 256);
  const ModelSizes& s = out.sizes();
  if (scalar != (s.layers == layers_of_largest ? s.hidden / s.heads : s.head_dim))
    throw Error(ErrorCode::Unsupported, concat_text("config.json: \"query_pre_attn_scalar\" is ", scalar,
                                                    ", which a GGUF file of ", out.family().gguf, " cannot store"));
}
void write_gemma_scale(ConfigWriter& out, std::int64_t layers_of_largest) {
  const ModelSizes& s = out.sizes();
  out.member("query_pre_attn_scalar", s.layers == layers_of_largest ? s.hidden / s.heads : s.head_dim);
}

void read_gemma2(const GgufKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  name_post_norms(c.names);
  scale_gemma(c, 46);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
  c.attention_softcap = k.positive_or("attn_logit_softcapping", 50);
  c.logit_softcap = k.positive_or("final_logit_softcapping", 30);
  read_windows(k, c, [](std::size_t i) { return i % 2 == 0; });
}

namespace {

void write_gemma2(SettingsWriter& out) { check_gemma_scale(out, 46), out.check_window_pattern(2); }
void write_gemma2_config(ConfigWriter& out) {
  out.settings();
  write_gemma_scale(out, 46);
  out.heads(), out.flags();
}

// clang-format off
constexpr SettingRule kGemma2Settings[] = {
    RLX_GEMMA_SETTINGS, RLX_THETA(1e4),
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 4096},
    {"attn_logit_softcapping", "attn_logit_softcapping", GgufKind::F32, SettingNeed::Fallback, 50},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKind::F32, SettingNeed::Fallback, 30},
};
constexpr TensorRule kGemma2Tensors[] = {RLX_GEMMA_TENSORS, RLX_GEMMA_POST_NORMS};
// clang-format on

constexpr DecoderFamily kGemma2{
    .model_type = "gemma2",
    .hf_class = "Gemma2ForCausalLM",
    .read_config = read_gemma2,
    .gguf = "gemma2",
    .read_gguf = read_gemma2,
    .tensors = kGemma2Tensors,
    .settings = kGemma2Settings,
    .activation = "gelu_pytorch_tanh",
    .activation_keys = {"hidden_act", "hidden_activation"},
    .tied = true,
    .full_every = 2,
    .llama_cpp = {.embedding_is_head = true},
    .write_gguf = write_gemma2,
    .write_config = write_gemma2_config,
};

}  // namespace

extern const ModelFamily gemma2_family;
const ModelFamily gemma2_family{.decoder = &kGemma2, .encoder = nullptr};

}  // namespace rlx
