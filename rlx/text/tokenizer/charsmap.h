// SentencePiece's precompiled normalisation rules: a double-array trie of texts and their replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Rules as SentencePiece compiles them; one object serves any number of threads.
class Charsmap {
 public:
  /// Reads `bytes`: u32 size of the trie in bytes, the trie (u32 units), then NUL-terminated texts. Errors begin with
  /// `where`. Errors: BadFile.
  Charsmap(std::string_view bytes, const std::string& where);
  /// Appends the normalised form of valid UTF-8, one grapheme cluster or character at a time.
  void run(std::string_view text, std::string& out) const;

 private:
  // The replacement of the shortest rule that is a prefix of `text`.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string texts_;
};

/// Decodes base64 (RFC 4648, with padding); nothing when the text is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace rlx
