// Every #include of one module by another must be declared in the top CMakeLists.txt (rlx_module ... DEPENDS).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;
using Table = std::map<std::string, std::set<std::string>>;

Table parse_table(const std::string& text) {
  Table table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::set<std::string>& allowed = table[line.substr(0, colon)];
    std::istringstream names(line.substr(colon + 1));
    for (std::string name; names >> name;) allowed.insert(name);
  }
  return table;
}

// "rlx/ir/graph.h" -> "ir"; "rlx/backends/cpu/simd.h" -> "backends/cpu"; "rlx/error.h" -> "error"; "rlx/rlx.h" ->
// "rlx"; "rlx/ops/norm/softmax_samples.cpp" -> "testing", whose library holds the samples that stand beside the rules.
std::string module_of(const std::string& path) {
  if (path.starts_with("rlx/ops/") && path.find("_samples.") != std::string::npos) return "testing";
  std::vector<std::string> parts;
  std::istringstream stream(path);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  if (parts.size() == 2) return parts[1].substr(0, parts[1].find('.'));
  if (parts[1] == "backends" && parts.size() > 3) return "backends/" + parts[2];
  return parts[1];
}

// The quoted includes of a source text that start with "rlx/".
std::vector<std::string> rlx_includes(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const std::size_t word = line.find("include", hash);
    const std::size_t open = line.find("\"rlx/", hash);
    if (word == std::string::npos || open == std::string::npos) continue;
    const std::size_t close = line.find('"', open + 1);
    if (close != std::string::npos) found.push_back(line.substr(open + 1, close - open - 1));
  }
  return found;
}

// An error message if `file` may not include `included`, else "".
std::string violation(const Table& table, const std::string& file, const std::string& included) {
  const std::string from = module_of(file);
  const std::string to = module_of(included);
  if (from == to || from == "rlx") return "";  // rlx.h is the prelude over everything
  const auto row = table.find(from);
  if (row == table.end()) return file + ": module " + from + " is not declared with rlx_module";
  if (row->second.count(to) == 0) return file + " includes " + included + ", but " + from + " does not depend on " + to;
  return "";
}

}  // namespace

TEST_CASE("the include check sees what it must see") {
  const Table table = parse_table("error: \ntensor: error\nir: tensor error\nbackends/cpu: ir\n");
  CHECK(violation(table, "rlx/ir/graph.h", "rlx/tensor/shape.h").empty());
  CHECK(violation(table, "rlx/rlx.h", "rlx/ir/graph.h").empty());
  CHECK_FALSE(violation(table, "rlx/tensor/shape.h", "rlx/ir/graph.h").empty());
  CHECK_FALSE(violation(table, "rlx/backends/cpu/a.cpp", "rlx/backends/gpu/b.h").empty());
  CHECK_FALSE(violation(table, "rlx/unknown/a.cpp", "rlx/error.h").empty());
  CHECK(module_of("rlx/ops/norm/softmax_samples.cpp") == "testing");
  CHECK(rlx_includes("  #  include \"rlx/a/b.h\"\n#include <vector>\n// #include \"rlx/c/d.h\"\n") ==
        std::vector<std::string>{"rlx/a/b.h"});
}

TEST_CASE("every include between modules is declared") {
  const Table table = parse_table(rlx::test::read_file(rlx::test::build_path("generated/modules.txt")));
  REQUIRE(table.count("ir") == 1);
  const fs::path root = rlx::test::source_path("");
  int num_files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "rlx")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".inc") continue;
    ++num_files;
    const std::string file = fs::relative(entry.path(), root).generic_string();
    for (const std::string& included : rlx_includes(rlx::test::read_file(entry.path().string()))) {
      CHECK_MESSAGE(violation(table, file, included).empty(), violation(table, file, included));
      CHECK_MESSAGE(fs::exists(root / included), file, " includes ", included, ", which does not exist");
    }
  }
  CHECK(num_files > 1);
}

// The edit of an op's attribute compiles every file that reaches the op's header. Enumerations that several ops or
// configurations share stand in rlx/ir/op_kind.h, so that their headers need not include each other.
TEST_CASE("few files get the header of an op by way of another header") {
  const fs::path root = rlx::test::source_path("");
  std::map<std::string, std::vector<std::string>> includes;
  const auto includes_of = [&](const std::string& file) -> const std::vector<std::string>& {
    const auto [found, missing] = includes.try_emplace(file);
    if (missing) found->second = rlx_includes(rlx::test::read_file((root / file).string()));
    return found->second;
  };
  std::map<std::string, std::size_t> indirect;
  std::size_t num_sources = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "rlx")) {
    if (entry.path().extension() != ".cpp") continue;
    ++num_sources;
    std::vector<std::string> reached{fs::relative(entry.path(), root).generic_string()};
    const std::vector<std::string> direct = includes_of(reached[0]);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const std::string& included : includes_of(reached[i]))
        if (seen.insert(included).second) reached.push_back(included);
    for (const std::string& file : seen)
      if (file.starts_with("rlx/ir/ops/") && std::find(direct.begin(), direct.end(), file) == direct.end())
        ++indirect[file];
  }
  REQUIRE(indirect.count("rlx/ir/ops/elementwise.h") == 1);  // by way of the builder's helpers
  for (const auto& entry : indirect) {
    CHECK_MESSAGE(entry.second * 10 <= num_sources, entry.second, " of ", num_sources, " sources include ", entry.first,
                  " only by way of another header, and an edit of its op compiles them all");
  }
}
