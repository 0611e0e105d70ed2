// SentencePiece's precompiled normalisation rules: a double-array trie of texts and what they become.
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
  /// Reads `bytes`: u32 bytes of the trie, the trie (u32 units), then texts that end in NUL. `where` opens errors.
  /// Errors: BadFile.
  Charsmap(std::string_view bytes, const std::string& where);
  /// Appends the normal form of valid UTF-8, a grapheme cluster or a character at a time.
  void run(std::string_view text, std::string& out) const;

 private:
  // What the shortest rule that begins `text` turns it into.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<std::uint32_t> trie_;
  std::string texts_;
};

/// The bytes of a base64 text (RFC 4648, with padding), or nothing when it is not one.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace rlx
