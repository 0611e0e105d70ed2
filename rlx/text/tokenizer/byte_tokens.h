// Byte tokens: <0x00> to <0xFF>.
#pragma once

#include <array>
#include <string>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// Finds the ids of the 256 byte tokens, -1 for a missing one. Returns whether all exist.
inline bool find_byte_tokens(const Vocabulary& vocabulary, std::array<TokenId, 256>& ids) {
  constexpr char kHex[] = "0123456789ABCDEF";
  bool all = true;
  std::string token = "<0x00>";
  for (unsigned b = 0; b < 256; ++b) {
    token[3] = kHex[b >> 4];
    token[4] = kHex[b & 15];
    ids[b] = vocabulary.find(token).value_or(-1);
    all = all && ids[b] >= 0;
  }
  return all;
}

}  // namespace rlx
