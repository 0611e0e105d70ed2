// A tokeniser composed of interchangeable parts. Every tokeniser file is read into this form.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/text/tokenizer.h"
#include "rlx/text/tokenizer/added_tokens.h"
#include "rlx/text/tokenizer/decoder.h"
#include "rlx/text/tokenizer/normalizer.h"
#include "rlx/text/tokenizer/pre_tokenizer.h"
#include "rlx/text/tokenizer/word_model.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// The parts of a PipelineTokenizer.
struct TokenizerParts {
  std::unique_ptr<Vocabulary> vocabulary = std::make_unique<Vocabulary>();  // hides tokens that the model lacks
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;  // refers to the vocabulary
  std::vector<AddedToken> added;
  std::vector<TokenId> prefix, suffix;
  std::vector<PairPiece> pair;  // empty: the default of Tokenizer::pair_pieces
  std::string no_pairs{};       // why pairs are unsupported; empty: they are supported
  TokenId pad = 0;
  TokenDecoder decoder;
};

/// Splits out added tokens, normalises the rest, splits it into words and encodes them with the model.
class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts);

  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens = true) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(parts_.vocabulary->size()); }
  std::optional<TokenId> token_to_id(std::string_view token) const override;
  std::optional<std::string_view> id_to_token(TokenId id) const override;
  std::span<const TokenId> prefix_ids() const override { return parts_.prefix; }
  std::span<const TokenId> suffix_ids() const override { return parts_.suffix; }
  TokenId pad_id() const override { return parts_.pad; }
  std::vector<PairPiece> pair_pieces() const override;
  const TokenDecoder& decoder() const override { return parts_.decoder; }
  std::optional<std::string_view> decoded_piece(TokenId id, bool skip_special_tokens) const override;

  const std::vector<AddedToken>& added_tokens() const { return parts_.added; }
  /// The normalised form of a text. Checks that the text is valid UTF-8.
  std::string normalize(std::string_view text) const;

 private:
  class Encoding;
  TokenizerParts parts_;
  AddedTokenMatcher raw_, normalized_;
  std::unordered_map<std::string_view, TokenId> added_ids_;     // keys are the contents, owned by parts_
  std::unordered_map<TokenId, std::string> normalized_pieces_;  // normalised texts of added tokens for the decoder
  std::vector<bool> special_;                                   // by id
};

/// The parts of a tokenizer.json; see tokenizer_from_json.
TokenizerParts read_tokenizer_json(const JsonDocument& document);

}  // namespace rlx
