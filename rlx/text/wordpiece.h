// BERT's WordPiece tokeniser: normaliser, word splitter and greedy longest-match search.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/added_token.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

class JsonValue;
class PipelineTokenizer;

/// Settings of the tokeniser. The defaults are those of uncased BERT.
struct WordPieceOptions {
  bool clean_text = true;            // drop control characters, turn all white space into spaces
  bool handle_chinese_chars = true;  // each CJK ideograph is a word
  bool strip_accents = true;         // canonical decomposition, then nonspacing marks are dropped
  bool lowercase = true;
  std::int64_t max_chars_per_word = 100;  // a longer word becomes the unknown token
  std::string continuation = "##";        // vocabulary prefix of a piece inside a word
  std::string unk_token = "[UNK]";
  std::string cls_token = "[CLS]";
  std::string sep_token = "[SEP]";
  std::string pad_token = "[PAD]";
  std::string mask_token = "[MASK]";
  bool cleanup_decoded = true;  // decode puts no space before . ? ! , and contractions
};

/// See Tokenizer. Unicode tables are those of utf8proc.
class WordPieceTokenizer final : public Tokenizer {
 public:
  /// Reads a `tokenizer.json`. Errors: BadFile, Unsupported naming a component that is not BERT's.
  static WordPieceTokenizer from_json(const JsonDocument& document);
  /// Reads a `vocab.txt`: one token a line, its id is the line index, and the last of equal lines wins. Errors name
  /// `source`. The five special tokens of `options` that the vocabulary holds are split out of texts.
  static WordPieceTokenizer from_vocab(std::string text, const std::string& source,
                                       const WordPieceOptions& options = {});
  /// Options of a `tokenizer_config.json`.
  static WordPieceOptions options_from_config(const JsonValue& config);

  ~WordPieceTokenizer() override;
  WordPieceTokenizer(WordPieceTokenizer&&) noexcept;

  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens = true) const override;
  std::int64_t vocab_size() const override;
  std::optional<TokenId> token_to_id(std::string_view token) const override;
  std::optional<std::string_view> id_to_token(TokenId id) const override;
  std::span<const TokenId> prefix_ids() const override;
  std::span<const TokenId> suffix_ids() const override;
  TokenId pad_id() const override;
  std::vector<PairPiece> pair_pieces() const override;
  const TokenDecoder& decoder() const override;
  std::optional<std::string_view> decoded_piece(TokenId id, bool skip_special_tokens) const override;

  const WordPieceOptions& options() const { return options_; }
  const std::vector<AddedToken>& added_tokens() const;

  /// The normaliser alone: cleaned, spaced, accent-stripped and lower-cased text.
  std::string normalize(std::string_view text) const;

 private:
  WordPieceTokenizer(WordPieceOptions options, std::unique_ptr<PipelineTokenizer> pipeline);
  const PipelineTokenizer& pipeline() const;

  WordPieceOptions options_;
  std::unique_ptr<PipelineTokenizer> pipeline_;
};

}  // namespace rlx
