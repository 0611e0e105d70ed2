// Which tensors and settings of a Hugging Face model stand for which of a GGUF file, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/formats/gguf_value.h"

namespace rlx {

/// What happens to the values of a tensor on the way into a GGUF file.
enum class TensorChange : std::uint8_t {
  None,
  QueryPairs,    // rows of each head of q, first and second half interleaved: GGUF's llama rotates neighbours
  KeyPairs,      // the same of k
  AddOne,        // norms that multiply by 1 + w get the 1 added
  Turned,        // [in, out] becomes [out, in], of each expert where there are some
  HeadsToParts,  // rows of q, k and v of each head in turn: all of q, all of k, all of v
  Experts,       // a tensor of each expert ("{e}" is its number) becomes one of all
  EvenColumns,   // gate of [experts, in, gate and up in turn], turned where it is a matrix
  OddColumns,    // up
  LatentKeys,    // of [heads, keys and values, rank] the keys, turned: [heads, rank, keys]
  LatentValues,  // the values
  Number,        // a tensor of one number of each layer becomes an array of metadata, "gguf" without an architecture
  NumberScalar,  // the same of one without dimensions
};
/// Which models, or which of their layers, have a tensor.
enum class TensorNeed : std::uint8_t {
  Always,
  Optional,
  DenseLayers,
  ExpertLayers,
  SharedExpert,  // layers of experts where one is every token's
  QueryRank,     // models whose queries go through a matrix of low rank
  NoQueryRank,
  LatentSplit,  // files that have the two halves of the latent matrix
  LatentWhole,  // older files, which have it as one
};
/// A tensor by both its names; "{}" stands for the number of a layer.
struct TensorRule {
  std::string_view hf, gguf;
  TensorChange change = TensorChange::None;
  TensorNeed need = TensorNeed::Always;
};
/// What is to be done about a setting that config.json does not have.
enum class SettingNeed : std::uint8_t { Required, Optional, Fallback };
/// A setting of config.json and the key of the metadata that holds it, without the architecture in front.
struct SettingRule {
  std::string_view hf, gguf;
  GgufKind kind = GgufKind::U32;
  SettingNeed need = SettingNeed::Required;
  double fallback = 0;  // what the family has where the setting is absent
};
struct DecoderFamily;

/// The family with config.json's "model_type", or null.
const DecoderFamily* find_family_of_model_type(std::string_view model_type);
/// The family that a file of this "general.architecture" becomes, or null; of a llama with experts it is Mixtral, with
/// a sliding window Mistral.
const DecoderFamily* find_family_of_gguf(std::string_view name, bool has_window, bool has_experts);
/// The name that config.json has for a key of the metadata. The setting has to be there.
std::string_view setting_of_key(const DecoderFamily& a, std::string_view gguf);

/// `name` with the first `mark` in it, if any, replaced by a number.
std::string numbered_name(std::string_view name, std::string_view mark, std::int64_t number);

/// A tensor's rule and its layer.
struct RuledTensor {
  const TensorRule* rule;
  std::string hf;
};
/// What a Hugging Face model calls the tensor `name` of a GGUF file; none for one without a rule.
std::optional<RuledTensor> translate_tensor(const DecoderFamily& a, std::string_view name);

}  // namespace rlx
