// The commands that pages show: each subcommand exists, and its help has each option.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/run_program.h"

using namespace rlx::test;

namespace {

namespace fs = std::filesystem;

bool has_option(const std::string& help, const std::string& option) {
  const auto inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; };
  for (std::size_t at = help.find(option); at != std::string::npos; at = help.find(option, at + 1)) {
    const std::size_t end = at + option.size();
    if ((at == 0 || !inside(help[at - 1])) && (end == help.size() || !inside(help[end]))) return true;
  }
  return false;
}

// The options of "rlx COMMAND .." in a page that the help of the command lacks, and how many there were.
std::vector<std::string> unknown_options(const std::string& page, const std::map<std::string, std::string>& helps,
                                         int& options) {
  std::vector<std::string> out;
  static const std::regex call("(^|[`\\n/ ])rlx ([a-z]+)( [^`\\n#|]*)");
  static const std::regex option("(?:^|\\s)(--[a-z][-\\w]*|-[a-zA-Z])(?=[\\s=,;)]|$)");
  for (std::sregex_iterator m(page.begin(), page.end(), call), end; m != end; ++m) {
    const auto help = helps.find((*m)[2]);
    if (help == helps.end()) continue;  // a sentence: "rlx is"
    const std::string rest = (*m)[3];
    for (std::sregex_iterator o(rest.begin(), rest.end(), option); o != end; ++o) {
      ++options;
      if (!has_option(help->second, (*o)[1])) out.push_back("rlx " + help->first + " has no " + std::string((*o)[1]));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("docs: every option that a page gives to a command exists") {
  std::map<std::string, std::string> helps;
  std::istringstream commands(run_rlx("--help").out);
  static const std::regex row("^  ([a-z]+) .*");
  std::smatch m;
  for (std::string line; std::getline(commands, line);)
    if (std::regex_match(line, m, row)) helps[m[1]] = run_rlx(std::string(m[1]) + " --help").out;
  REQUIRE(helps.contains("generate"));
  std::vector<fs::path> pages{source_path("README.md"), source_path("CONTRIBUTING.md")};
  for (const fs::directory_entry& e : fs::directory_iterator(source_path("docs")))
    if (e.path().extension() == ".md") pages.push_back(e.path());
  int options = 0;
  for (const fs::path& page : pages)
    for (const std::string& problem : unknown_options(rlx::test::read_file(page.string()), helps, options))
      FAIL_CHECK(page.filename().string() << ": " << problem);
  CHECK(options > 60);

  int seen = 0;
  CHECK(unknown_options("`rlx run --bogus x.rlx`", {{"run", "  --device NAME"}}, seen).size() == 1);
  CHECK(unknown_options("`rlx run --device cpu -n`", {{"run", "  --device NAME\n -n"}}, seen).empty());
  CHECK(unknown_options("`rlx run --dev cpu`", {{"run", "  --device NAME"}}, seen).size() == 1);
  CHECK(seen == 4);
}
