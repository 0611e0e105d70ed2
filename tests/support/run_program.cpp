// Runs the tool. Its output goes to files, so no pipe can fill up.
#include "tests/support/run_program.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx::test {

ProgramResult run_shell(const std::string& script, const std::string& input) {
  const TempDir dir;
  const std::string in = dir.write("in", input), out = dir.write("out", ""), err = dir.write("err", "");
  // Redirections in the script take precedence.
  const std::string command = "{ " + script + "\n} <'" + in + "' >'" + out + "' 2>'" + err + "'";
  const int raw = std::system(command.c_str());
  ProgramResult r;
  r.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  r.out = read_file(out);
  r.err = read_file(err);
  return r;
}

std::string rlx_command() { return "'" + build_path("rlx") + "' "; }

ProgramResult run_rlx(const std::string& args, const std::string& input) {
  return run_shell(rlx_command() + args, input);
}

}  // namespace rlx::test
