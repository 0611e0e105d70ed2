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

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/error.h"

namespace {

// What was printed must have arrived: a full disk is a failure.
int finished(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "rlx: cannot write the standard output: %s\n", std::strerror(errno));
  return 1;
}

int run(int argc, char** argv) {
  CLI::App app("rlx: a small ML compiler and runtime", "rlx");
  app.set_version_flag("--version", "rlx " RLX_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  app.footer(rlx::cli::kExitStatus);
  using namespace rlx::cli;
  handle_ending_signals();
  register_embed(app);
  register_search(app);
  register_rerank(app);
  register_generate(app);
  register_chat(app);
  register_bench(app);
  register_devices(app);
  register_run(app);
  register_convert(app);
  register_opt(app);
  register_inspect(app);
  register_ops(app);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  // Said here because the parser would only report that a sub-command is missing.
  if (argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      std::fprintf(stderr, "rlx: no command '%s'\n  hint: %s\n", argv[1],
                   rlx::did_you_mean(argv[1], names, "`rlx --help` lists the commands").c_str());
      return 2;
    }
  }
  try {
    app.parse(argc, argv);
    return finished(0);
  } catch (const CLI::CallForHelp& e) {
    return finished(app.exit(e));
  } catch (const CLI::CallForAllHelp& e) {
    return finished(app.exit(e));
  } catch (const CLI::CallForVersion& e) {
    return finished(app.exit(e));
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "rlx: %s\n", e.what());
    std::fprintf(stderr, "  hint: `rlx %s--help` lists the options\n",
                 app.get_subcommands().empty() ? "" : (app.get_subcommands().front()->get_name() + " ").c_str());
    return 2;
  }
}

// Hints of the library that name a call of it name a command here. Takes no memory: there may be none left.
void report(std::string_view text) {
  constexpr std::string_view call = "rlx::available_devices()";
  const std::size_t at = std::min(text.find(call), text.size());
  const std::string_view rest = text.substr(std::min(at + call.size(), text.size()));
  std::fprintf(stderr, "rlx: %.*s%s%.*s\n", static_cast<int>(at), text.data(),
               at < text.size() ? "those that `rlx devices` calls available" : "", static_cast<int>(rest.size()),
               rest.data());
}

}  // namespace

// Nothing leaves by an exception, whatever fails: not even what comes before the command line is read.
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
