// Libraries are compiled in batches of files of a module (RLX_UNITY_LIBRARY), and the batches change with every new
// file. So names in unnamed namespaces must be unique in a module.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/paths.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The name that an unindented line of an unnamed namespace defines, or "". It is the name of a type, or the word before
// the first bracket, brace or equals sign if a type comes before it.
std::string name_defined_by(std::string line) {
  if (line.empty() || (!is_name_char(line[0]) && line[0] != '[')) return {};
  // Template parameters, on their own line or in front.
  if (line.starts_with("template")) {
    int depth = 0;
    std::size_t at = line.find('<');
    for (; at < line.size(); ++at) {
      depth += line[at] == '<' ? 1 : line[at] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    const std::size_t next = line.find_first_not_of(' ', at + 1);
    if (next == std::string::npos || next == 0) return {};
    line = line.substr(next);
  }
  for (const char* word : {"struct ", "class ", "union ", "enum class ", "enum "})
    if (line.starts_with(word)) {
      const std::size_t from = std::string(word).size();
      std::size_t end = from;
      while (end < line.size() && is_name_char(line[end])) ++end;
      if (end < line.size() && (line[end] == ';' || line[end] == '<')) return {};  // a declaration or specialization
      return line.substr(from, end - from);
    }
  for (const char* word : {"return", "using namespace", "static_assert", "namespace", "extern", "friend", "requires"})
    if (line.starts_with(word)) return {};
  int depth = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    const bool equals = c == '=' && line.compare(at, 2, "==") != 0;
    if (depth != 0 || (c != '(' && c != '[' && c != '{' && !equals)) continue;
    if (line.compare(0, 2, "[[") == 0 && at < line.find("]]")) continue;  // an attribute
    std::size_t end = at;
    while (end > 0 && line[end - 1] == ' ') --end;
    std::size_t from = end;
    while (from > 0 && is_name_char(line[from - 1])) --from;
    if (from == 0 || from == end || line[from - 1] == ':') return {};  // a call, an operator, a member elsewhere
    if (line.compare(from, end - from, "operator") == 0) return {};
    return line.substr(from, end - from);
  }
  return {};
}

std::set<std::string> unnamed_names(const std::string& text) {
  std::set<std::string> found;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "namespace {") inside = true;
    if (line == "}  // namespace") inside = false;
    if (!inside) continue;
    if (const std::string name = name_defined_by(line); !name.empty()) found.insert(name);
  }
  return found;
}

// Module and name of violations that are older than this rule. The list may only shrink: remove a line when its clash
// is fixed.
const std::set<std::string>& known_clashes() {
  static const std::set<std::string> known = {
#include "tests/unit/lint/unity_names_known.inc"
  };
  return known;
}

// Kernel files are compiled one by one.
bool is_kernel(const fs::path& path) {
  return path.filename().string().ends_with("kernels.cpp") || path.parent_path().filename() == "generic";
}

// "rlx/ops/dot/dot.cpp" -> "rlx/ops"; "rlx/backends/cpu/fft/fft.cpp" -> "rlx/backends/cpu".
std::string module_of(const fs::path& path) {
  auto part = path.begin();
  std::string module = part->string() + "/" + std::next(part)->string();
  if (module == "rlx/backends") module += "/" + std::next(part, 2)->string();
  return module;
}

}  // namespace

TEST_CASE("lint: no two files of a module define one name in unnamed namespaces") {
  CHECK(unnamed_names("int outside() {\nnamespace {\n\nstruct A {\n  int b = 1;\n};\nstruct Later;\nenum class E : int "
                      "{ X };\nusing F = std::map<int, int>;\ntemplate <class T>\nstd::vector<T> f(T x) {\n  return "
                      "g(x);\n}\ntemplate <class T> T g(T x);\n[[noreturn]] void h();\nconstexpr int kI[] = {1};\n"
                      "const int* kJ{};\nvoid A::member() {\nbool operator==(A, A);\nMACRO(A)\n// c(int)\n"
                      "}  // namespace\nint behind() {\n") ==
        std::set<std::string>{"A", "E", "F", "f", "g", "h", "kI", "kJ"});
  std::map<std::string, std::set<std::string>> files;
  std::size_t names = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(test::source_path("rlx"))) {
    const fs::path path = fs::relative(entry.path(), test::source_path(""));
    if (path.extension() != ".cpp" || is_kernel(path)) continue;
    const std::string module = module_of(path);
    for (const std::string& name : unnamed_names(test::read_file(entry.path().string())))
      files[module + " " + name].insert(path.filename().string()), ++names;
  }
  CHECK(names > 2000);
  std::set<std::string> clashes;
  for (const auto& entry : files) {
    const auto& what = entry.first;
    const auto& where = entry.second;
    if (where.size() < 2) continue;
    clashes.insert(what);
    std::string text;
    for (const std::string& file : where) text += " " + file;
    CHECK_MESSAGE(known_clashes().count(what) == 1, what, " is defined by each of", text,
                  ": name them so that both may be compiled as one file");
  }
  for (const std::string& what : known_clashes())
    CHECK_MESSAGE(clashes.count(what) == 1, what, " clashes no more: take it out of unity_names_known.inc");
}

}  // namespace rlx
