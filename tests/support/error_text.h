// The message of the rlx::Error that a call throws, for tests of error texts.
#pragma once

#include <string>
#include <string_view>

#include "rlx/error.h"

namespace rlx::test {

/// The text of the rlx::Error that `call` throws, or "" when nothing is thrown. Other exceptions pass through.
template <class Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace rlx::test
