// Each type of the library has one definition. If two types share a name, the linker keeps the functions of one of
// them, which corrupts memory.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/paths.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

// The full names of the types that a file defines, without those in unnamed namespaces, nested types and
// specializations.
std::set<std::string> types_of(const std::string& text) {
  static const std::regex opens(R"(^(?:inline )?namespace\s*([\w:]*)\s*\{$)"), closes(R"(^\}\s*//.*namespace.*)"),
      type(R"(^(?:struct|class|union|enum class|enum) (\w+)(?: final)?(?: :[^:;][^;]*)?\s*\{.*)");
  std::set<std::string> found;
  std::vector<std::string> inside;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == ' ' || line[0] == '/' || line[0] == '#') continue;
    std::smatch m;
    if (std::regex_match(line, m, opens)) {
      inside.push_back(m[1]);
    } else if (std::regex_match(line, closes)) {
      if (!inside.empty()) inside.pop_back();
    } else if (std::regex_match(line, m, type)) {
      std::string name;
      bool unnamed = false;
      for (const std::string& space : inside) unnamed = unnamed || space.empty(), name += space + "::";
      if (!unnamed) found.insert(name + m[1].str());
    }
  }
  return found;
}

}  // namespace

TEST_CASE("lint: no two files of the library define a type of one name") {
  CHECK(types_of(
            "namespace rlx {\nstruct A {\n};\nnamespace {\nclass B final : public C {\n}  // namespace\nenum class D "
            ": int { X };\nstruct E;\n") == std::set<std::string>{"rlx::A", "rlx::D"});
  std::map<std::string, std::string> first;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(test::source_path("rlx"))) {
    const std::string path = entry.path().string(), ending = entry.path().extension().string();
    if (ending != ".h" && ending != ".cpp") continue;
    for (const std::string& name : types_of(test::read_file(path))) {
      const std::string there = first.emplace(name, path).first->second;
      CHECK_MESSAGE(there == path, name, " is defined in ", there, " and in ", path);
    }
  }
  CHECK(first.size() > 500);
}

}  // namespace rlx
