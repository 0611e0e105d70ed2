// Character functions with the semantics of Python's str: classes, case, numbers in text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/text/jinja/big_integer.h"

namespace rlx::jinja {

bool is_space(char32_t c);
bool is_line_break(char32_t c);  // the line breaks of splitlines
bool is_printable(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit_like(char32_t c);  // isdigit: decimal digits and superscripts, circled ones, ...
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_lower(char32_t c);
bool is_word(char32_t c);  // \w
bool is_identifier(std::string_view text);
/// The value of an ASCII digit or letter as a digit, else 99.
int digit_value(unsigned char c);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swapcase(std::string_view text);
std::string casefold(std::string_view text);

/// As text.find(word, from). Linear in both lengths for any input.
std::size_t find_text(std::string_view text, std::string_view word, std::size_t from = 0);

/// float(text), or nothing where Python raises.
std::optional<double> parse_float(std::string_view text);
/// int(text, base); nothing where Python raises. Sets `overflow` when the number has more than 64 bits,
/// and then `large` to it.
std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflow,
                                      std::optional<BigInteger>* large = nullptr);

}  // namespace rlx::jinja
