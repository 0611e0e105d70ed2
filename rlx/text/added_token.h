// Added tokens: texts that a tokeniser matches before it splits words.
#pragma once

#include <string>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// A token that is matched in the raw text before any other step.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      // omitted by decode
  bool single_word = false;  // only matched where no word character is adjacent
  bool lstrip = false;       // also consumes the white space before it
  bool rstrip = false;       // also consumes the white space after it
  bool normalized = false;   // matched in the normalised text instead of the raw text
};

}  // namespace rlx
