// Which tensors and settings of a Hugging Face model stand for which of a GGUF file, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/formats/gguf_value.h"

namespace rlx {

/// What happens to the values of a tensor on the way into a GGUF file.
enum class TensorChange : std::uint8_t {
  None,
  QueryPairs,  // rows of each head of q, first and second half interleaved: GGUF's llama rotates neighbours
  KeyPairs,    // the same of k
  AddOne,      // norms that multiply by 1 + w get the 1 added
};
/// A tensor by both its names; "{}" stands for the number of a layer.
struct TensorRule {
  std::string_view hf, gguf;
  TensorChange change = TensorChange::None;
};
/// A setting of config.json and the key of the metadata that holds it, without the architecture in front.
struct SettingRule {
  std::string_view hf, gguf;
  GgufKind kind = GgufKind::U32;
  bool required = true;
};
struct GgufArchitecture {
  std::string_view model_type, hf_class;  // of config.json
  std::string_view gguf;                  // general.architecture
  std::span<const TensorRule> tensors;
  std::span<const SettingRule> settings;
  std::string_view activation = "silu";
};

/// All architectures that models are converted of; the first of those with one name in GGUF is what a file of that name
/// becomes.
std::span<const GgufArchitecture> gguf_architecture_table();
/// The one with config.json's "model_type", or null.
const GgufArchitecture* find_architecture_of_model_type(std::string_view model_type);
/// The one with the metadata's "general.architecture", or null; of a llama with a sliding window, Mistral.
const GgufArchitecture* find_architecture_of_gguf(std::string_view name, bool has_window);

/// A tensor's rule and its layer.
struct RuledTensor {
  const TensorRule* rule;
  std::string other;  // the name on the other side
};
/// What becomes of the tensor with this name of a Hugging Face model (`from_hf`) or GGUF file; none for one without a
/// rule.
std::optional<RuledTensor> translate_tensor(const GgufArchitecture& a, std::string_view name, bool from_hf);

}  // namespace rlx
