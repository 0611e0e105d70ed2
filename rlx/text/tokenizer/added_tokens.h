// The search for added tokens, which runs before words are split.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/added_token.h"

namespace rlx {

/// Finds added tokens in a text by a trie of bytes. Of the tokens that start at the same byte the longest wins. A match
/// is consumed even when `single_word` rejects it.
class AddedTokenMatcher {
 public:
  /// Longest text that `add` accepts, since the search may walk that far at each byte.
  static constexpr std::size_t kMaxBytes = 4096;

  /// Adds `text` for `token`. Of equal texts the last one wins. An empty text never matches. InvalidArgument for a text
  /// of more than kMaxBytes.
  void add(std::string_view text, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  /// Calls `rest(text)` for the text between tokens and `token(id)` for the tokens, in order.
  template <class Rest, class Token>
  void split(std::string_view text, const Rest& rest, const Token& token) const {
    std::size_t done = 0, at = 0;
    while (at < text.size()) {
      while (at < text.size() && root_[static_cast<unsigned char>(text[at])] == 0) ++at;
      if (at == text.size()) break;
      std::size_t length = 0;
      const std::uint32_t found = longest(text.substr(at), length);
      if (found == 0) {
        ++at;
        continue;
      }
      std::size_t start = at, stop = at + length;
      at = stop;
      const Flagged& t = tokens_[found - 1];
      if (t.flags != 0 && !widen(t, text, done, start, stop)) continue;
      if (done < start) rest(text.substr(done, start - done));
      token(t.id);
      done = stop;
    }
    if (done < text.size()) rest(text.substr(done));
  }

 private:
  struct Flagged {
    TokenId id = 0;
    std::uint8_t flags = 0;
  };
  struct Edge {
    std::uint64_t key = 0;  // node << 8 | byte, plus one; 0 = free
    std::uint32_t node = 0;
  };
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (edges_.empty()) return 0;
    const std::uint64_t key = (std::uint64_t{node} << 8 | byte) + 1;
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (edges_.size() - 1)) {
      if (edges_[slot].key == key) return edges_[slot].node;
      if (edges_[slot].key == 0) return 0;
    }
  }
  std::size_t slot_of(std::uint64_t key) const {
    return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15u >> 32) & (edges_.size() - 1);
  }
  void insert_edge(std::uint64_t key, std::uint32_t node);
  // The index plus one in tokens_ of the longest token that is a prefix of `text`, and its length; 0 for none.
  std::uint32_t longest(std::string_view text, std::size_t& length) const;
  // Applies the token's flags to a match; false when the match is rejected.
  static bool widen(const Flagged& token, std::string_view text, std::size_t done, std::size_t& start,
                    std::size_t& stop);

  std::array<std::uint32_t, 256> root_{};  // first byte to node, 0 = none
  std::vector<Edge> edges_;                // open addressing, a power of two
  std::vector<std::uint32_t> ends_{0};     // by node: index plus one in tokens_, 0 = no token ends here
  std::vector<Flagged> tokens_;
  std::size_t num_edges_ = 0;
};

}  // namespace rlx
