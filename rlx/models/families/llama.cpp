// Llama 2 and 3, and models with the same structure (SmolLM, TinyLlama, ...).
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_llama(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = c.o_bias = k.flag("attention_bias", false);
  c.ff_bias = k.flag("mlp_bias", false);
  c.tied = k.flag("tie_word_embeddings", false);
}

// GGUF stores the rows of q and k in the order of interleaved RoPE. A file with experts is Mixtral.
void read_llama(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Interleaved)};
  read_windows(k, c, [](std::size_t) { return true; });
  if (!k.has("expert_count") || k.size("expert_count", 4096, 0) == 0) return;
  c.moe = read_experts(k, c.ff_size);
  c.moe->normalize = true;
  for (DecoderLayer& layer : c.layers) layer.moe = true;
}

namespace {

constexpr DecoderFamily kLlama{
    .model_type = "llama",
    .hf_class = "LlamaForCausalLM",
    .read_config = read_llama,
    .gguf = "llama",
    .read_gguf = read_llama,
    .tensors = kLlamaTensors,
    .settings = kDecoderSettings,
    .rope = {.llama3 = true},
};

}  // namespace

extern const ModelFamily llama_family;
const ModelFamily llama_family{.decoder = &kLlama, .encoder = nullptr};

}  // namespace rlx
