// Converts BPE merges from texts to ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "rlx/text/tokenizer/bpe.h"
#include "rlx/text/vocabulary.h"

namespace rlx {

/// Makes the merge table from pairs of texts in rank order. Look-ups are batched so that their cache misses overlap;
/// the texts must stay valid until `finish`.
class MergeList {
 public:
  /// Called for a merge with a token that the vocabulary lacks (`lacking`). It throws.
  using Lacking =
      std::function<void(std::size_t rank, std::string_view left, std::string_view right, std::string_view lacking)>;
  /// For at most `most` merges. The merged text is the left token followed by the right token without its first
  /// `continuation_bytes` bytes. The vocabulary must outlive the list.
  MergeList(const Vocabulary& vocabulary, std::size_t most, std::size_t continuation_bytes, Lacking lacking);
  void add(std::string_view left, std::string_view right);
  MergeTable finish();
  /// Number of merges added.
  std::size_t size() const { return rank_ + count_; }

 private:
  struct Pair {
    std::string_view left, right, tail;  // the tail is the text that the right side adds to the left side
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
  std::size_t count_ = 0, rank_ = 0;  // size of the block; rank of its first merge
};

}  // namespace rlx
