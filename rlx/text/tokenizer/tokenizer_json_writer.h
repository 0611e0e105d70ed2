// Writes the tokeniser of a GGUF file as tokenizer.json.
#pragma once

#include <functional>
#include <string>

#include "rlx/formats/gguf.h"

namespace rlx {

/// The tokenizer.json of the tokeniser in a GGUF file: tokenizer_from_json reads it to the same ids and texts. `note`,
/// if set, gets what the format cannot express: tokens of equal text, and SentencePiece tokens of equal score. Errors:
/// those of tokenizer_from_gguf; Unsupported for a Unigram score that is not finite.
std::string tokenizer_json_of(const GgufFile& file, const std::function<void(const std::string&)>& note = {});

}  // namespace rlx
