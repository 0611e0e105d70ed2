// Errors of the command line itself, as opposed to failures of the work.
#pragma once

#include <string>

#include "rlx/error.h"

namespace rlx::cli {

/// An error in the command line: `rlx` exits with 2 for it, and with 1 for every other.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Returns `f()`. An Error of `f` becomes a UsageError, because `f` passes arguments of the command line on unchanged.
template <class F>
decltype(auto) check_arguments(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw UsageError(e.diagnostic());
  }
}

}  // namespace rlx::cli
