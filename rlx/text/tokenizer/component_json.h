// Reading the normaliser, pre-tokeniser and decoder of a tokenizer.json.
#pragma once

#include <string>
#include <string_view>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer/pipeline.h"

namespace rlx {

/// GPT-2's pattern, which the pre-tokeniser ByteLevel cuts by.
inline constexpr std::string_view kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/// Append the steps of a component to the parts. Errors: BadFile, Unsupported naming what is not known.
void read_normalizer(const JsonValue& normalizer, const std::string& source, Normalizer& out);
void read_pre_tokenizer(const JsonValue& pre_tokenizer, const std::string& source, PreTokenizer& out);
void read_decoder(const JsonValue& decoder, const std::string& source, TokenDecoder& out);

}  // namespace rlx
