// Reading vocabularies, added tokens and post-processors of a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer/added_tokens.h"
#include "rlx/text/tokenizer/pipeline.h"

namespace rlx {

/// Ids of the tokens that a file holds, the largest that is believed among them.
std::size_t count_tokens(const JsonValue& root);

/// Adds the object "vocab" of a model, token to id. Errors: BadFile for ids that repeat or are out of range.
void read_vocabulary(const JsonValue& model, std::size_t num_tokens, const std::string& source, Vocabulary& out);

/// Reads "added_tokens" and puts those that the model lacks into the vocabulary, hidden. Errors: BadFile for an empty
/// one, for an id that another token has, and for another id than the model's.
std::vector<AddedToken> read_added_tokens(const JsonValue& root, std::size_t num_tokens, const std::string& source,
                                          Vocabulary& vocabulary);

/// Ids before and after a text. Errors: BadFile for ids without a token, Unsupported for a component not known.
void read_post_processor(const JsonValue& root, const std::string& source, TokenizerParts& parts);

/// The token to pad with: that of "padding", one that looks like it, or 0.
TokenId find_padding(const JsonValue& root, const TokenizerParts& parts);

}  // namespace rlx
