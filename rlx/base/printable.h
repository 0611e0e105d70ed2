// Bytes of a file as an error message may show them: one line, cut to a width, nothing that a terminal would obey.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

/// `bytes` in at most `max_columns` characters (at least 8): valid UTF-8 as it is, tabs as spaces, line feeds and other
/// control characters and stray bytes as \xNN; a cut ends in "...".
std::string printable(std::string_view bytes, std::size_t max_columns);

/// Characters that `bytes` take in `printable` when nothing is cut.
std::size_t printable_columns(std::string_view bytes);

}  // namespace rlx
