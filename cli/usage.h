// What is wrong with the command line itself, told apart from work that failed.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "rlx/error.h"

namespace rlx::cli {

/// An error of what the user wrote on the command line: `rlx` exits with 2 for it, and with 1 for every other.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// What `f()` returns; an Error it throws is about arguments that were handed on as they are.
template <class F>
decltype(auto) check_arguments(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw UsageError(e.diagnostic());
  }
}

/// Of a number that is counted; what is wrong is said in fewer words than CLI::NonNegativeNumber has for it.
inline CLI::Validator not_negative() {
  return CLI::Validator(
      [](const std::string& given) {
        return given.starts_with('-') ? concat_text("must be 0 or more, got ", given) : std::string();
      },
      "0 OR MORE");
}

}  // namespace rlx::cli
