// Runs the rlx command line tool of this build.
#pragma once

#include <string>

namespace rlx::test {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when it was killed
  std::string out, err;
};

/// Runs `rlx ARGS` through the shell with `input` on its standard input; ARGS are shell words.
ProgramResult run_rlx(const std::string& args, const std::string& input = {});

}  // namespace rlx::test
