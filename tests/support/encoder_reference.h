// Reference vectors and scores of small text encoders (scripts/make_encoder_references.py), and model folders with
// their weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/formats/named_tensor.h"
#include "rlx/tensor/tensor.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/temp_dir.h"

namespace rlx::test {

struct EncoderReference {
  std::string name, config;           // of the case; its config.json
  Tensor ids, types;                  // I32 [B, S]
  std::vector<std::int64_t> lengths;  // [B]
  Tensor hidden;                      // F32 [all tokens, H], of the last layer, one text after the other
  Tensor scores;                      // F32 [B, labels], or empty
  std::vector<NamedTensor> weights;   // in the dtype of the model's file

  std::int64_t batch() const { return ids.dim(0); }
  std::int64_t sequence() const { return ids.dim(1); }
  /// F32 [B, S], 1 at tokens.
  Tensor mask() const;
  /// The vectors of the tokens in `values`, F32 [B, S, H], one text after the other.
  Tensor tokens_of(const Tensor& values) const;
};

/// The names of all cases, sorted.
std::vector<std::string> encoder_references();
EncoderReference encoder_reference(const std::string& name);
/// Writes config.json and model.safetensors.
void write_model(const TempDir& folder, const EncoderReference& model);

/// A whole model folder, and the results of sentence-transformers for some texts.
struct FolderReference {
  std::vector<std::pair<std::string, std::string>> files;  // path and content
  std::vector<NamedTensor> weights;
  std::vector<std::pair<std::string, std::vector<NamedTensor>>> dense;  // by folder
  std::vector<std::string> texts;                                       // the texts of `vectors`
  std::vector<std::pair<std::string, std::string>> pairs;               // the pairs of `scores`
  std::vector<std::pair<std::string, Tensor>> vectors;                  // by prompt name
  Tensor scores;
};
FolderReference folder_reference(const std::string& name);
void write_folder(const TempDir& folder, const FolderReference& reference);

/// The largest difference relative to the largest magnitude of `want`. Infinite for NaN or another shape.
double relative_error(const Tensor& got, const Tensor& want);

}  // namespace rlx::test
