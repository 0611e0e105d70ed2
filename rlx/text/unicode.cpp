// Character classes and normal forms on utf8proc. This file sorts combining marks itself: utf8proc's sort is quadratic
// in the length of a run of marks.
#include "rlx/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_hangul_syllable(char32_t c) { return c >= 0xAC00 && c <= 0xD7A3; }
bool is_hangul_part(char32_t c) { return c >= 0x1100 && c <= 0x11FF; }

// Decomposes, sorts marks and composes, one segment of text at a time.
class NormalFormWriter {
 public:
  NormalFormWriter(std::string& out, NormalForm form)
      : out_(out),
        compose_(form == NormalForm::Nfc || form == NormalForm::Nfkc),
        options_(static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                (form >= NormalForm::Nfkc ? UTF8PROC_COMPAT : 0))) {}

  void run(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      std::size_t end = at;
      while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
      if (end > at) {
        // ASCII never composes with preceding characters. Only its last character may compose with what follows.
        flush();
        const std::size_t copied = end < text.size() ? end - 1 : end;
        out_.append(text.substr(at, copied - at));
        if (copied < end) buffer_.push_back(text[copied]);
        at = end;
      }
      while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) add(decode_utf8(text, at));
    }
    flush();
  }

 private:
  void add(char32_t c) {
    const utf8proc_property_t* p = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    if (p->combining_class == 0 && p->decomp_seqindex == UINT16_MAX && p->comb_index == UINT16_MAX &&
        !is_hangul_syllable(c) && !is_hangul_part(c)) {
      flush();
      append_utf8(out_, c);
      return;
    }
    std::array<utf8proc_int32_t, 32> parts{};
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), options_, &boundary);
    check(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
          "a decomposition has at most 18 characters");
    buffer_.insert(buffer_.end(), parts.begin(), parts.begin() + count);
  }

  static int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

  void flush() {
    if (buffer_.empty()) return;
    if (buffer_.size() > 1) {
      for (std::size_t i = 0; i < buffer_.size();) {
        if (combining_class(buffer_[i]) == 0) {
          ++i;
          continue;
        }
        std::size_t end = i;
        while (end < buffer_.size() && combining_class(buffer_[end]) != 0) ++end;
        if (end - i > 1) {
          std::stable_sort(
              buffer_.begin() + static_cast<std::ptrdiff_t>(i), buffer_.begin() + static_cast<std::ptrdiff_t>(end),
              [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
        }
        i = end;
      }
    }
    std::size_t size = buffer_.size();
    if (compose_ && size > 1) {
      const utf8proc_ssize_t composed =
          utf8proc_normalize_utf32(buffer_.data(), static_cast<utf8proc_ssize_t>(size),
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      check(composed >= 0, "composing a decomposed text cannot fail");
      size = static_cast<std::size_t>(composed);
    }
    for (std::size_t i = 0; i < size; ++i) append_utf8(out_, static_cast<char32_t>(buffer_[i]));
    buffer_.clear();
  }

  std::string& out_;
  bool compose_;
  utf8proc_option_t options_;
  std::vector<utf8proc_int32_t> buffer_;
};

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_cjk(char32_t c) {
  return c >= 0x3400 &&
         ((c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0xF900 && c <= 0xFAFF) ||
          (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
          (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0x2F800 && c <= 0x2FA1F));
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

// Unassigned code points are kept.
bool is_bert_dropped(char32_t c) {
  if (c == 0 || c == 0xFFFD) return true;
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

bool is_word_character(char32_t c) {
  const utf8proc_category_t k = category(c);
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";  // the only character whose lower case is two characters
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_normal_form(std::string& out, std::string_view text, NormalForm form) {
  out.reserve(out.size() + text.size());
  NormalFormWriter(out, form).run(text);
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0;
  char32_t c = decode_utf8(text, at);
  while (at < text.size()) {
    std::size_t next = at;
    const char32_t following = decode_utf8(text, next);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c), static_cast<utf8proc_int32_t>(following),
                                         &state)) {
      break;
    }
    c = following;
    at = next;
  }
  return at;
}

std::string_view text_start(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && is_utf8_continuation(text[most])) --most;
  return text.substr(0, most);
}

void require_utf8(std::string_view text) {
  if (const std::optional<std::size_t> bad = find_invalid_utf8(text)) {
    constexpr char kHex[] = "0123456789ABCDEF";
    const unsigned byte = static_cast<unsigned char>(text[*bad]);
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("invalid UTF-8 at byte ", *bad, " of ", text.size(), " (0x", kHex[byte >> 4], kHex[byte & 15], ")"),
        "convert the text to UTF-8, for example with iconv");
  }
}

std::size_t append_lossy_utf8(std::string& out, std::string_view bytes, bool more) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::optional<std::size_t> bad = find_invalid_utf8(bytes.substr(at));
    out += bytes.substr(at, bad ? *bad : std::string_view::npos);
    if (!bad) return bytes.size();
    at += *bad;
    // The maximal subpart of a character: as many bytes as could still become valid.
    std::size_t length = 1;
    const unsigned lead = static_cast<unsigned char>(bytes[at]);
    const std::size_t wanted = lead >= 0xC2 && lead <= 0xDF   ? 2
                               : lead >= 0xE0 && lead <= 0xEF ? 3
                               : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                              : 1;
    while (length < wanted && at + length < bytes.size()) {
      const unsigned b = static_cast<unsigned char>(bytes[at + length]);
      unsigned low = 0x80, high = 0xBF;
      if (length == 1) {
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
      }
      if (b < low || b > high) break;
      ++length;
    }
    if (more && at + length == bytes.size() && length < wanted) return at;
    out += kReplacementCharacter;
    at += length;
  }
  return at;
}

}  // namespace rlx
