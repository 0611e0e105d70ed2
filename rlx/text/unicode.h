// Character classes and normal forms for tokenisers, from the tables of utf8proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

/// Property White_Space of Unicode.
bool is_white_space(char32_t c);
/// The CJK ideograph blocks of BERT's tokeniser, without kana and hangul.
bool is_cjk(char32_t c);
/// ASCII punctuation and symbols; outside ASCII the categories P*.
bool is_punctuation(char32_t c);
/// The class \w of regular expressions.
bool is_word_character(char32_t c);
/// Categories Nd, Nl and No.
bool is_number(char32_t c);
/// Categories Mn, Mc and Me.
bool is_mark(char32_t c);
/// Whether BERT's clean-up drops `c`: control, format, private use, U+0000 and U+FFFD, but not tab and line ends.
bool is_bert_dropped(char32_t c);

/// Appends the lower case of one code point, regardless of its position in a word.
void append_lower(std::string& out, char32_t c);

enum class NormalForm : std::uint8_t { Nfc, Nfd, Nfkc, Nfkd };

/// Appends a normal form (Unicode Standard Annex 15) of valid UTF-8. Takes O(n log n) in the longest run of marks.
void append_normal_form(std::string& out, std::string_view text, NormalForm form);

/// The end of the extended grapheme cluster that begins at `at`.
std::size_t grapheme_end(std::string_view text, std::size_t at);

/// The first `most` bytes of a text, or a few less to keep characters whole; for messages.
std::string_view text_start(std::string_view text, std::size_t most = 80);

/// The replacement for bytes that are not a character: U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
/// Appends bytes as text and returns how many it consumed. Invalid bytes become U+FFFD, one for each maximal subpart of
/// a character (Unicode Standard 3.9). With `more`, an incomplete character at the end is not consumed.
std::size_t append_lossy_utf8(std::string& out, std::string_view bytes, bool more);

/// Throws InvalidArgument naming the first byte of `text` that is not valid UTF-8.
void require_utf8(std::string_view text);

}  // namespace rlx
