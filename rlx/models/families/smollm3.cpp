// SmolLM3: Llama without rotary positions in every fourth layer.
#include <vector>

#include "rlx/models/convert/family_writers.h"
#include "rlx/models/convert/tensor_tables.h"
#include "rlx/models/family_config.h"
#include "rlx/models/family_gguf.h"
#include "rlx/models/model_family.h"

namespace rlx {

namespace {

void read_smollm3(const ConfigKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  read_ropes(k, c, 2e6);
  c.tied = k.flag("tie_word_embeddings", true);
  std::vector<double> roped;
  if (k.has("no_rope_layers")) {  // 1 means a layer with rotation, despite the key's name
    roped = k.numbers("no_rope_layers");
    if (roped.size() != c.layers.size())
      k.bad(concat_text("\"no_rope_layers\" has ", roped.size(), " entries for ", c.layers.size(), " layers"));
  }
  const std::int64_t every = k.size_or("no_rope_layer_interval", 4);
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool rotates = roped.empty() ? (static_cast<std::int64_t>(i) + 1) % every != 0 : roped[i] != 0;
    c.layers[i].rope = rotates ? 0 : -1;
  }
  const bool windows = k.flag("use_sliding_window", false);
  read_windows(k, c, read_window(k, 0), [&](std::size_t i) { return windows && c.layers[i].rope < 0; });
}

void read_smollm3(const GgufKeys& k, DecoderConfig& c) {
  read_llama(k, c);
  for (std::size_t i = 3; i < c.layers.size(); i += 4) c.layers[i].rope = -1;
}

// An assumption of readers: every 4th layer has no rotary positions.
void write_smollm3(SettingsWriter& out) {
  bool same = out.config().get_int("no_rope_layer_interval", 4) == 4;
  if (const auto layers = present(out.config(), "no_rope_layers"); layers && layers->size() > 0) {
    const std::vector<JsonValue> all = layers->elements("no_rope_layers");
    same = true;
    for (std::size_t i = 0; i < all.size(); ++i) same &= (all[i].as_int("no_rope_layers") != 0) == ((i + 1) % 4 != 0);
  }
  if (!same) SettingsWriter::refuse("a rope pattern other than no rope in every 4th layer");
}
void write_smollm3_config(ConfigWriter& out) {
  out.settings(), out.heads(), out.flags();
  out.member("no_rope_layer_interval", std::int64_t{4});
}

// clang-format off
constexpr SettingRule kSmolLm3Settings[] = {RLX_SIZES, RLX_KEY_HEADS, RLX_RMS_NORM(1e-6), RLX_THETA(2e6)};
// clang-format on

constexpr DecoderFamily kSmolLm3{
    .model_type = "smollm3",
    .hf_class = "SmolLM3ForCausalLM",
    .read_config = read_smollm3,
    .gguf = "smollm3",
    .read_gguf = read_smollm3,
    .tensors = kLlamaTensors,
    .settings = kSmolLm3Settings,
    .tied = true,
    .write_gguf = write_smollm3,
    .write_config = write_smollm3_config,
};

}  // namespace

extern const ModelFamily smollm3_family;
const ModelFamily smollm3_family{.decoder = &kSmolLm3, .encoder = nullptr};

}  // namespace rlx
