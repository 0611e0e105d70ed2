// The trie of added tokens, and the application of their flags to a match.
#include "rlx/text/tokenizer/added_tokens.h"

#include <utility>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/unicode.h"

namespace rlx {
namespace {

constexpr unsigned kSingleWord = 1, kLeft = 2, kRight = 4;

}  // namespace

void AddedTokenMatcher::insert_edge(std::uint64_t key, std::uint32_t node) {
  std::size_t slot = slot_of(key);
  while (edges_[slot].key != 0) slot = (slot + 1) & (edges_.size() - 1);
  edges_[slot] = {key, node};
}

void AddedTokenMatcher::add(std::string_view text, const AddedToken& token) {
  if (text.empty()) return;
  if (text.size() > kMaxBytes) {
    throw Error(ErrorCode::InvalidArgument,
                concat_text("an added token has ", text.size(), " bytes, at most ", kMaxBytes, " are supported"));
  }
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = static_cast<unsigned char>(text[i]);
    std::uint32_t next = i == 0 ? root_[byte] : child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(ends_.size());
      ends_.push_back(0);
      if (i == 0) {
        root_[byte] = next;
      } else {
        if (++num_edges_ * 2 > edges_.size()) {
          std::vector<Edge> old =
              std::exchange(edges_, std::vector<Edge>(std::max<std::size_t>(64, edges_.size() * 2)));
          for (const Edge& e : old)
            if (e.key != 0) insert_edge(e.key, e.node);
        }
        insert_edge((std::uint64_t{node} << 8 | byte) + 1, next);
      }
    }
    node = next;
  }
  const unsigned flags =
      (token.single_word ? kSingleWord : 0u) | (token.lstrip ? kLeft : 0u) | (token.rstrip ? kRight : 0u);
  tokens_.push_back({token.id, static_cast<std::uint8_t>(flags)});
  ends_[node] = static_cast<std::uint32_t>(tokens_.size());
}

std::uint32_t AddedTokenMatcher::longest(std::string_view text, std::size_t& length) const {
  std::uint32_t node = root_[static_cast<unsigned char>(text[0])], found = 0;
  for (std::size_t i = 1; node != 0; ++i) {
    if (ends_[node] != 0) {
      found = ends_[node];
      length = i;
    }
    if (i == text.size()) break;
    node = child(node, static_cast<unsigned char>(text[i]));
  }
  return found;
}

bool AddedTokenMatcher::widen(const Flagged& token, std::string_view text, std::size_t done, std::size_t& start,
                              std::size_t& stop) {
  const auto before = [&](std::size_t at) {
    do --at;
    while (at > 0 && is_utf8_continuation(text[at]));
    return at;
  };
  if (token.flags & kSingleWord) {
    std::size_t previous = start > 0 ? before(start) : 0, next = stop;
    if (start > 0 && is_word_character(decode_utf8(text, previous))) return false;
    if (stop < text.size() && is_word_character(decode_utf8(text, next))) return false;
  }
  if (token.flags & kLeft) {
    while (start > done) {
      const std::size_t previous = before(start);
      std::size_t next = previous;
      if (!is_white_space(decode_utf8(text, next))) break;
      start = previous;
    }
    start = std::max(start, done);
  }
  if (token.flags & kRight) {
    stop = std::max(stop, done);  // white space that the previous token consumed
    while (stop < text.size()) {
      std::size_t next = stop;
      if (!is_white_space(decode_utf8(text, next))) break;
      stop = next;
    }
  }
  return true;
}

}  // namespace rlx
