// Runs the rlx command line tool of this build.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace rlx::test {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when it was killed
  std::string out, err;
};

/// Runs `script` in the shell with `input` on its standard input.
ProgramResult run_shell(const std::string& script, const std::string& input = {});
/// The tool of this build as the first words of a command, with a trailing space.
std::string rlx_command();
/// Runs `rlx ARGS` through the shell with `input` on its standard input; ARGS are shell words.
ProgramResult run_rlx(const std::string& args, const std::string& input = {});

/// Checks the exit status, an empty standard output, and a message that contains `part`.
inline void expect_failure(const ProgramResult& r, int status, const std::string& part) {
  CHECK(r.status == status);
  CHECK(r.out.empty());
  CHECK_MESSAGE(contains(r.err, part), "the message is: ", r.err);
}

}  // namespace rlx::test
