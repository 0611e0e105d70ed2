// BERT's WordPiece tokeniser: normaliser, word splitter and greedy longest-match vocabulary search.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

class JsonDocument;
class JsonValue;

/// A token that is matched in the raw text before anything else happens to it.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      // left out by decode
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // matched in the normalised text instead of the raw one
};

/// What the tokeniser does to a text; the defaults are those of uncased BERT.
struct WordPieceOptions {
  bool clean_text = true;            // drop control characters, turn all white space into spaces
  bool handle_chinese_chars = true;  // each CJK ideograph is a word
  bool strip_accents = true;         // canonical decomposition, then nonspacing marks dropped
  bool lowercase = true;
  std::int64_t max_chars_per_word = 100;  // a longer word becomes the unknown token
  std::string continuation = "##";        // what a piece inside a word starts with in the vocabulary
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
  /// Reads a `tokenizer.json`. Errors: BadFile, Unsupported naming the component that is not BERT's.
  static WordPieceTokenizer from_json(const JsonDocument& document);
  /// Reads a `vocab.txt` (one token a line, its id is the line's index; the last of equal lines counts). `source` names
  /// it in errors. The five special tokens of `options` that the vocabulary holds are split out of texts.
  static WordPieceTokenizer from_vocab(std::string text, const std::string& source,
                                       const WordPieceOptions& options = {});
  /// Options of a `tokenizer_config.json`.
  static WordPieceOptions options_from_config(const JsonValue& config);

  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens = true) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(vocabulary_.size()); }
  std::optional<TokenId> token_to_id(std::string_view token) const override;
  std::optional<std::string_view> id_to_token(TokenId id) const override;
  std::span<const TokenId> prefix_ids() const override { return prefix_; }
  std::span<const TokenId> suffix_ids() const override { return suffix_; }
  TokenId pad_id() const override { return pad_; }

  const WordPieceOptions& options() const { return options_; }
  const std::vector<AddedToken>& added_tokens() const { return added_; }

  /// The normaliser alone: cleaned, spaced, stripped and lower-cased text.
  std::string normalize(std::string_view text) const;

 private:
  friend class WordPieceEncoder;
  WordPieceTokenizer() = default;
  void finish(const std::string& source);
  TokenId require_token(const std::string& content, const std::string& source) const;

  WordPieceOptions options_;
  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
  std::vector<TokenId> prefix_, suffix_;
  std::uint64_t continuation_state_ = 0;  // hash state after the continuation prefix
  TokenId unk_ = 0, pad_ = 0;
};

}  // namespace rlx
