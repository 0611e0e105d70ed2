// Bytes of a file for error messages: one line, truncated to a width, without terminal control sequences.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

/// `bytes` in at most `max_columns` characters (at least 8). Valid UTF-8 is unchanged, tabs become spaces, line feeds,
/// other control characters and invalid bytes become \xNN. Truncated text ends in "...".
std::string printable(std::string_view bytes, std::size_t max_columns);

/// The number of characters of `printable` without truncation.
std::size_t printable_columns(std::string_view bytes);

/// Control characters of `text` except line feeds and tabs become \xNN.
void escape_controls(std::string& text);

}  // namespace rlx
