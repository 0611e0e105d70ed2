// Tables of tensor and setting names: Hugging Face models and their GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/formats/gguf_value.h"

namespace rlx {

/// How the values of a tensor change on the way into a GGUF file.
enum class TensorChange : std::uint8_t {
  None,
  QueryPairs,    // rows of each q head, first and second half interleaved: GGUF's llama rotates adjacent rows
  KeyPairs,      // the same for k
  AddOne,        // adds 1 to norms that multiply by 1 + w
  Transposed,    // [in, out] is transposed to [out, in], for each expert if there are experts
  HeadsToParts,  // rows of q, k and v of each head in turn become all of q, all of k, all of v
  Experts,       // a tensor for each expert ("{e}" is its number) becomes one tensor for all
  EvenColumns,   // gate of [experts, in, alternating gate and up columns], transposed if a matrix
  OddColumns,    // up
  LatentKeys,    // keys of [heads, keys and values, rank], transposed: [heads, rank, keys]
  LatentValues,  // values of the same
  Number,  // one-element tensors of all layers become a metadata array; `gguf` is its key without the architecture
  NumberScalar,  // the same for a tensor without dimensions
};
/// The models, or layers, that have a tensor.
enum class TensorNeed : std::uint8_t {
  Always,
  Optional,
  DenseLayers,
  ExpertLayers,
  SharedExpert,  // expert layers with a shared expert
  QueryRank,     // models with low-rank query projections
  NoQueryRank,
  LatentSplit,  // files with the latent matrix in two halves
  LatentWhole,  // older files with one latent matrix
};
/// A tensor by both names; "{}" stands for the layer number.
struct TensorRule {
  std::string_view hf, gguf;
  TensorChange change = TensorChange::None;
  TensorNeed need = TensorNeed::Always;
};
/// What to do when config.json lacks a setting.
enum class SettingNeed : std::uint8_t { Required, Optional, Fallback };
/// A setting of config.json and its metadata key without the architecture prefix.
struct SettingRule {
  std::string_view hf, gguf;
  GgufKind kind = GgufKind::U32;
  SettingNeed need = SettingNeed::Required;
  double fallback = 0;  // the family's default
};
struct DecoderFamily;

/// The family with the "model_type" of a config.json, or null.
const DecoderFamily* find_family_of_model_type(std::string_view model_type);
/// The family of a file with this "general.architecture", or null. A llama with experts is Mixtral, one with a sliding
/// window Mistral.
const DecoderFamily* find_family_of_gguf(std::string_view name, bool has_window, bool has_experts);
/// The config.json name of a metadata key. The setting must exist.
std::string_view setting_of_key(const DecoderFamily& a, std::string_view gguf);

/// `name` with the first `mark`, if any, replaced by a number.
std::string numbered_name(std::string_view name, std::string_view mark, std::int64_t number);

/// A tensor's rule and its layer number.
struct RuledTensor {
  const TensorRule* rule;
  std::string hf;
};
/// The Hugging Face name of a GGUF tensor; none for a tensor without a rule.
std::optional<RuledTensor> translate_tensor(const DecoderFamily& a, std::string_view name);

}  // namespace rlx
