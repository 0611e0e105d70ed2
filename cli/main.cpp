// The `rlx` command: parses the sub-command and turns every error into one message and a non-zero exit status.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/error.h"
#include "rlx/runtime/build_info.h"

namespace {

// Flushes the standard output. A failed write, as on a full disk, makes the command fail.
int finished(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "rlx: cannot write the standard output: %s\n", std::strerror(errno));
  return 1;
}

int run(int argc, char** argv) {
  using namespace rlx::cli;
  CommandLine line("rlx", "rlx: a small ML compiler and runtime", &rlx::build_report, kExitStatus);
  handle_ending_signals();
  register_embed(line);
  register_index(line);
  register_search(line);
  register_rerank(line);
  register_generate(line);
  register_chat(line);
  register_bench(line);
  register_devices(line);
  register_run(line);
  register_pull(line);
  register_convert(line);
  register_opt(line);
  register_inspect(line);
  register_ops(line);
  if (argc < 2) {
    std::fputs(line.help().c_str(), stderr);
    return 2;
  }
  // Checked here: the parser would only report that a sub-command is missing.
  const bool option = argv[1][0] == '-';
  const std::vector<std::string> names =
      option ? std::vector<std::string>{"-h", "--help", "--version"} : line.command_names();
  if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const char* list = option ? "`rlx --help` lists the options" : "`rlx --help` lists the commands";
    print_error(rlx::concat_text("rlx: no ", option ? "option" : "command", " '", std::string_view(argv[1]),
                                 "'\n  hint: ", rlx::did_you_mean(argv[1], names, list), "\n"));
    return 2;
  }
  const int status = line.run(argc, argv);
  return status == 0 ? finished(0) : status;
}

// Prints an error of the library. A hint that names a C++ call names the command instead. Allocates nothing, because
// memory may be exhausted.
void report(std::string_view text) {
  constexpr std::string_view call = "rlx::available_devices()";
  const std::size_t at = std::min(text.find(call), text.size());
  const std::string_view rest = text.substr(std::min(at + call.size(), text.size()));
  std::fprintf(stderr, "rlx: %.*s%s%.*s\n", static_cast<int>(at), text.data(),
               at < text.size() ? "those that `rlx devices` calls available" : "", static_cast<int>(rest.size()),
               rest.data());
}

}  // namespace

// Catches all exceptions, also those from before the command line is parsed.
int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const rlx::cli::UsageError& e) {
    report(e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fputs("rlx: out of memory\n", stderr);
  } catch (const std::exception& e) {
    report(e.what());
  }
  return 1;
}
