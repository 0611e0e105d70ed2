// Internal: config.json and GGUF's metadata say the same things.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/models/convert/gguf_architectures.h"

namespace rlx {

/// Sizes that a conversion of tensors asks for.
struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  std::int64_t rotated = 0;                          // elements of a head
  std::int64_t experts = 0, shared_experts = 0;      // of a layer
  std::int64_t dense_layers = 0;                     // the first ones have no experts
  std::int64_t q_rank = 0, nope_dim = 0, v_dim = 0;  // of latent attention
  bool latent_whole = false;                         // its matrix is one in the GGUF file
};
/// Of config.json. Errors: BadFile for settings that are missing, of another type, or do not fit together.
ModelSizes read_sizes_of_config(const DecoderFamily& a, const JsonValue& config);
/// Of the metadata.
ModelSizes read_sizes_of_gguf(const GgufFile& file, const DecoderFamily& a);

/// Writes the settings of config.json as keys. Errors: BadFile for one that is missing, Unsupported for one that the
/// format cannot express, naming it.
void write_settings(GgufWriter& out, const DecoderFamily& a, const JsonValue& config, const ModelSizes& sizes);
/// Factors of rotary frequencies that the settings ask for as tensors (Llama 3.1; LongRoPE has two), by their names.
std::map<std::string, std::vector<float>> rope_factors(const DecoderFamily& a, const JsonValue& config,
                                                       const ModelSizes& sizes);
/// The text of config.json. Errors: as write_settings.
std::string config_of_gguf(const GgufFile& file, const DecoderFamily& a, const ModelSizes& sizes,
                           std::string_view dtype);

}  // namespace rlx
