// Models from Hugging Face folders to GGUF files and back, and GGUF files in other types.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "rlx/formats/gguf_types.h"

namespace rlx {

struct ConvertOptions {
  std::optional<GgufType> type;       // of matrices; none: they stay what they are (blocks become F16 in a folder)
  std::optional<GgufType> head_type;  // of the output matrix; none: Q6_K where `type` is smaller, else `type`
  /// A GGUF or safetensors file with a weight for each column of a matrix, by the matrix's name in GGUF: a vector
  /// NAME, or llama.cpp's NAME.in_sum2 with NAME.counts. Empty: all count the same.
  std::string importance;
  std::string pre_tokenizer;  // its name in llama.cpp; empty: what tokenizer.json says
  /// Bytes of tensors that a file may hold, more where one tensor alone has more; 0: all go into one file. Files are
  /// called NAME-00001-of-00003.gguf, or model-00001-of-00003.safetensors beside an index.
  std::size_t split_max_bytes = 0;
  int threads = 0;  // of the quantisers; 0: as many as the machine has
  /// Called with bytes of source tensors that are done, of all.
  std::function<void(std::size_t done, std::size_t total)> progress;
  /// Called with what the user should know: matrices that got another type, files that were not there.
  std::function<void(const std::string& text)> note;
};

/// Writes the model in `source`, a folder with config.json and safetensors or a GGUF file, as the GGUF file `target`.
/// What was written when it ends early stays as TARGET.KEY.partial and the same call goes on with it; `target` is there
/// whole or not at all. Errors: those of the readers; Unsupported for a model_type, a setting or a tensor without a
/// rule and for types that are not made; BadFile for a tensor that is missing, of a wrong shape or holds NaN, and for a
/// full disk.
void convert_to_gguf(const std::string& source, const std::string& target, const ConvertOptions& options);
/// Writes the GGUF file `source` into `folder` as config.json and model.safetensors, in F32, F16 or BF16. The tokenizer
/// is not written: a GGUF file does not say all that tokenizer.json does. Errors and what stays: as convert_to_gguf.
void convert_to_folder(const std::string& source, const std::string& folder, const ConvertOptions& options);

}  // namespace rlx
