// Readers of the vocabulary, added tokens and post-processor of a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "rlx/formats/json.h"
#include "rlx/text/tokenizer/added_tokens.h"
#include "rlx/text/tokenizer/pipeline.h"

namespace rlx {

/// Number of token ids in a file; also the bound of accepted ids.
std::size_t count_tokens(const JsonValue& root);

/// Adds the object "vocab" of a model, token to id. Errors: BadFile for ids that are repeated or out of range.
void read_vocabulary(const JsonValue& model, std::size_t num_tokens, const std::string& source, Vocabulary& out);

/// Reads "added_tokens" and adds those that the model lacks to the vocabulary, hidden. Errors: BadFile for an empty
/// token, for an id of another token, and for an id that differs from the model's.
std::vector<AddedToken> read_added_tokens(const JsonValue& root, std::size_t num_tokens, const std::string& source,
                                          Vocabulary& vocabulary);

/// Reads the ids before and after a text. Errors: BadFile for ids without a token, Unsupported for an unknown
/// component.
void read_post_processor(const JsonValue& root, const std::string& source, TokenizerParts& parts);

/// The padding token: the one of "padding", else one that looks like it, else 0.
TokenId find_padding(const JsonValue& root, const TokenizerParts& parts);

}  // namespace rlx
