// Merges of a BPE model from texts to ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "rlx/text/tokenizer/bpe.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// Makes the table of merges that come as pairs of texts, in the order of their ranks. Many look-ups wait for memory
/// together, so the texts have to stay until `finish`.
class MergeList {
 public:
  /// Called for a merge of tokens that the vocabulary lacks, one of them `lacking`; it throws.
  using Lacking =
      std::function<void(std::size_t rank, std::string_view left, std::string_view right, std::string_view lacking)>;
  /// For `most` merges at most. What two tokens make is the left one followed by the right one without its first
  /// `continuation_bytes`. The vocabulary must outlive the list.
  MergeList(const Vocabulary& vocabulary, std::size_t most, std::size_t continuation_bytes, Lacking lacking);
  void add(std::string_view left, std::string_view right);
  MergeTable finish();
  /// How many were added.
  std::size_t size() const { return rank_ + count_; }

 private:
  struct Pair {
    std::string_view left, right, tail;  // the tail is what the right side adds to the left one
    std::uint64_t left_hash = 0, right_hash = 0, made_hash = 0;
    TokenId left_id = -1, right_id = -1, made_id = -1;
  };
  void find_ids(Pair& pair, std::size_t rank) const;
  void flush();

  const Vocabulary& vocabulary_;
  std::size_t continuation_bytes_;
  Lacking lacking_;
  MergeTable table_;
  std::array<Pair, 16> block_;
  std::size_t count_ = 0, rank_ = 0;  // in the block; of its first
};

}  // namespace rlx
