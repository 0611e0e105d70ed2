// Construction of a vocabulary and its hash index.
#include "rlx/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "rlx/error.h"

namespace rlx {

void Vocabulary::throw_no_token(TokenId id) {
  throw Error(ErrorCode::InvalidArgument, concat_text("the vocabulary has no token ", id));
}

void Vocabulary::reserve(std::size_t num_tokens, std::size_t num_bytes) {
  buffer_.reserve(num_bytes);
  spans_.reserve(num_tokens);
  grow_slots(num_tokens);
}

void Vocabulary::add_hidden(std::string_view token, TokenId id) {
  if (id < 0) throw_no_token(id);
  const std::size_t index = static_cast<std::size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  spans_[index] = {static_cast<std::uint32_t>(buffer_.size()), static_cast<std::uint32_t>(token.size())};
  buffer_ += token;
}

void Vocabulary::add(std::string_view token, TokenId id) {
  add_hidden(token, id);
  grow_slots(num_indexed_ + 1);
  longest_ = std::max(longest_, token.size());
  insert(hash_text(kHashSeed, token), id);
}

void Vocabulary::insert(std::uint64_t hash, TokenId id) {
  const std::string_view text = text_of(id);
  std::size_t slot = slot_of(hash);
  while (slots_[slot].entry != 0 &&
         (slots_[slot].tag != tag_of(hash) || text_of(static_cast<TokenId>(slots_[slot].entry - 1)) != text)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  num_indexed_ += slots_[slot].entry == 0 ? 1 : 0;
  slots_[slot] = {tag_of(hash), static_cast<std::uint32_t>(id) + 1};
}

void Vocabulary::grow_slots(std::size_t num_tokens) {
  if (num_tokens * 2 <= slots_.size()) return;
  std::size_t size = std::max<std::size_t>(slots_.size(), 64);
  while (size < num_tokens * 2) size *= 2;
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size));
  num_indexed_ = 0;
  for (const Slot& s : old) {
    if (s.entry == 0) continue;
    const TokenId id = static_cast<TokenId>(s.entry - 1);
    insert(hash_text(kHashSeed, text_of(id)), id);
  }
}

}  // namespace rlx
