// Qwen2 and 2.5: biases of q, k and v.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_qwen2(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = true;
  c.tied = k.flag("tie_word_embeddings", false);
  read_optional_windows(k, c);
}

void read_qwen2(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Half)};
}

namespace {

// clang-format off
constexpr TensorRule kQwen2Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_LAYER_NORMS, RLX_GATED_TENSORS(Always),
};
// clang-format on

constexpr DecoderFamily kQwen2{
    .model_type = "qwen2",
    .hf_class = "Qwen2ForCausalLM",
    .read_config = read_qwen2,
    .gguf = "qwen2",
    .read_gguf = read_qwen2,
    .tensors = kQwen2Tensors,
    .settings = kDecoderSettings,
    .llama_cpp = {.heads_fill_width = true},
};

}  // namespace

extern const ModelFamily qwen2_family;
const ModelFamily qwen2_family{.decoder = &kQwen2, .encoder = nullptr};

}  // namespace rlx
