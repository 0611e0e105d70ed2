// Readers of the normaliser, pre-tokeniser and decoder of a tokenizer.json.
#pragma once

#include <string>
#include <string_view>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer/pipeline.h"

namespace rlx {

/// GPT-2's pattern, used by the pre-tokeniser ByteLevel.
inline constexpr std::string_view kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/// These append the steps of a component to `out`. Errors: BadFile, Unsupported naming the unknown component.
void read_normalizer(const JsonValue& normalizer, const std::string& source, Normalizer& out);
void read_pre_tokenizer(const JsonValue& pre_tokenizer, const std::string& source, PreTokenizer& out);
void read_decoder(const JsonValue& decoder, const std::string& source, TokenDecoder& out);

}  // namespace rlx
