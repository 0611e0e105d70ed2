// Added tokens: texts of a tokeniser that are found before words are.
#pragma once

#include <string>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// A token that is matched in the raw text before anything else happens to it.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      // left out by decode
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // matched in the normalised text instead of the raw one
};

}  // namespace rlx
