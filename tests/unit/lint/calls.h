// Calls in the text of a C++ file, for lints.
#pragma once

#include <cctype>
#include <cstddef>
#include <string>

namespace rlx::test {

/// The part of `text` from `begin` to the parenthesis that closes the first one from there on; to the end if none does.
/// Parentheses in texts and characters do not count.
inline std::string call_at(const std::string& text, std::size_t begin) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        quoted = false;
    } else if (text[i] == '\'' && text.compare(i + 1, 1, "\\") == 0) {
      i += 3;  // an escaped character
    } else if (text[i] == '\'' && i + 2 < text.size() && text[i + 2] == '\'') {
      i += 2;
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && --depth == 0) {
      return text.substr(begin, i - begin + 1);
    }
  }
  return text.substr(begin);
}

/// Whether a name that begins at `at` is not the end of a longer one.
inline bool begins_word(const std::string& text, std::size_t at) {
  return at == 0 || !(std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_');
}

}  // namespace rlx::test
