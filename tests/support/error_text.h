// The message of the rlx::Error a call throws, for tests of error texts.
#pragma once

#include <string>

#include "rlx/error.h"

namespace rlx::test {

/// Text of the rlx::Error thrown by `call`, or "" when nothing is thrown; other exceptions pass through.
template <class Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace rlx::test
