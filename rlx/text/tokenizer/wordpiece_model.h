// WordPiece: greedy longest match from the left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer/word_model.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// The search of WordPiece tokenisers. It refers to a vocabulary, which must outlive it.
class WordPieceModel final : public WordModel {
 public:
  /// A word of more than `max_chars_per_word` characters becomes the unknown token. Pieces inside a word have the
  /// prefix `continuation` in the vocabulary.
  WordPieceModel(const Vocabulary& vocabulary, TokenId unknown, std::string continuation,
                 std::int64_t max_chars_per_word);
  std::unique_ptr<WordEncoder> encoder(std::size_t text_bytes) const override;
  /// As WordEncoder::encode. `hashes` is a scratch buffer.
  void encode(std::string_view word, std::vector<std::uint64_t>& hashes, WordBudget& budget,
              std::vector<TokenId>& ids) const;

 private:
  const Vocabulary& vocabulary_;
  TokenId unknown_;
  std::string continuation_;
  std::int64_t max_chars_per_word_;
  std::uint64_t continuation_state_;  // hash state after the continuation prefix
};

}  // namespace rlx
