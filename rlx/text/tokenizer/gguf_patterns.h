// The pre-tokenisers that GGUF files name.
#pragma once

#include <span>
#include <string_view>

namespace rlx {

/// The meaning of a name in `tokenizer.ggml.pre`.
struct GgufPreTokenizer {
  std::string_view name;
  std::span<const std::string_view> patterns;  // applied in order; matches and the text between are words
  bool ignore_merges = false;
  bool add_bos = false;  // default where the file has no value
  bool bytes = true;     // GPT-2's byte alphabet; otherwise spaces become U+2581
};

/// The entry of a name, or null. The empty name means "default".
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);
/// All entries.
std::span<const GgufPreTokenizer> gguf_pre_tokenizers();

}  // namespace rlx
