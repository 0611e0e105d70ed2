// Byte pair encoding: adjacent tokens are merged, lowest rank first, until no merge applies.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer/word_model.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// Options of a BPE model besides its merges.
struct BpeOptions {
  std::optional<TokenId> unknown;  // for a character without a token; nothing: the character is dropped
  bool fuse_unknown = false;       // adjacent unknown tokens become one token
  bool byte_fallback = false;      // a character without a token becomes its byte tokens
  bool ignore_merges = false;      // a word that is a token becomes that token without merging
  std::string continuation;        // prefix of each character inside a word for the look-up
  std::string end_of_word;         // suffix of the last character for the look-up
  bool whole_texts = false;        // words may be whole texts: split them where no token can span the split
};

/// Merges of a BPE model: two ids to the rank of the merge and the merged id.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = 0;
    TokenId made = -1;
  };
  void reserve(std::size_t num_merges);
  /// Adds a merge. Of equal pairs the last one wins.
  void add(TokenId left, TokenId right, Merge merge);
  /// Prefetches the entry of this pair for a later find or add.
  void prefetch(TokenId left, TokenId right) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[slot_of(key_of(left, right))]);
  }
  /// The merge of a pair, or a merge with id -1.
  Merge find(TokenId left, TokenId right) const {
    if (slots_.empty()) return {};
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kFree) return {};
    }
  }
  /// Whether `test` holds for either id of any merge.
  template <class Test>
  bool any_side(const Test& test) const {
    for (const Slot& s : slots_) {
      if (s.key == kFree) continue;
      if (test(static_cast<TokenId>(s.key >> 32)) || test(static_cast<TokenId>(s.key & 0xFFFFFFFFu))) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static std::uint64_t key_of(TokenId left, TokenId right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    const std::uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(mixed >> 32) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;  // open addressing, a power of two, at most two thirds full
  std::size_t num_ = 0;
};

/// A BPE model. It refers to a vocabulary, which must outlive it.
class BpeModel final : public WordModel {
 public:
  /// A model with a list of merges.
  BpeModel(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options);
  /// A model with the rank of each token (SentencePiece). A pair may be merged when its text is a token; lowest rank
  /// first, then leftmost. A rank is the position of a token's score among all scores, highest first.
  BpeModel(const Vocabulary& vocabulary, std::vector<std::uint32_t> ranks, BpeOptions options);
  std::unique_ptr<WordEncoder> encoder(std::size_t text_bytes) const override;

 private:
  class Encoder;
  void prepare();
  void add_seams(std::string_view token);
  std::size_t seam_slot(char32_t left, char32_t right) const {
    const std::uint64_t key = (std::uint64_t{left} << 21 | right) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(key >> 32) & (seams_.size() * 64 - 1);
  }
  bool may_join(char32_t left, char32_t right) const {
    const std::size_t slot = seam_slot(left, right);
    return (seams_[slot >> 6] >> (slot & 63) & 1) != 0;
  }

  const Vocabulary& vocabulary_;
  MergeTable merges_;
  std::vector<std::uint32_t> ranks_;  // by id; empty: merges_ is used
  BpeOptions options_;
  bool plain_ = true;                           // the model has neither a continuation prefix nor an end-of-word suffix
  std::array<TokenId, 0x800> character_ids_{};  // ids of the characters below U+0800, -1 = none
  std::array<TokenId, 256> byte_ids_{};
  std::vector<std::uint64_t> seams_;  // a bit set of adjacent characters inside tokens; empty: words are never split
  // By id: whether merging the text of a token gives that token back. Computed on first use. Every thread computes the
  // same value, so the order does not matter.
  std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;
};

}  // namespace rlx
