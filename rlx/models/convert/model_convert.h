// Conversion of models: Hugging Face folders to GGUF files and back, and GGUF files to other types.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "rlx/formats/gguf_types.h"

namespace rlx {

struct ConvertOptions {
  std::optional<GgufType> type;       // type of matrices; none: unchanged (blocks become F16 in a folder)
  std::optional<GgufType> head_type;  // type of the output matrix; none: Q6_K where `type` is smaller, else `type`
  /// A GGUF or safetensors file with a weight for each column of a matrix, by the matrix's GGUF name: a vector NAME, or
  /// llama.cpp's NAME.in_sum2 with NAME.counts. Empty: all columns have equal weight.
  std::string importance;
  std::string pre_tokenizer;  // its name in llama.cpp; empty: what tokenizer.json says
  /// Maximum tensor bytes of one file, exceeded only by a single larger tensor; 0: everything in one file. Files are
  /// named NAME-00001-of-00003.gguf, or model-00001-of-00003.safetensors with an index.
  std::size_t split_max_bytes = 0;
  int threads = 0;  // quantization threads; 0: all of the machine
  /// Called with the source tensor bytes done, and their total.
  std::function<void(std::size_t done, std::size_t total)> progress;
  /// Called with messages for the user: matrices that got another type, missing files.
  std::function<void(const std::string& text)> note;
};

/// Converts the model in `source`, a folder with config.json and safetensors or a GGUF file, to the GGUF file `target`.
/// An unfinished file stays as TARGET.KEY.partial, and the same call resumes it; `target` appears whole or not at all.
/// Errors: those of the readers; Unsupported for an unknown model_type, a setting or a tensor without a rule, and for
/// unsupported types; BadFile for a tensor that is missing, has a wrong shape or holds NaN, and for a full disk.
void convert_to_gguf(const std::string& source, const std::string& target, const ConvertOptions& options);
/// Converts the GGUF file `source` to config.json and model.safetensors in `folder`, in F32, F16 or BF16, with
/// tokenizer.json, tokenizer_config.json and generation_config.json from its vocabulary. Errors and unfinished files:
/// as convert_to_gguf.
void convert_to_folder(const std::string& source, const std::string& folder, const ConvertOptions& options);

}  // namespace rlx
