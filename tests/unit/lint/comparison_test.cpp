// Comparisons of numbers must detect NaN. max(worst, |a - b|) keeps `worst` if the difference is NaN, fmax ignores NaN
// by definition, and so does a largest |a| that is used as the unit. A kernel that returns only NaN would pass.
// tests/support/closeness.h has a comparison that detects NaN.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

// The text from the opening parenthesis at `open` to the one that closes it.
std::string arguments(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return text.substr(open, i - open + 1);
  }
  return text.substr(open);
}

// The calls in `text` that ignore NaN.
std::vector<std::string> blind_calls(const std::string& text) {
  static const std::regex call(R"(\b(f?max)(<\w+>)?\s*\()"), difference(R"(abs\([^;]*[^\s(,]\s*-\s)"),
      gathered(R"((\w+) = (?:std::)?max(?:<\w+>)?\s*\(\s*\1,\s*(?:std::)?f?abs\()");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    const std::string inside = arguments(text, static_cast<std::size_t>(it->position() + it->length() - 1));
    if ((*it)[1] == "fmax" || std::regex_search(inside, difference)) found.push_back(it->str() + inside.substr(1));
  }
  for (std::sregex_iterator it(text.begin(), text.end(), gathered), end; it != end; ++it) found.push_back(it->str());
  return found;
}

}  // namespace

TEST_CASE("lint: no comparison in tests and benches is blind to NaN") {
  const std::string dash = "-";  // keeps the examples below from being found in this file
  CHECK(!blind_calls(std::string("worst = std::") + "max(worst, std::fabs(a[i] " + dash + " b[i]));").empty());
  CHECK(blind_calls(std::string("largest = std::") + "max(largest, std::fabs(a[i]));").size() == 1);
  CHECK(
      !blind_calls(std::string("worst = std::") + "max<double>(\n  worst,\n  std::abs(a " + dash + " f(b)));").empty());
  CHECK(blind_calls("std::max(1.0, std::fabs(b))").empty());
  CHECK(blind_calls(std::string("std::f") + "max(worst, d)").size() == 1);
  int files = 0;
  for (const char* folder : {"tests", "bench"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(rlx::test::source_path(folder))) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".cpp" && ending != ".h" && ending != ".inc") continue;
      ++files;
      for (const std::string& call : blind_calls(rlx::test::read_file(entry.path().string())))
        FAIL_CHECK(entry.path().string() << ": " << call << " forgets a NaN; use tests/support/closeness.h");
    }
  CHECK(files > 100);
}
