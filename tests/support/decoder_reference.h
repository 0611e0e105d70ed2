// Reference logits of small decoders (scripts/make_references.py), and model folders with their weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/named_tensor.h"
#include "rlx/tensor/tensor.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/temp_dir.h"

namespace rlx::test {

struct DecoderReference {
  std::string name, config;          // of the case; its config.json
  std::vector<TokenId> tokens;       // [T]
  Tensor logits;                     // F32 [T, V]
  std::vector<NamedTensor> weights;  // in the dtype of the model's file
};

/// The weights that a list of the file describes, drawn in "f32", "bf16" or "f16".
std::vector<NamedTensor> drawn_weights(const std::string& list, const std::string& dtype);

/// The names of all cases, sorted.
std::vector<std::string> decoder_references();
DecoderReference decoder_reference(const std::string& name);

/// The case "qwen3" with heads of 32 elements, which fit into blocks. Its logits are not those of such a model.
DecoderReference reference_of_wide_heads();

/// A PEFT adapter for one of the cases.
struct AdapterReference {
  std::string name, of, config;      // `of` is the case; `config` is adapter_config.json
  Tensor logits;                     // F32 [T, V], for the tokens of the case
  std::vector<NamedTensor> weights;  // F32
};
/// The names of all adapters, sorted.
std::vector<std::string> adapter_references();
AdapterReference adapter_reference(const std::string& name);
/// Writes adapter_config.json and adapter_model.safetensors.
void write_adapter(const TempDir& folder, const AdapterReference& adapter);

/// Writes config.json and the weights, in one file, or in `shards` files with an index.
void write_model(const TempDir& folder, const DecoderReference& model, std::size_t shards = 1);

/// The largest difference between the rows of `got` and the rows of the reference from `first` on, relative to the
/// largest magnitude there. Infinite if there is a NaN.
double logit_error(const Tensor& got, const DecoderReference& model, std::int64_t first = 0);

}  // namespace rlx::test
