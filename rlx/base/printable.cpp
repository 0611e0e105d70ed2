// Escapes and truncates bytes for messages.
#include "rlx/base/printable.h"

#include <algorithm>
#include <cstdint>

#include "rlx/base/utf8.h"

namespace rlx {
namespace {

// One unit of output: a character, or the escape of a byte.
struct Unit {
  std::string text;
  std::size_t bytes, columns;
};

Unit first_unit(std::string_view rest) {
  const auto lead = static_cast<unsigned char>(rest[0]);
  if (lead == '\t') return {" ", 1, 1};
  if (lead >= 0x20 && lead < 0x7f) return {std::string(1, rest[0]), 1, 1};
  if (lead >= 0xC2) {
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const std::string_view character = rest.substr(0, length);
    std::size_t at = 0;
    // U+0080 to U+009F are control characters too.
    if (character.size() == length && !find_invalid_utf8(character) && decode_utf8(character, at) >= 0xA0)
      return {std::string(character), length, 1};
  }
  constexpr char digits[] = "0123456789abcdef";
  return {{'\\', 'x', digits[lead >> 4], digits[lead & 15]}, 1, 4};
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t max_columns) {
  max_columns = std::max<std::size_t>(max_columns, 8);
  constexpr std::size_t kDots = 3;
  std::string out;
  std::size_t columns = 0, cut = 0;  // `cut`: the last position at which "..." still fits
  for (std::size_t at = 0; at < bytes.size();) {
    const Unit piece = first_unit(bytes.substr(at));
    if (columns + piece.columns > max_columns) return out.substr(0, cut) + "...";
    out += piece.text;
    columns += piece.columns;
    at += piece.bytes;
    if (columns + kDots <= max_columns) cut = out.size();
  }
  return out;
}

std::size_t printable_columns(std::string_view bytes) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Unit piece = first_unit(bytes.substr(at));
    columns += piece.columns;
    at += piece.bytes;
  }
  return columns;
}

}  // namespace rlx
