// A vocabulary: token texts by id in one buffer, and a hash index that finds all prefixes of a word in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

using TokenId = std::int32_t;

/// Texts of tokens by id, and ids by text.
class Vocabulary {
 public:
  static constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325u;
  /// FNV-1a. It extends byte by byte, so one pass over a word gives the hash of each of its prefixes.
  static std::uint64_t hash_step(std::uint64_t state, char byte) {
    return (state ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  static std::uint64_t hash_text(std::uint64_t state, std::string_view text) {
    for (const char c : text) state = hash_step(state, c);
    return state;
  }

  /// Reserves memory for `num_tokens` tokens of `num_bytes` bytes in total.
  void reserve(std::size_t num_tokens, std::size_t num_bytes);
  /// Sets the text of `id` and adds it to the index. Of equal texts the last one added is found. InvalidArgument for a
  /// negative id. Memory grows with the largest id.
  void add(std::string_view token, TokenId id);
  /// Sets the text of `id` without adding it to the index: for added tokens, which the search inside words must not
  /// find.
  void add_hidden(std::string_view token, TokenId id);

  /// One more than the largest id.
  std::size_t size() const { return spans_.size(); }
  bool has(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < spans_.size() &&
           spans_[static_cast<std::size_t>(id)].length != kAbsent;
  }
  /// The text of an id. InvalidArgument when the id has none (`has`).
  std::string_view token(TokenId id) const {
    if (!has(id)) throw_no_token(id);
    return text_of(id);
  }
  /// Bytes of the longest findable token.
  std::size_t longest() const { return longest_; }

  /// Prefetches the index entry of this hash for a later find or add, so that many cache misses overlap.
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[slot_of(hash)]);
  }
  /// Prefetches the next memory of a find after `prefetch` has arrived: the text's position, then the text itself.
  void prefetch_entry(std::uint64_t hash) const {
    if (const TokenId id = likely_id(hash); id >= 0) __builtin_prefetch(&spans_[static_cast<std::size_t>(id)]);
  }
  void prefetch_text(std::uint64_t hash) const {
    if (const TokenId id = likely_id(hash); id >= 0) __builtin_prefetch(text_of(id).data());
  }
  std::optional<TokenId> find(std::string_view token) const { return find(hash_text(kHashSeed, token), {}, token); }
  /// The token whose text is `head` followed by `tail`, given the hash of the whole text.
  std::optional<TokenId> find(std::uint64_t hash, std::string_view head, std::string_view tail) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t slot = slot_of(hash);; slot = (slot + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[slot];
      if (s.entry == 0) return std::nullopt;
      if (s.tag != tag) continue;
      const std::string_view text = text_of(static_cast<TokenId>(s.entry - 1));
      if (text.size() == head.size() + tail.size() && text.substr(head.size()) == tail &&
          text.substr(0, head.size()) == head) {
        return static_cast<TokenId>(s.entry - 1);
      }
    }
  }

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffffu;
  struct Span {
    std::uint32_t offset = 0;
    std::uint32_t length = kAbsent;
  };
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t entry = 0;  // id + 1, 0 = free
  };
  // Spreads the hash by a multiply: FNV's low bits are weak for short texts.
  static std::uint64_t mix(std::uint64_t hash) { return hash * 0x9E3779B97F4A7C15u; }
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
  std::size_t slot_of(std::uint64_t hash) const {
    return static_cast<std::size_t>(mix(hash) >> 32) & (slots_.size() - 1);
  }
  // The first token with that tag; -1: none.
  TokenId likely_id(std::uint64_t hash) const {
    if (slots_.empty()) return -1;
    for (std::size_t slot = slot_of(hash);; slot = (slot + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[slot];
      if (s.entry == 0 || s.tag == tag_of(hash)) return static_cast<TokenId>(s.entry) - 1;
    }
  }
  std::string_view text_of(TokenId id) const {
    const Span& s = spans_[static_cast<std::size_t>(id)];
    return {buffer_.data() + s.offset, s.length};
  }
  [[noreturn]] static void throw_no_token(TokenId id);
  void grow_slots(std::size_t num_tokens);
  void insert(std::uint64_t hash, TokenId id);

  std::string buffer_;       // the bytes of all tokens
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::size_t num_indexed_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace rlx
