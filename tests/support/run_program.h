// Runs the rlx command line tool of this build.
#pragma once

#include <string>

namespace rlx::test {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when it was killed
  std::string out, err;
};

/// Runs `script` in the shell with `input` on its standard input.
ProgramResult run_shell(const std::string& script, const std::string& input = {});
/// The tool of this build as the first words of a command, with a space behind.
std::string rlx_command();
/// Runs `rlx ARGS` through the shell with `input` on its standard input; ARGS are shell words.
ProgramResult run_rlx(const std::string& args, const std::string& input = {});

}  // namespace rlx::test
