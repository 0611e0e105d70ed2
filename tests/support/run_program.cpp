// The tool's output is collected in files: no pipe can fill up.
#include "tests/support/run_program.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace rlx::test {

ProgramResult run_rlx(const std::string& args, const std::string& input) {
  const TempDir dir;
  const std::string in = dir.write("in", input), out = dir.write("out", ""), err = dir.write("err", "");
  // First, so that a redirection among the arguments wins.
  const std::string command = "'" + build_path("rlx") + "' <'" + in + "' >'" + out + "' 2>'" + err + "' " + args;
  const int raw = std::system(command.c_str());
  ProgramResult r;
  r.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  r.out = read_file(out);
  r.err = read_file(err);
  return r;
}

}  // namespace rlx::test
