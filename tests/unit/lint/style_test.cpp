// Source style that formatters do not enforce. C++: no line over 120 columns (the formatter cannot break strings and
// long words in comments), and no banner that reflowing would break. Python and shell: the same width, and the rules of
// .editorconfig.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/unit/lint/calls.h"

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
  // The calls in `text` that build a text whatever the condition is. The ternary is `ok ? std::string() : ...`.
  const auto eager_calls = [](const std::string& text) {
    std::vector<std::string> found;
    for (const std::string name : {"check(", "check_rule("})
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        const std::string call = rlx::test::call_at(text, at);
        const std::size_t condition = call.find_first_not_of(" \n", name.size());
        if (rlx::test::begins_word(text, at) && call.find("concat_text(") != std::string::npos &&
            call.find("? std::string() :") == std::string::npos && call.compare(condition, 5, "false") != 0)
          found.push_back(call);
      }
    return found;
  };
  CHECK(eager_calls("if (a)\n\tcheck(n == Shape{1}, concat_text(\"{ why? ; )\", n));").size() == 1);
  CHECK(eager_calls("rlx::check(a == (b ? c : d), concat_text(n)); check_rule(ok, op, concat_text(n))").size() == 2);
  CHECK(eager_calls("check( false, concat_text(n)); check_rule(false, op, concat_text(n))").empty());
  CHECK(eager_calls("check(ok, ok ? std::string() : concat_text(n))").empty());
  CHECK(eager_calls("check(ok, \"plain\"); f(concat_text(n)); check_rule(ok, op, \"a\", n)").empty());
  const std::string library = rlx::test::source_path("rlx") + "/";
  int files = 0;
  for (const fs::path& file : sources(is_cpp)) {
    if (!file.string().starts_with(library)) continue;
    ++files;
    const std::string text = rlx::test::read_file(file.string());
    if (text.find("concat_text(") == std::string::npos) continue;
    for (const std::string& call : eager_calls(text)) FAIL_CHECK(file.string() << ": " << call);
  }
  CHECK(files > 100);
}

TEST_CASE("no regular expression of CMake has a path as it is: a folder may be called c++") {
  std::vector<std::string> files{rlx::test::source_path("CMakeLists.txt"),
                                 rlx::test::source_path("tests/CMakeLists.txt")};
  for (const fs::directory_entry& entry : fs::directory_iterator(rlx::test::source_path("cmake")))
    files.push_back(entry.path().string());
  CHECK(files.size() > 10);
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      const bool matches = line.find("REGEX ") != std::string::npos || line.find("MATCHES ") != std::string::npos;
      if (matches && line.find("rlx_source_regex \"") == std::string::npos &&
          (line.find("_DIR}") != std::string::npos || line.find("{root}") != std::string::npos))
        FAIL_CHECK(file << ": " << line << " (write ${rlx_source_regex})");
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
