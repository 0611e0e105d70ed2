// Internal: conversion between the settings of config.json and GGUF metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/models/convert/gguf_architectures.h"

namespace rlx {

/// Sizes that tensor conversion needs.
struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  std::int64_t rotated = 0;                          // rotated elements of a head
  std::int64_t experts = 0, shared_experts = 0;      // per layer
  std::int64_t dense_layers = 0;                     // the first layers, without experts
  std::int64_t q_rank = 0, nope_dim = 0, v_dim = 0;  // sizes of latent attention
  bool latent_whole = false;                         // the GGUF file has its matrix as one tensor
};
/// Reads the sizes from config.json. Errors: BadFile for settings that are missing, of another type, or inconsistent.
ModelSizes read_sizes_of_config(const DecoderFamily& a, const JsonValue& config);
/// Reads the sizes from the metadata.
ModelSizes read_sizes_of_gguf(const GgufFile& file, const DecoderFamily& a);

/// Writes the settings of config.json as metadata. Errors: BadFile for a missing setting, Unsupported for one that the
/// format cannot store, naming it.
void write_settings(GgufWriter& out, const DecoderFamily& a, const JsonValue& config, const ModelSizes& sizes);
/// Factors of rotary frequencies that are stored as tensors (Llama 3.1; LongRoPE has two), by tensor name.
std::map<std::string, std::vector<float>> rope_factors(const DecoderFamily& a, const JsonValue& config,
                                                       const ModelSizes& sizes);
/// The text of config.json. Errors: those of write_settings.
std::string config_of_gguf(const GgufFile& file, const DecoderFamily& a, const ModelSizes& sizes,
                           std::string_view dtype);

}  // namespace rlx
