// Third-party headers that are slow to compile or full of macros are included by one file each. Other files use the
// declarations of that file.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

// The start of the name between the brackets. CLI11 takes 5 s in each file that includes it.
const std::vector<std::string> kLibraries = {"CLI/", "simdjson.h", "xxhash.h", "pcre2.h"};

// The libraries among kLibraries that a source text includes.
std::vector<std::string> libraries_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const std::size_t word = line.find("include", hash), open = line.find_first_of("<\"", hash);
    if (word == std::string::npos || open == std::string::npos) continue;
    for (const std::string& library : kLibraries)
      if (line.compare(open + 1, library.size(), library) == 0) found.push_back(library);
  }
  return found;
}

}  // namespace

TEST_CASE("lint: the check of third-party includes sees what it must see") {
  CHECK(libraries_of("#include <CLI/CLI.hpp>\n  # include \"CLI/App.hpp\"\n#include <simdjson.h>\n") ==
        std::vector<std::string>{"CLI/", "CLI/", "simdjson.h"});
  CHECK(libraries_of("// #include <CLI/CLI.hpp>\n#include \"cli/arguments.h\"\nnamespace CLI {\n").empty());
}

TEST_CASE("lint: CLI11, simdjson, xxHash and PCRE2 are included by one file each") {
  std::map<std::string, std::string> owners;
  for (const char* folder : {"rlx", "cli", "bench", "examples", "python", "tests"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(test::source_path(folder))) {
      const std::string path = entry.path().string(), ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp" && ending != ".inc") continue;
      if (path == test::source_path("tests/unit/text/regex_test.cpp")) continue;  // PCRE2 is the oracle there
      for (const std::string& library : libraries_of(test::read_file(path))) {
        const std::string owner = owners.emplace(library, path).first->second;
        CHECK_MESSAGE(owner == path, path, " includes ", library, ", which ", owner, " includes for all");
      }
    }
  CHECK(owners.size() == kLibraries.size());
  CHECK(owners["CLI/"] == test::source_path("cli/arguments.cpp"));
}

}  // namespace rlx
