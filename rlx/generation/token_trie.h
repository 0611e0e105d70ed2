// A sorted index of a vocabulary's byte strings, for token masks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// The vocabulary as a constraint sees it.
struct TokenBytes {
  std::vector<std::string> bytes{};  // by id: what the token adds to the text; "": never allowed
  std::vector<TokenId> special{};    // never allowed, whatever their bytes: control tokens
  std::vector<TokenId> end{};        // end tokens: allowed exactly where the text may end
};

/// The tokens of a vocabulary, sorted. Made once for a tokeniser and shared by all grammars. Copies share the tree.
class TokenTrie {
 public:
  /// Errors: InvalidArgument for no tokens, an id outside the vocabulary, a token of more than 65,535 bytes.
  explicit TokenTrie(TokenBytes tokens);

  /// Number of tokens, and of bits in a mask.
  std::size_t size() const;
  /// The bytes of a token. Errors: InvalidArgument for an id outside the vocabulary.
  std::string_view bytes(TokenId id) const;
  /// Whether `id` ends the sequence.
  bool is_end(TokenId id) const;
  std::span<const TokenId> end_tokens() const;

  struct Impl;
  /// For rlx itself. Errors: InvalidArgument for a trie that was moved from.
  const Impl& impl() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rlx
