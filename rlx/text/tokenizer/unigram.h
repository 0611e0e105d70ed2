// Unigram: splits a word into the pieces with the highest sum of scores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer/word_model.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// The Viterbi search of Unigram tokenisers (Kudo 2018, arXiv:1804.10959). It refers to a vocabulary, which must
/// outlive it.
class UnigramModel final : public WordModel {
 public:
  /// `scores` are log probabilities by id. A character that no piece covers scores ten less than the lowest score.
  /// Adjacent such characters become one unknown token, or with `byte_fallback` one token per byte.
  UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores, std::optional<TokenId> unknown,
               bool byte_fallback);
  std::unique_ptr<WordEncoder> encoder(std::size_t text_bytes) const override;

 private:
  class Encoder;
  bool may_continue(std::uint64_t hash) const {
    return (prefixes_[prefix_slot(hash) >> 6] >> (prefix_slot(hash) & 63) & 1) != 0;
  }
  std::size_t prefix_slot(std::uint64_t hash) const {
    return static_cast<std::size_t>(hash * 0x9E3779B97F4A7C15u >> 32) & (prefixes_.size() * 64 - 1);
  }

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  std::optional<TokenId> unknown_;
  double unknown_score_ = 0;
  std::array<TokenId, 256> byte_ids_{};
  bool byte_fallback_ = false;
  std::vector<std::uint64_t> prefixes_;  // a bit set: hashes of all prefixes of pieces
};

}  // namespace rlx
