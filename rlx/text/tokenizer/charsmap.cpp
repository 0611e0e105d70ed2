// Parsing and search of SentencePiece's normalisation rules (its normalizer.cc, on Darts' double array).
#include "rlx/text/tokenizer/charsmap.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/text/unicode.h"

namespace rlx {

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorCode::BadFile, concat_text(where, ": the precompiled charsmap ", what));
  };
  const auto u32 = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 4; i-- > 0;) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    return v;
  };
  if (bytes.size() < 4) refuse("is shorter than its header");
  const std::size_t size = u32(0);
  if (size > bytes.size() - 4 || size % 4 != 0 || size == 0)
    refuse(concat_text("has a trie of ", size, " bytes, but only ", bytes.size() - 4, " bytes follow"));
  trie_.resize(size / 4);
  for (std::size_t i = 0; i < trie_.size(); ++i) trie_[i] = u32(4 + 4 * i);
  texts_ = bytes.substr(4 + size);
  if (const std::optional<std::size_t> bad = find_invalid_utf8(texts_))
    refuse(concat_text("has invalid UTF-8 at byte ", 4 + size + *bad));
  constexpr std::size_t kLongest = 1024;  // limits the growth of a text by a rule
  for (std::size_t at = 0; at < texts_.size();) {
    const std::size_t end = std::min(texts_.find('\0', at), texts_.size());
    if (end - at > kLongest) refuse(concat_text("has a text of ", end - at, " bytes, expected at most ", kLongest));
    at = end + 1;
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  const auto offset = [](std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); };
  std::size_t node = offset(trie_[0]);
  for (const char c : text) {
    const std::uint32_t label = static_cast<unsigned char>(c);
    if (label == 0) break;
    node ^= label;
    if (node >= trie_.size()) return std::nullopt;
    const std::uint32_t unit = trie_[node];
    if ((unit & (1u << 31 | 0xFF)) != label) return std::nullopt;
    node ^= offset(unit);
    if (unit >> 8 & 1) {
      if (node >= trie_.size()) return std::nullopt;
      const std::size_t at = trie_[node] & 0x7FFFFFFF;
      if (at > texts_.size() || (at < texts_.size() && is_utf8_continuation(texts_[at]))) return std::nullopt;
      const std::string_view rest = std::string_view(texts_).substr(at);
      return rest.substr(0, rest.find('\0'));
    }
  }
  return std::nullopt;
}

void Charsmap::run(std::string_view text, std::string& out) const {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at + 1;
    // A printable ASCII character before another one is a grapheme cluster of its own.
    const auto plain = [&](std::size_t i) { return text[i] >= ' ' && text[i] < 0x7F; };
    if (!plain(at) || (end < text.size() && !plain(end))) end = grapheme_end(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    at = end;
    if (cluster.size() < 6) {
      if (const std::optional<std::string_view> to = find(cluster)) {
        out += *to;
        continue;
      }
    }
    for (std::size_t i = 0; i < cluster.size();) {
      const std::size_t begin = i;
      (void)decode_utf8(cluster, i);
      const std::string_view c = cluster.substr(begin, i - begin);
      out += find(c).value_or(c);
    }
  }
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    values[static_cast<unsigned char>(kLetters[i])] = static_cast<std::int8_t>(i);
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t length = text.size();
  for (int i = 0; i < 2 && length > 0 && text[length - 1] == '='; ++i) --length;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, length)) {
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

}  // namespace rlx
