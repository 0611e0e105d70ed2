// Source style that formatters do not enforce. C++: no line over 120 columns (the formatter cannot break strings and
// long words in comments), and no banner that reflowing would break. Python and shell: the same width, and the rules of
// .editorconfig.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

bool is_cpp(const fs::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".cpp" || ending == ".h" || ending == ".inc";
}

// Python and shell, by their extension; programs without one, by their first line.
bool is_script(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".py" || ending == ".sh") return true;
  std::string first;
  return ending.empty() && std::getline(std::ifstream(file), first) && first.starts_with("#!");
}

std::vector<fs::path> sources(bool wanted(const fs::path&)) {
  std::vector<fs::path> found;
  for (const char* folder : {"rlx", "cli", "bench", "examples", "python", "scripts", "tests"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(rlx::test::source_path(folder)))
      if (entry.is_regular_file() && wanted(entry.path())) found.push_back(entry.path());
  return found;
}

// The columns of UTF-8 text: its bytes without those that continue a code point.
std::size_t columns(const std::string& line) {
  std::size_t n = 0;
  for (unsigned char c : line) n += (c & 0xC0) != 0x80;
  return n;
}

}  // namespace

TEST_CASE("the text of an error is built where something is wrong, not before each check") {
  const auto eager = [](std::string_view statement) {  // from a check's name to its semicolon
    const bool defines_it = statement.find('{') != statement.npos;
    return statement.find("concat_text(") != statement.npos && statement.find('?') == statement.npos && !defines_it &&
           !statement.starts_with("check(false");
  };
  CHECK(eager("check(n < most, concat_text(n, \" are too many\"))"));
  CHECK_FALSE(eager("check(false, concat_text(n, \" are too many\"))"));
  CHECK_FALSE(eager("check(ok, ok ? std::string() : concat_text(n))"));
  const std::string library = rlx::test::source_path("rlx") + "/";
  for (const fs::path& file : sources(is_cpp)) {
    if (!file.string().starts_with(library)) continue;
    const std::string text = rlx::test::read_file(file.string());
    for (const std::string_view name : {" check(", " check_rule("})
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        const std::string_view statement = std::string_view(text).substr(at + 1, text.find(';', at) - at - 1);
        if (eager(statement)) FAIL_CHECK(file.string() << ": " << statement);
      }
  }
}

TEST_CASE("no line of a C++ file is over 120 columns, no banner is a line of dashes") {
  const std::vector<fs::path> files = sources(is_cpp);
  CHECK(files.size() > 100);
  for (const fs::path& file : files) {
    std::ifstream in(file);
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (columns(line) <= 120 && line.find("// ---"
                                            "----") == std::string::npos)
        continue;
      FAIL_CHECK(file.string() << ":" << number << ": " << columns(line)
                               << " columns, or a banner of dashes (write // -- title --)");
    }
  }
}

TEST_CASE("examples have numbers of their own") {
  std::map<std::string, std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(rlx::test::source_path("examples"))) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() != ".cpp") continue;
    const auto known = names.emplace(file.substr(0, file.find('_')), file);
    CAPTURE(file);
    CAPTURE(known.first->second);
    CHECK(known.second);
  }
  CHECK(names.size() >= 18);
}

TEST_CASE("no line of a script is over 120 columns or ends in spaces, none holds a tab, the last one has an end") {
  const std::vector<fs::path> files = sources(is_script);
  CHECK(files.size() > 10);
  bool python_program = false;
  for (const fs::path& file : files) {
    python_program |= file.extension().empty();
    std::ifstream in(file);
    std::size_t number = 0;
    std::string line;
    while (std::getline(in, line)) {
      ++number;
      if (columns(line) > 120 || line.find_first_of("\t\r") != std::string::npos || line.ends_with(' ') || in.eof())
        FAIL_CHECK(file.string() << ":" << number << ": " << columns(line)
                                 << " columns, a tab, spaces at its end, or no line feed");
    }
  }
  CHECK_MESSAGE(python_program, "the programs of bench/ have no ending and must be among the files");
}
