// BPE merging: a scan over the pairs for short words, a heap for long ones, and a cache of merged words.
#include "rlx/text/tokenizer/bpe.h"

#include <algorithm>
#include <utility>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/tokenizer/byte_tokens.h"

namespace rlx {
namespace {

constexpr std::uint8_t kUnasked = 0, kWhole = 1, kParts = 2;
constexpr std::uint32_t kNoRank = 0xFFFFFFFFu;
constexpr std::size_t kSmallWord = 40;  // symbols; up to here a scan is faster than a heap

}  // namespace

void MergeTable::reserve(std::size_t num_merges) {
  std::size_t size = std::max<std::size_t>(slots_.size(), 64);
  while (size * 2 < num_merges * 3) size *= 2;
  if (size == slots_.size()) return;
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size));
  for (const Slot& s : old) {
    if (s.key == kFree) continue;
    std::size_t slot = slot_of(s.key);
    while (slots_[slot].key != kFree) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = s;
  }
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  reserve(num_ + 1);
  const std::uint64_t key = key_of(left, right);
  std::size_t slot = slot_of(key);
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
  num_ += slots_[slot].key == kFree ? 1 : 0;
  slots_[slot] = {key, merge};
}

BpeModel::BpeModel(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options)
    : vocabulary_(vocabulary), merges_(std::move(merges)), options_(std::move(options)) {
  prepare();
}

BpeModel::BpeModel(const Vocabulary& vocabulary, std::vector<std::uint32_t> ranks, BpeOptions options)
    : vocabulary_(vocabulary), ranks_(std::move(ranks)), options_(std::move(options)) {
  check(ranks_.size() >= vocabulary.size(), "each token has a rank");
  prepare();
}

void BpeModel::prepare() {
  plain_ = options_.continuation.empty() && options_.end_of_word.empty();
  std::string text;
  for (char32_t c = 0; c < character_ids_.size(); ++c) {
    text.clear();
    append_utf8(text, c);
    character_ids_[c] = vocabulary_.find(text).value_or(-1);
  }
  byte_ids_.fill(-1);
  const bool all_bytes = options_.byte_fallback && find_byte_tokens(vocabulary_, byte_ids_);
  whole_ = std::make_unique<std::atomic<std::uint8_t>[]>(vocabulary_.size());

  // A text may be split between two characters that are adjacent in no token, if all symbols spell their own
  // characters: no unknown token that could fuse across the split, no merges of byte tokens.
  bool cut = options_.whole_texts && plain_ && all_bytes;
  if (cut) {
    std::vector<bool> is_byte(vocabulary_.size());
    for (const TokenId id : byte_ids_) is_byte[static_cast<std::size_t>(id)] = true;
    cut = !merges_.any_side([&](TokenId id) { return is_byte[static_cast<std::size_t>(id)]; });
  }
  if (!cut) return;
  seams_.assign(std::size_t{1} << 16, 0);  // 4 million bits
  for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.has(static_cast<TokenId>(id))) add_seams(vocabulary_.token(static_cast<TokenId>(id)));
  }
}

void BpeModel::add_seams(std::string_view token) {
  char32_t left = 0;
  for (std::size_t at = 0; at < token.size();) {
    const bool first = at == 0;
    const char32_t right = decode_utf8(token, at);
    if (!first) {
      const std::size_t slot = seam_slot(left, right);
      seams_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
    }
    left = right;
  }
}

class BpeModel::Encoder final : public WordEncoder {
 public:
  Encoder(const BpeModel& model, std::size_t text_bytes) : m_(model) {
    if (text_bytes >= 2048) cache_.resize(text_bytes < 65536 ? 1024 : 8192);
  }

  void encode(std::string_view word, std::vector<TokenId>& ids) override {
    if (m_.options_.ignore_merges) {
      if (const std::optional<TokenId> id = m_.vocabulary_.find(word)) return ids.push_back(*id);
    }
    if (m_.seams_.empty()) return piece(word, ids);
    std::size_t begin = 0, at = 0;
    char32_t left = decode_utf8(word, at);
    while (at < word.size()) {
      std::size_t next = at;
      const char32_t right = decode_utf8(word, next);
      if (!m_.may_join(left, right)) {
        piece(word.substr(begin, at - begin), ids);
        begin = at;
      }
      left = right;
      at = next;
    }
    piece(word.substr(begin), ids);
  }

 private:
  static constexpr std::size_t kCachedBytes = 28, kCachedIds = 12;
  // A cached word. The next word with the same slot replaces it.
  struct Cached {
    std::uint8_t num_bytes = 0, num_ids = 0;
    std::array<char, kCachedBytes> bytes{};
    std::array<TokenId, kCachedIds> ids{};
  };

  void piece(std::string_view w, std::vector<TokenId>& ids) {
    const std::uint64_t hash = Vocabulary::hash_text(Vocabulary::kHashSeed, w);
    std::optional<TokenId> whole;
    if (m_.plain_ && w.size() <= m_.vocabulary_.longest()) whole = m_.vocabulary_.find(hash, {}, w);
    std::uint8_t known = kUnasked;
    if (whole) {
      known = m_.whole_[static_cast<std::size_t>(*whole)].load(std::memory_order_relaxed);
      if (known == kWhole) return ids.push_back(*whole);
    }
    Cached* cached = nullptr;
    if (!cache_.empty() && w.size() <= kCachedBytes) {
      cached = &cache_[static_cast<std::size_t>(hash * 0x9E3779B97F4A7C15u >> 32) & (cache_.size() - 1)];
      if (cached->num_bytes == w.size() && std::equal(w.begin(), w.end(), cached->bytes.begin())) {
        ids.insert(ids.end(), cached->ids.begin(), cached->ids.begin() + cached->num_ids);
        return;
      }
    }
    const std::size_t before = ids.size();
    merge_word(w, ids);
    const std::size_t count = ids.size() - before;
    if (whole && known == kUnasked) {
      const bool same = count == 1 && ids[before] == *whole;
      m_.whole_[static_cast<std::size_t>(*whole)].store(same ? kWhole : kParts, std::memory_order_relaxed);
      if (same) return;
    }
    if (cached != nullptr && count <= kCachedIds) {
      cached->num_bytes = static_cast<std::uint8_t>(w.size());
      cached->num_ids = static_cast<std::uint8_t>(count);
      std::copy(w.begin(), w.end(), cached->bytes.begin());
      std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), cached->ids.begin());
    }
  }

  void merge_word(std::string_view w, std::vector<TokenId>& ids) {
    symbols_.clear();
    begins_.clear();
    split_characters(w);
    if (symbols_.size() > 1) {
      if (symbols_.size() <= kSmallWord) {
        merge_small(w);
      } else {
        merge_large(w);
      }
    }
    if (m_.ranks_.empty()) {
      ids.insert(ids.end(), symbols_.begin(), symbols_.end());
      return;
    }
    // With ranks: a merged symbol is a token, a single character may not be.
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i] >= 0) {
        ids.push_back(symbols_[i]);
        continue;
      }
      const std::size_t end = i + 1 < symbols_.size() ? begins_[i + 1] : w.size();
      for (const char c : w.substr(begins_[i], end - begins_[i])) {
        const TokenId byte = m_.byte_ids_[static_cast<unsigned char>(c)];
        if (byte >= 0) {
          ids.push_back(byte);
        } else if (m_.options_.unknown) {
          ids.push_back(*m_.options_.unknown);
          break;
        }
      }
    }
  }

  TokenId character_id(char32_t c, std::string_view text, bool first, bool last) {
    if (m_.plain_) {
      return c < m_.character_ids_.size() ? m_.character_ids_[c] : m_.vocabulary_.find(text).value_or(-1);
    }
    scratch_.clear();
    if (!first) scratch_ += m_.options_.continuation;
    scratch_ += text;
    if (last) scratch_ += m_.options_.end_of_word;
    return m_.vocabulary_.find(scratch_).value_or(-1);
  }

  // Makes the initial symbols. An unknown token waits for its neighbours, and byte tokens are emitted before it, as in
  // the reference library.
  void split_characters(std::string_view w) {
    bool waiting = false;
    const auto settle = [&] {
      if (waiting) symbols_.push_back(*m_.options_.unknown);
      waiting = false;
    };
    for (std::size_t at = 0; at < w.size();) {
      const std::size_t begin = at;
      const char32_t c = decode_utf8(w, at);
      const std::string_view text = w.substr(begin, at - begin);
      const TokenId id = character_id(c, text, begin == 0, at == w.size());
      if (!m_.ranks_.empty()) {
        symbols_.push_back(id);
        begins_.push_back(static_cast<std::uint32_t>(begin));
        continue;
      }
      if (id >= 0) {
        settle();
        symbols_.push_back(id);
        continue;
      }
      if (m_.options_.byte_fallback && add_bytes(m_.plain_ ? text : std::string_view(scratch_))) continue;
      if (!m_.options_.unknown) continue;
      if (!m_.options_.fuse_unknown) settle();
      waiting = true;
    }
    settle();
  }

  bool add_bytes(std::string_view text) {
    for (const char c : text)
      if (m_.byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
    for (const char c : text) symbols_.push_back(m_.byte_ids_[static_cast<unsigned char>(c)]);
    return true;
  }

  // The merge of the adjacent symbols `left` and `right`. `right` ends at byte `end` (used only with ranks).
  MergeTable::Merge merge_of(std::string_view w, std::size_t left, std::size_t right, std::size_t end) const {
    if (m_.ranks_.empty()) return m_.merges_.find(symbols_[left], symbols_[right]);
    const std::size_t begin = begins_[left];
    if (end - begin > m_.vocabulary_.longest()) return {};
    const std::optional<TokenId> id = m_.vocabulary_.find(w.substr(begin, end - begin));
    return id ? MergeTable::Merge{m_.ranks_[static_cast<std::size_t>(*id)], *id} : MergeTable::Merge{};
  }

  void merge_small(std::string_view w) {
    std::size_t n = symbols_.size();
    const bool ranks = !m_.ranks_.empty();
    std::array<MergeTable::Merge, kSmallWord> merges;
    const auto end_of = [&](std::size_t i) { return !ranks ? 0 : i + 1 < n ? std::size_t{begins_[i + 1]} : w.size(); };
    const auto look = [&](std::size_t i) {
      merges[i] = merge_of(w, i, i + 1, end_of(i + 1));
      if (merges[i].made < 0) merges[i].rank = kNoRank;
    };
    for (std::size_t i = 0; i + 1 < n; ++i) look(i);
    while (n > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < n; ++i)
        if (merges[i].rank < merges[best].rank) best = i;
      if (merges[best].made < 0) break;
      symbols_[best] = merges[best].made;
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      if (ranks) begins_.erase(begins_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      for (std::size_t i = best + 1; i + 1 < n - 1; ++i) merges[i] = merges[i + 1];
      --n;
      if (best + 1 < n) look(best);
      if (best > 0) look(best - 1);
    }
  }

  // Merges with a linked list of symbols and a heap of ranks and positions. A stale heap entry is detected by its rank.
  void merge_large(std::string_view w) {
    const std::size_t n = symbols_.size();
    if (n > 0x7FFFFFFFu) {
      throw Error(ErrorCode::InvalidArgument, concat_text("a word of ", n, " characters cannot be merged"),
                  "cut the text into shorter ones");
    }
    links_.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      links_[i] = {static_cast<std::int32_t>(i) - 1, i + 1 < n ? static_cast<std::int32_t>(i) + 1 : -1};
    heap_.clear();
    const auto merge_at = [&](std::size_t i) -> MergeTable::Merge {
      const std::int32_t next = links_[i].next;
      if (next < 0) return {};
      const std::size_t right = static_cast<std::size_t>(next);
      std::size_t end = 0;
      if (!m_.ranks_.empty())
        end = links_[right].next < 0 ? w.size() : std::size_t{begins_[static_cast<std::size_t>(links_[right].next)]};
      return merge_of(w, i, right, end);
    };
    const auto entry = [](std::uint32_t rank, std::size_t i) { return std::uint64_t{rank} << 32 | i; };
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const MergeTable::Merge merge = merge_at(i);
      if (merge.made >= 0) heap_.push_back(entry(merge.rank, i));
    }
    // The initial pairs are sorted once and read in order. Only later pairs go through the heap.
    std::sort(heap_.begin(), heap_.end());
    std::swap(heap_, sorted_);
    heap_.clear();
    std::size_t read = 0;
    while (read < sorted_.size() || !heap_.empty()) {
      std::uint64_t top = 0;
      if (heap_.empty() || (read < sorted_.size() && sorted_[read] <= heap_.front())) {
        top = sorted_[read++];
      } else {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        top = heap_.back();
        heap_.pop_back();
      }
      const std::size_t i = static_cast<std::size_t>(top & 0xFFFFFFFFu);
      if (symbols_[i] == kGone) continue;
      const MergeTable::Merge merge = merge_at(i);
      if (merge.made < 0 || merge.rank != top >> 32) continue;
      const std::size_t right = static_cast<std::size_t>(links_[i].next);
      symbols_[i] = merge.made;
      symbols_[right] = kGone;
      links_[i].next = links_[right].next;
      if (links_[i].next >= 0) links_[static_cast<std::size_t>(links_[i].next)].previous = static_cast<std::int32_t>(i);
      const auto push = [&](std::size_t at) {
        const MergeTable::Merge merge_there = merge_at(at);
        if (merge_there.made < 0) return;
        heap_.push_back(entry(merge_there.rank, at));
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      };
      if (links_[i].previous >= 0) push(static_cast<std::size_t>(links_[i].previous));
      push(i);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (symbols_[i] == kGone) continue;
      symbols_[kept] = symbols_[i];
      if (!m_.ranks_.empty()) begins_[kept] = begins_[i];
      ++kept;
    }
    symbols_.resize(kept);
    if (!m_.ranks_.empty()) begins_.resize(kept);
  }

  static constexpr TokenId kGone = -2;  // -1 is a character without a token
  struct Link {
    std::int32_t previous = -1, next = -1;
  };
  const BpeModel& m_;
  std::vector<TokenId> symbols_;
  std::vector<std::uint32_t> begins_;  // first byte of each symbol; used only with ranks
  std::vector<Link> links_;
  std::vector<std::uint64_t> heap_, sorted_;
  std::vector<Cached> cache_;
  std::string scratch_;
};

std::unique_ptr<WordEncoder> BpeModel::encoder(std::size_t text_bytes) const {
  return std::make_unique<Encoder>(*this, text_bytes);
}

}  // namespace rlx
