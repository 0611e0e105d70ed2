// Internal: config.json and GGUF's metadata say the same things.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/formats/gguf_architectures.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"

namespace rlx {

/// Sizes that a conversion of tensors asks for.
struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
};
/// Of config.json. Errors: BadFile for settings that are missing, of another type, or do not fit together.
ModelSizes read_sizes_of_config(const JsonValue& config);
/// Of the metadata.
ModelSizes read_sizes_of_gguf(const GgufFile& file, const GgufArchitecture& a);

/// Writes the settings of config.json as keys. Errors: BadFile for one that is missing, Unsupported for one that the
/// format cannot express, naming it.
void write_settings(GgufWriter& out, const GgufArchitecture& a, const JsonValue& config, const ModelSizes& sizes);
/// Factors of rotary frequencies that the settings ask for as a tensor (Llama 3.1), or none.
std::optional<std::vector<float>> rope_factors(const JsonValue& config, const ModelSizes& sizes);
/// The text of config.json. Errors: as write_settings.
std::string config_of_gguf(const GgufFile& file, const GgufArchitecture& a, const ModelSizes& sizes,
                           std::string_view dtype);

}  // namespace rlx
