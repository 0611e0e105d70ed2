// ERNIE 4.5, the dense models: Llama with interleaved rotary pairs.
#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {
namespace {

void read_ernie4_5(const ConfigKeys& k, DecoderConfig& c) {
  read_sizes(k, c, 1e-5);
  if (!k.has("head_dim")) c.head_dim = 128;
  read_ropes(k, c, 500000);
  c.ropes[0].pairing = RopePairing::Interleaved;
  c.activation = parse_activation(k, "hidden_act", "silu");
  c.qkv_bias = c.o_bias = c.ff_bias = k.flag("use_bias", false);
  c.tied = k.flag("tie_word_embeddings", true);
}

void read_ernie4_5(const GgufKeys& k, DecoderConfig& c) {
  read_sizes(k, c);
  c.ropes = {read_rope(k, c, RopePairing::Interleaved)};
}

void write_ernie4_5(SettingsWriter& out) { out.need("use_bias", false); }

// clang-format off
constexpr TensorRule kErnie4_5Tensors[] = {
    RLX_TABLE_TENSORS, RLX_ATTENTION_TENSORS(None, None), RLX_LAYER_NORMS, RLX_GATED_TENSORS(Always),
};
constexpr SettingRule kErnie4_5Settings[] = {
    RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-5), RLX_THETA(500000),
    {"head_dim", "attention.key_length", GgufKind::U32, SettingNeed::Fallback, 128},
};
// clang-format on

constexpr DecoderFamily kErnie4_5{
    .model_type = "ernie4_5",
    .hf_class = "Ernie4_5ForCausalLM",
    .read_config = read_ernie4_5,
    .gguf = "ernie4_5",
    .read_gguf = read_ernie4_5,
    .tensors = kErnie4_5Tensors,
    .settings = kErnie4_5Settings,
    .tied = true,
    .write_gguf = write_ernie4_5,
};

}  // namespace

extern const ModelFamily ernie4_5_family;
const ModelFamily ernie4_5_family{.decoder = &kErnie4_5, .encoder = nullptr};

}  // namespace rlx
