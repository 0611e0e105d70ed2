// UTF-8 decoding, encoding and validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// Decodes the character at `at` of valid UTF-8 and moves `at` past it.
inline char32_t decode_utf8(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    at += 1;
    return lead;
  }
  if (lead < 0xE0) {
    const char32_t c = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    at += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    at += 3;
    return c;
  }
  const char32_t c = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  at += 4;
  return c;
}

/// True when `byte` continues a character instead of starting one.
inline bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Appends one Unicode scalar value.
inline void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    const char bytes[] = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    out.append(bytes, 2);
  } else if (c < 0x10000) {
    const char bytes[] = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                          static_cast<char>(0x80 | (c & 0x3F))};
    out.append(bytes, 3);
  } else {
    const char bytes[] = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
                          static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    out.append(bytes, 4);
  }
}

/// The offset of the first byte that starts no well-formed character (as in the Unicode Standard's table 3-7, so
/// overlong forms, surrogates and values above U+10FFFF are not well-formed). None when `text` is valid.
inline std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  const std::size_t size = text.size();
  while (at < size) {
    if (size - at >= 8) {
      std::uint64_t block;
      std::memcpy(&block, text.data() + at, 8);
      if ((block & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const unsigned lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    unsigned low = 0x80, high = 0xBF;
    std::size_t length = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      length = 3;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      length = 4;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (length == 0 || size - at < length) return at;
    for (std::size_t i = 1; i < length; ++i) {
      const unsigned next = static_cast<unsigned char>(text[at + i]);
      if (next < low || next > high) return at;
      low = 0x80;
      high = 0xBF;
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace rlx
