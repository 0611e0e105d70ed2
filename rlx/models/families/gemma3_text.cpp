// Gemma 3, text model: every sixth layer has global attention and its own rotary positions.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_gemma3(const ConfigKeys& k, DecoderConfig& c) {
  read_gemma2(k, c);
  c.attention_softcap.reset();  // ignored by every implementation: heads are normalised
  c.logit_softcap = read_softcap(k, "final_logit_softcapping");
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "self_attn.q_norm", c.names.k_norm = "self_attn.k_norm";
  const std::int64_t every = k.size_or("sliding_window_pattern", 6);
  // A bidirectional window has half of its tokens before the token. The token itself counts.
  const std::int64_t window = read_window(k, 4096);
  read_windows(k, c, c.bidirectional ? window / 2 + 1 : window,
               [&](std::size_t i) { return (static_cast<std::int64_t>(i) + 1) % every != 0; });
  RopeDefaults d{.head_dim = c.head_dim, .theta = 1e6, .max_positions = c.max_positions};
  d.part = "full_attention";
  RopeDefaults local{.head_dim = c.head_dim, .max_positions = c.max_positions};
  local.theta = k.positive("rope_local_base_freq", 10000);
  local.part = "sliding_attention";
  c.ropes = {read_rope(k, d), read_local_rope(k, local)};
  for (DecoderLayer& layer : c.layers) layer.rope = layer.window ? 1 : 0;
}

void read_gemma3(const GgufKeys& k, DecoderConfig& c) {
  read_gemma(k, c);
  name_post_norms(c.names);
  scale_gemma(c, 62);
  if (k.has("attention.scale")) c.attention_scale = k.positive("attention.scale");
  if (k.has("final_logit_softcapping")) c.logit_softcap = k.positive("final_logit_softcapping");
  c.qk_norm = QkNorm::Head;
  c.names.q_norm = "attn_q_norm", c.names.k_norm = "attn_k_norm";
  read_windows(k, c, [](std::size_t i) { return (i + 1) % 6 != 0; });
  RopeSpec local{.theta = k.positive_or("rope.freq_base_swa", 10000), .rotated = c.head_dim};
  c.ropes = {read_rope(k, c, RopePairing::Half, 1e6), local};
  for (DecoderLayer& layer : c.layers) layer.rope = layer.window ? 1 : 0;
}

void write_gemma3(SettingsWriter& out) {
  check_gemma_scale(out, 62), out.check_window_pattern(6);
  const auto local = rope_parameters(out.config(), "sliding_attention");
  if (local && local->find("rope_type") && rope_type(*local) != "default")
    SettingsWriter::refuse("a rope scaling of layers with sliding windows");
}
void write_gemma3_config(ConfigWriter& out) {
  out.settings();
  write_gemma_scale(out, 62);
  out.heads(), out.flags();
}

// clang-format off
constexpr SettingRule kGemma3Settings[] = {
    RLX_GEMMA_SETTINGS, RLX_THETA(1e6),
    {"sliding_window", "attention.sliding_window", GgufKind::U32, SettingNeed::Fallback, 4096},
    {"rope_local_base_freq", "rope.freq_base_swa", GgufKind::F32, SettingNeed::Fallback, 1e4},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKind::F32, SettingNeed::Optional},
};
constexpr TensorRule kGemma3Tensors[] = {RLX_GEMMA_TENSORS, RLX_GEMMA_POST_NORMS, RLX_QK_NORMS(AddOne)};
// clang-format on

constexpr DecoderFamily kGemma3{
    .model_type = "gemma3_text",
    .hf_class = "Gemma3ForCausalLM",
    .read_config = read_gemma3,
    .gguf = "gemma3",
    .read_gguf = read_gemma3,
    .tensors = kGemma3Tensors,
    .settings = kGemma3Settings,
    .activation = "gelu_pytorch_tanh",
    .activation_keys = {"hidden_act", "hidden_activation"},
    .tied = true,
    .full_every = 6,
    .rope = {.theta = 1e6},
    .write_gguf = write_gemma3,
    .write_config = write_gemma3_config,
};

}  // namespace

extern const ModelFamily gemma3_text_family;
const ModelFamily gemma3_text_family{.decoder = &kGemma3, .encoder = nullptr};

}  // namespace rlx
