// How the pre-tokenisers that GGUF files name cut texts.
#pragma once

#include <span>
#include <string_view>

namespace rlx {

/// What a name in `tokenizer.ggml.pre` stands for.
struct GgufPreTokenizer {
  std::string_view name;
  std::span<const std::string_view> patterns;  // applied one after the other; matches and what lies between are words
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
  bool bytes = true;     // GPT-2's byte alphabet; otherwise spaces become U+2581
};

/// The entry of a name, or null; the empty name stands for "default".
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

}  // namespace rlx
