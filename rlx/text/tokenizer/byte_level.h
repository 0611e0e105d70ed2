// The byte alphabet of GPT-2: each byte as a printable character, so that any byte string is valid text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/base/utf8.h"

namespace rlx {

/// Bytes to characters and back. Printable Latin-1 characters map to themselves, all other bytes to U+0100 and up.
class ByteAlphabet {
 public:
  /// The character of each byte.
  static constexpr std::array<std::uint16_t, 256> characters() {
    std::array<std::uint16_t, 256> out{};
    std::uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      out[b] = printable ? static_cast<std::uint16_t>(b) : next++;
    }
    return out;
  }
  /// The byte of a character below U+0144, or -1.
  static constexpr std::array<std::int16_t, 0x144> bytes() {
    std::array<std::int16_t, 0x144> out{};
    for (std::int16_t& v : out) v = -1;
    const std::array<std::uint16_t, 256> to = characters();
    for (std::size_t b = 0; b < 256; ++b) out[to[b]] = static_cast<std::int16_t>(b);
    return out;
  }
};

inline constexpr std::array<std::uint16_t, 256> kByteCharacters = ByteAlphabet::characters();
inline constexpr std::array<std::int16_t, 0x144> kCharacterBytes = ByteAlphabet::bytes();

/// Appends the characters that stand for the bytes of `text`.
inline void append_byte_characters(std::string& out, std::string_view text) {
  const std::size_t start = out.size();
  out.resize(start + 2 * text.size());
  char* write = out.data() + start;
  for (const char c : text) {
    const unsigned character = kByteCharacters[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      *write++ = static_cast<char>(character);
    } else {
      *write++ = static_cast<char>(0xC0 | character >> 6);
      *write++ = static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  out.resize(static_cast<std::size_t>(write - out.data()));
}

/// Appends the bytes of a token's characters, or the token itself when one of its characters is not in the alphabet.
inline void append_character_bytes(std::string& out, std::string_view token) {
  const std::size_t start = out.size();
  for (std::size_t at = 0; at < token.size();) {
    const char32_t c = decode_utf8(token, at);
    if (c >= kCharacterBytes.size() || kCharacterBytes[c] < 0) {
      out.resize(start);
      out += token;
      return;
    }
    out += static_cast<char>(kCharacterBytes[c]);
  }
}

}  // namespace rlx
