// Character functions with the semantics of Python's str, on utf8proc's tables and the multi-character case mappings of
// the Unicode Character Database (SpecialCasing.txt), which utf8proc lacks.
#include "rlx/text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rlx/base/utf8.h"

namespace rlx::jinja {
namespace {

struct SpecialCase {
  char32_t c;
  char32_t upper[3], title[3];
};
constexpr SpecialCase kSpecialCases[] = {
    {0xDF, {0x53, 0x53}, {0x53, 0x73}},
    {0x149, {0x2BC, 0x4E}, {0x2BC, 0x4E}},
    {0x1F0, {0x4A, 0x30C}, {0x4A, 0x30C}},
    {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3B0, {0x3A5, 0x308, 0x301}, {0x3A5, 0x308, 0x301}},
    {0x587, {0x535, 0x552}, {0x535, 0x582}},
    {0x1E96, {0x48, 0x331}, {0x48, 0x331}},
    {0x1E97, {0x54, 0x308}, {0x54, 0x308}},
    {0x1E98, {0x57, 0x30A}, {0x57, 0x30A}},
    {0x1E99, {0x59, 0x30A}, {0x59, 0x30A}},
    {0x1E9A, {0x41, 0x2BE}, {0x41, 0x2BE}},
    {0x1F50, {0x3A5, 0x313}, {0x3A5, 0x313}},
    {0x1F52, {0x3A5, 0x313, 0x300}, {0x3A5, 0x313, 0x300}},
    {0x1F54, {0x3A5, 0x313, 0x301}, {0x3A5, 0x313, 0x301}},
    {0x1F56, {0x3A5, 0x313, 0x342}, {0x3A5, 0x313, 0x342}},
    {0x1F80, {0x1F08, 0x399}, {0x1F88}},
    {0x1F81, {0x1F09, 0x399}, {0x1F89}},
    {0x1F82, {0x1F0A, 0x399}, {0x1F8A}},
    {0x1F83, {0x1F0B, 0x399}, {0x1F8B}},
    {0x1F84, {0x1F0C, 0x399}, {0x1F8C}},
    {0x1F85, {0x1F0D, 0x399}, {0x1F8D}},
    {0x1F86, {0x1F0E, 0x399}, {0x1F8E}},
    {0x1F87, {0x1F0F, 0x399}, {0x1F8F}},
    {0x1F88, {0x1F08, 0x399}, {0x1F88}},
    {0x1F89, {0x1F09, 0x399}, {0x1F89}},
    {0x1F8A, {0x1F0A, 0x399}, {0x1F8A}},
    {0x1F8B, {0x1F0B, 0x399}, {0x1F8B}},
    {0x1F8C, {0x1F0C, 0x399}, {0x1F8C}},
    {0x1F8D, {0x1F0D, 0x399}, {0x1F8D}},
    {0x1F8E, {0x1F0E, 0x399}, {0x1F8E}},
    {0x1F8F, {0x1F0F, 0x399}, {0x1F8F}},
    {0x1F90, {0x1F28, 0x399}, {0x1F98}},
    {0x1F91, {0x1F29, 0x399}, {0x1F99}},
    {0x1F92, {0x1F2A, 0x399}, {0x1F9A}},
    {0x1F93, {0x1F2B, 0x399}, {0x1F9B}},
    {0x1F94, {0x1F2C, 0x399}, {0x1F9C}},
    {0x1F95, {0x1F2D, 0x399}, {0x1F9D}},
    {0x1F96, {0x1F2E, 0x399}, {0x1F9E}},
    {0x1F97, {0x1F2F, 0x399}, {0x1F9F}},
    {0x1F98, {0x1F28, 0x399}, {0x1F98}},
    {0x1F99, {0x1F29, 0x399}, {0x1F99}},
    {0x1F9A, {0x1F2A, 0x399}, {0x1F9A}},
    {0x1F9B, {0x1F2B, 0x399}, {0x1F9B}},
    {0x1F9C, {0x1F2C, 0x399}, {0x1F9C}},
    {0x1F9D, {0x1F2D, 0x399}, {0x1F9D}},
    {0x1F9E, {0x1F2E, 0x399}, {0x1F9E}},
    {0x1F9F, {0x1F2F, 0x399}, {0x1F9F}},
    {0x1FA0, {0x1F68, 0x399}, {0x1FA8}},
    {0x1FA1, {0x1F69, 0x399}, {0x1FA9}},
    {0x1FA2, {0x1F6A, 0x399}, {0x1FAA}},
    {0x1FA3, {0x1F6B, 0x399}, {0x1FAB}},
    {0x1FA4, {0x1F6C, 0x399}, {0x1FAC}},
    {0x1FA5, {0x1F6D, 0x399}, {0x1FAD}},
    {0x1FA6, {0x1F6E, 0x399}, {0x1FAE}},
    {0x1FA7, {0x1F6F, 0x399}, {0x1FAF}},
    {0x1FA8, {0x1F68, 0x399}, {0x1FA8}},
    {0x1FA9, {0x1F69, 0x399}, {0x1FA9}},
    {0x1FAA, {0x1F6A, 0x399}, {0x1FAA}},
    {0x1FAB, {0x1F6B, 0x399}, {0x1FAB}},
    {0x1FAC, {0x1F6C, 0x399}, {0x1FAC}},
    {0x1FAD, {0x1F6D, 0x399}, {0x1FAD}},
    {0x1FAE, {0x1F6E, 0x399}, {0x1FAE}},
    {0x1FAF, {0x1F6F, 0x399}, {0x1FAF}},
    {0x1FB2, {0x1FBA, 0x399}, {0x1FBA, 0x345}},
    {0x1FB3, {0x391, 0x399}, {0x1FBC}},
    {0x1FB4, {0x386, 0x399}, {0x386, 0x345}},
    {0x1FB6, {0x391, 0x342}, {0x391, 0x342}},
    {0x1FB7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}},
    {0x1FBC, {0x391, 0x399}, {0x1FBC}},
    {0x1FC2, {0x1FCA, 0x399}, {0x1FCA, 0x345}},
    {0x1FC3, {0x397, 0x399}, {0x1FCC}},
    {0x1FC4, {0x389, 0x399}, {0x389, 0x345}},
    {0x1FC6, {0x397, 0x342}, {0x397, 0x342}},
    {0x1FC7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}},
    {0x1FCC, {0x397, 0x399}, {0x1FCC}},
    {0x1FD2, {0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}},
    {0x1FD3, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x1FD6, {0x399, 0x342}, {0x399, 0x342}},
    {0x1FD7, {0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}},
    {0x1FE2, {0x3A5, 0x308, 0x300}, {0x3A5, 0x308, 0x300}},
    {0x1FE3, {0x3A5, 0x308, 0x301}, {0x3A5, 0x308, 0x301}},
    {0x1FE4, {0x3A1, 0x313}, {0x3A1, 0x313}},
    {0x1FE6, {0x3A5, 0x342}, {0x3A5, 0x342}},
    {0x1FE7, {0x3A5, 0x308, 0x342}, {0x3A5, 0x308, 0x342}},
    {0x1FF2, {0x1FFA, 0x399}, {0x1FFA, 0x345}},
    {0x1FF3, {0x3A9, 0x399}, {0x1FFC}},
    {0x1FF4, {0x38F, 0x399}, {0x38F, 0x345}},
    {0x1FF6, {0x3A9, 0x342}, {0x3A9, 0x342}},
    {0x1FF7, {0x3A9, 0x342, 0x399}, {0x3A9, 0x342, 0x345}},
    {0x1FFC, {0x3A9, 0x399}, {0x1FFC}},
    {0xFB00, {0x46, 0x46}, {0x46, 0x66}},
    {0xFB01, {0x46, 0x49}, {0x46, 0x69}},
    {0xFB02, {0x46, 0x4C}, {0x46, 0x6C}},
    {0xFB03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
    {0xFB04, {0x46, 0x46, 0x4C}, {0x46, 0x66, 0x6C}},
    {0xFB05, {0x53, 0x54}, {0x53, 0x74}},
    {0xFB06, {0x53, 0x54}, {0x53, 0x74}},
    {0xFB13, {0x544, 0x546}, {0x544, 0x576}},
    {0xFB14, {0x544, 0x535}, {0x544, 0x565}},
    {0xFB15, {0x544, 0x53B}, {0x544, 0x56B}},
    {0xFB16, {0x54E, 0x546}, {0x54E, 0x576}},
    {0xFB17, {0x544, 0x53D}, {0x544, 0x56D}},
};

const SpecialCase* special_case(char32_t c) {
  const auto* it = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                                    [](const SpecialCase& s, char32_t v) { return s.c < v; });
  return it != std::end(kSpecialCases) && it->c == c ? it : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
char32_t simple_upper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t simple_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t simple_title(char32_t c) { return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

void append_all(std::string& out, const char32_t (&text)[3]) {
  for (const char32_t c : text)
    if (c != 0) append_utf8(out, c);
}
void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* s = c < 0x80 ? nullptr : special_case(c)) return append_all(out, s->upper);
  append_utf8(out, simple_upper(c));
}
void append_title(std::string& out, char32_t c) {
  if (const SpecialCase* s = c < 0x80 ? nullptr : special_case(c)) return append_all(out, s->title);
  append_utf8(out, simple_title(c));
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
  }
  constexpr std::u32string_view kMiddle =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return kMiddle.find(c) != std::u32string_view::npos;
}

// Whether a capital sigma ends a word: a cased character before it and none after it, not counting ignorable
// characters.
bool is_final_sigma(std::string_view text, std::size_t start, std::size_t end) {
  bool before = false;
  for (std::size_t at = start; at > 0;) {
    do --at;
    while (at > 0 && is_utf8_continuation(text[at]));
    std::size_t next = at;
    const char32_t c = decode_utf8(text, next);
    if (is_case_ignorable(c)) continue;
    before = is_cased(c);
    break;
  }
  if (!before) return false;
  for (std::size_t at = end; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t start, std::size_t end, char32_t c) {
  if (c == 0x3A3) return append_utf8(out, is_final_sigma(text, start, end) ? 0x3C2 : 0x3C3);
  if (c == 0x130) return append_utf8(out, 'i'), append_utf8(out, 0x307);
  append_utf8(out, simple_lower(c));
}

// Calls each(out, start, end, c) for every character.
template <class Each>
std::string mapped(std::string_view text, const Each& each) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = decode_utf8(text, at);
    each(out, start, at, c);
  }
  return out;
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}
bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}
bool is_alpha(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit_like(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490);
}
bool is_numeric(char32_t c) {
  const utf8proc_category_t k = category(c);
  return is_digit_like(c) || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA; }
bool is_word(char32_t c) {
  if (c < 0x80) return is_alpha(c) || is_decimal(c) || c == '_';
  return is_alpha(c) || is_numeric(c);
}

bool is_identifier(std::string_view text) {
  bool first = true;
  for (std::size_t at = 0; at < text.size(); first = false) {
    const char32_t c = decode_utf8(text, at);
    const utf8proc_category_t k = category(c);
    const bool letter = c == '_' || is_alpha(c) || k == UTF8PROC_CATEGORY_NL;
    const bool more = k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
                      k == UTF8PROC_CATEGORY_PC;
    if (!letter && (first || !more)) return false;
  }
  return !text.empty();
}

int digit_value(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const unsigned char low = c | 0x20;
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

std::string upper(std::string_view text) {
  return mapped(text, [](std::string& out, std::size_t, std::size_t, char32_t c) { append_upper(out, c); });
}
std::string lower(std::string_view text) {
  return mapped(text, [&](std::string& out, std::size_t start, std::size_t end, char32_t c) {
    append_lower(out, text, start, end, c);
  });
}
std::string title(std::string_view text) {
  bool inside = false;
  return mapped(text, [&](std::string& out, std::size_t start, std::size_t end, char32_t c) {
    if (inside)
      append_lower(out, text, start, end, c);
    else
      append_title(out, c);
    inside = is_cased(c);
  });
}
std::string capitalize(std::string_view text) {
  return mapped(text, [&](std::string& out, std::size_t start, std::size_t end, char32_t c) {
    if (start == 0)
      append_title(out, c);
    else
      append_lower(out, text, start, end, c);
  });
}
std::string swapcase(std::string_view text) {
  return mapped(text, [&](std::string& out, std::size_t start, std::size_t end, char32_t c) {
    if (is_upper(c))
      append_lower(out, text, start, end, c);
    else if (is_lower(c))
      append_upper(out, c);
    else
      append_utf8(out, c);
  });
}
std::string casefold(std::string_view text) {
  return mapped(text, [](std::string& out, std::size_t, std::size_t, char32_t c) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
  });
}

namespace {

// The text without surrounding white space and with ASCII digits; nothing when it has other characters.
std::optional<std::string> plain_number(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    if (is_space(c)) {
      out += ' ';
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (is_decimal(c)) {  // decimal digits come in runs of ten from 0 on
      char32_t zero = c;
      while (is_decimal(zero - 1) && c - zero < 9) --zero;
      out += static_cast<char>('0' + (c - zero));
    } else {
      return std::nullopt;
    }
  }
  const std::size_t first = out.find_first_not_of(' ');
  if (first == std::string::npos) return std::nullopt;
  return out.substr(first, out.find_last_not_of(' ') - first + 1);
}

// Removes single underscores between digits. Returns false for any other underscore.
bool drop_underscores(std::string& text, bool (*digit)(char)) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '_' && (i == 0 || i + 1 == text.size() || !digit(text[i - 1]) || !digit(text[i + 1]))) return false;
  std::erase(text, '_');
  return true;
}

}  // namespace

std::size_t find_text(std::string_view text, std::string_view word, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (word.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::optional<double> parse_float(std::string_view text) {
  std::optional<std::string> plain = plain_number(text);
  if (!plain || !drop_underscores(*plain, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  std::string word = *plain;
  const bool negative = word[0] == '-';
  if (word[0] == '-' || word[0] == '+') word.erase(0, 1);
  std::string low;
  for (const char c : word) low += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  if (low == "inf" || low == "infinity") return negative ? -HUGE_VAL : HUGE_VAL;
  if (low == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (low.empty() || low.find_first_not_of("0123456789.e+-") != std::string::npos || low[0] == '+' || low[0] == '-')
    return std::nullopt;
  double value = 0;
  const std::from_chars_result r = std::from_chars(low.data(), low.data() + low.size(), value);
  if (r.ptr != low.data() + low.size() || r.ec == std::errc::invalid_argument) return std::nullopt;
  if (r.ec == std::errc::result_out_of_range) value = std::strtod(low.c_str(), nullptr);
  return negative ? -value : value;
}

std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflow,
                                      std::optional<BigInteger>* large) {
  overflow = false;
  std::optional<std::string> plain = plain_number(text);
  if (!plain) return std::nullopt;
  const bool negative = (*plain)[0] == '-';
  if ((*plain)[0] == '-' || (*plain)[0] == '+') plain->erase(0, 1);
  if (plain->size() > 2 && (*plain)[0] == '0') {
    const char marker = static_cast<char>((*plain)[1] | 0x20);
    const int marked = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 0;
    if (marked != 0 && (base == 0 || base == marked)) {
      plain->erase(0, 2);
      base = marked;
      if ((*plain)[0] == '_') plain->erase(0, 1);
    }
  }
  if (!drop_underscores(*plain, [](char c) { return digit_value(static_cast<unsigned char>(c)) < 36; }))
    return std::nullopt;
  if (base == 0) {
    if (plain->size() > 1 && (*plain)[0] == '0' && plain->find_first_not_of('0') != std::string::npos)
      return std::nullopt;
    base = 10;
  }
  if (plain->empty()) return std::nullopt;
  for (const char c : *plain)
    if (digit_value(static_cast<unsigned char>(c)) >= base) return std::nullopt;
  if (negative) plain->insert(0, "-");
  std::int64_t value = 0;
  const std::from_chars_result r = std::from_chars(plain->data(), plain->data() + plain->size(), value, base);
  overflow = r.ec == std::errc::result_out_of_range;
  if (overflow && large != nullptr) *large = BigInteger::parse(*plain, base);
  return value;
}

}  // namespace rlx::jinja
