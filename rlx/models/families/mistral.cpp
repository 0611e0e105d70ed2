// Mistral and Ministral: Llama with a sliding window. GGUF files have the architecture llama.
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

void read_mistral(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  read_ropes(k, c);
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.tied = k.flag("tie_word_embeddings", false);
  // Files with layer types are of Ministral, which is otherwise the same.
  read_windows(k, c, read_window(k, 4096), [](std::size_t) { return true; });
}

namespace {

constexpr DecoderFamily kMistral{
    .model_type = "mistral",
    .hf_class = "MistralForCausalLM",
    .read_config = read_mistral,
    .gguf = "llama",
    .files = GgufFiles::WithWindow,
    .tensors = kLlamaTensors,
    .settings = kDecoderSettings,
    .window = GgufWindow::AllLayers,
    .rope = {.llama3 = true},
};

}  // namespace

extern const ModelFamily mistral_family;
const ModelFamily mistral_family{.decoder = &kMistral, .encoder = nullptr};

}  // namespace rlx
