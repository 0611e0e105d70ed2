// Gemma: norms with an offset, a scaled embedding that is also the output matrix.
#include <cmath>

#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_gemma(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  if (!k.has("head_dim")) c.head_dim = 256;
  read_ropes(k, c);
  // Files of the first Gemma say "gelu" but mean its tanh approximation. "hidden_activation" came later.
  constexpr std::string_view meant = "gelu_pytorch_tanh";
  if (k.has("hidden_activation"))
    c.activation = parse_activation(k, "hidden_activation", meant);
  else if (c.family == "gemma" && k.text("hidden_act", "gelu") != "gelu")
    c.activation = parse_activation(k, "hidden_act", meant);
  else
    c.activation = ActivationKind::GeluApprox;
  c.bidirectional = k.flag("use_bidirectional_attention", false);
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.tied = k.flag("tie_word_embeddings", true);
  c.norm_offset = 1;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
}

void read_gemma(const GgufKeys& k, DecoderConfig& c) {  // norm weights include the offset of 1
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
  c.activation = ActivationKind::GeluApprox;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
}

namespace {

// clang-format off
constexpr TensorRule kGemmaTensors[] = {
    RLX_GEMMA_TENSORS,
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", TensorChange::AddOne},
};
constexpr SettingRule kGemmaSettings[] = {RLX_GEMMA_SETTINGS, RLX_THETA(1e4)};
// clang-format on

constexpr DecoderFamily kGemma{
    .model_type = "gemma",
    .hf_class = "GemmaForCausalLM",
    .read_config = read_gemma,
    .gguf = "gemma",
    .read_gguf = read_gemma,
    .tensors = kGemmaTensors,
    .settings = kGemmaSettings,
    .activation = "gelu_pytorch_tanh",
    .activation_alias = "gelu",
    .activation_keys = {"hidden_act", "hidden_activation"},
    .tied = true,
    .llama_cpp = {.embedding_is_head = true},
};

}  // namespace

extern const ModelFamily gemma_family;
const ModelFamily gemma_family{.decoder = &kGemma, .encoder = nullptr};

}  // namespace rlx
