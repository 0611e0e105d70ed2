// Batched look-ups: each step runs for a whole block of pairs before the next step, so that the cache misses overlap.
#include "rlx/text/tokenizer/merge_list.h"

#include <algorithm>
#include <string>
#include <utility>

namespace rlx {

MergeList::MergeList(const Vocabulary& vocabulary, std::size_t most, std::size_t continuation_bytes, Lacking lacking)
    : vocabulary_(vocabulary), continuation_bytes_(continuation_bytes), lacking_(std::move(lacking)) {
  table_.reserve(most);
}

void MergeList::add(std::string_view left, std::string_view right) {
  Pair& p = block_[count_++];
  p.left = left, p.right = right;
  p.tail = right.substr(std::min(continuation_bytes_, right.size()));
  p.left_hash = Vocabulary::hash_text(Vocabulary::kHashSeed, left);
  p.right_hash = Vocabulary::hash_text(Vocabulary::kHashSeed, right);
  p.made_hash = Vocabulary::hash_text(p.left_hash, p.tail);
  for (const std::uint64_t hash : {p.left_hash, p.right_hash, p.made_hash}) vocabulary_.prefetch(hash);
  if (count_ == block_.size()) flush();
}

void MergeList::find_ids(Pair& p, std::size_t rank) const {
  const std::optional<TokenId> left = vocabulary_.find(p.left_hash, {}, p.left);
  const std::optional<TokenId> right = vocabulary_.find(p.right_hash, {}, p.right);
  const std::optional<TokenId> made = vocabulary_.find(p.made_hash, p.left, p.tail);
  if (!left || !right || !made) {
    const std::string whole = std::string(p.left) + std::string(p.tail);
    lacking_(rank, p.left, p.right, !left ? p.left : !right ? p.right : std::string_view(whole));
  }
  p.left_id = left.value_or(-1), p.right_id = right.value_or(-1), p.made_id = made.value_or(-1);
}

void MergeList::flush() {
  const auto begin = block_.begin(), end = begin + static_cast<std::ptrdiff_t>(count_);
  const auto each_hash = [&](auto step) {
    for (auto p = begin; p != end; ++p)
      for (const std::uint64_t hash : {p->left_hash, p->right_hash, p->made_hash}) step(hash);
  };
  each_hash([&](std::uint64_t hash) { vocabulary_.prefetch_entry(hash); });
  each_hash([&](std::uint64_t hash) { vocabulary_.prefetch_text(hash); });
  std::size_t rank = rank_;
  for (auto p = begin; p != end; ++p) {
    find_ids(*p, rank++);
    table_.prefetch(p->left_id, p->right_id);
  }
  for (auto p = begin; p != end; ++p)
    table_.add(p->left_id, p->right_id, {static_cast<std::uint32_t>(rank_++), p->made_id});
  count_ = 0;
}

MergeTable MergeList::finish() {
  flush();
  return std::move(table_);
}

}  // namespace rlx
