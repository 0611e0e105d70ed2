// Classes of code points and normal forms as tokenisers need them, by the tables of utf8proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

/// Property White_Space of Unicode.
bool is_white_space(char32_t c);
/// The CJK ideograph blocks of BERT's tokeniser; kana and hangul are not among them.
bool is_cjk(char32_t c);
/// ASCII punctuation and symbols, and the categories P* elsewhere.
bool is_punctuation(char32_t c);
/// What a regular expression calls \w.
bool is_word_character(char32_t c);
/// Categories Nd, Nl and No.
bool is_number(char32_t c);
/// Categories Mn, Mc and Me.
bool is_mark(char32_t c);
/// Whether BERT's clean-up drops it: control, format, private use, U+0000 and U+FFFD; not tab and line ends.
bool is_bert_dropped(char32_t c);

/// Appends the lower case of one code point, without regard to its place in a word.
void append_lower(std::string& out, char32_t c);

enum class NormalForm : std::uint8_t { Nfc, Nfd, Nfkc, Nfkd };

/// Appends a normal form (Unicode Standard Annex 15) of valid UTF-8. Runs in n log n of the longest run of marks.
void append_normal_form(std::string& out, std::string_view text, NormalForm form);

/// The end of the extended grapheme cluster that begins at `at`.
std::size_t grapheme_end(std::string_view text, std::size_t at);

/// The first `most` bytes of a text, or a few less so that no character is cut; for messages.
std::string_view text_start(std::string_view text, std::size_t most = 80);

/// What stands for bytes that are no character: U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
/// Appends bytes as text and returns how many it took; invalid ones become U+FFFD, one for each longest beginning of a
/// character (Unicode Standard 3.9). With `more` to come, an incomplete character at the end stays.
std::size_t append_lossy_utf8(std::string& out, std::string_view bytes, bool more);

/// Throws InvalidArgument naming the first byte of `text` that is not valid UTF-8.
void require_utf8(std::string_view text);

}  // namespace rlx
