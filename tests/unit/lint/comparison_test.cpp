// Comparisons of numbers must detect NaN. max(worst, |a - b|) keeps `worst` if the difference is NaN, fmax ignores NaN
// by definition, and so does a largest |a| that is used as the unit. A kernel that returns only NaN would pass.
// tests/support/closeness.h has a comparison that detects NaN.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/unit/lint/calls.h"

namespace {

namespace fs = std::filesystem;

// The calls in `text` that ignore NaN. Regular expressions see only statements with "max": over all text they take ten
// seconds under the sanitizers.
std::vector<std::string> blind_calls(const std::string& text) {
  static const std::regex callee(R"(^(f?max)(<\w+>)?\s*\()"), difference(R"(abs\([^;]*[^\s(,]\s*-\s)"),
      gathered(R"((\w+) = (?:std::)?max(?:<\w+>)?\s*\(\s*\1,\s*(?:std::)?f?abs\()");
  std::vector<std::string> found;
  for (std::size_t at = text.find("max"); at != std::string::npos; at = text.find("max", at + 3)) {
    const std::size_t begin = at > 0 && text[at - 1] == 'f' ? at - 1 : at;
    const std::string call = rlx::test::call_at(text, begin);
    std::smatch match;
    if (!rlx::test::begins_word(text, begin) || !std::regex_search(call, match, callee)) continue;
    if (match[1] == "fmax" || std::regex_search(call, difference)) found.push_back(call);
    const std::size_t end_before = begin == 0 ? std::string::npos : text.find_last_of(";{}", begin - 1);
    const std::size_t statement = end_before == std::string::npos ? 0 : end_before + 1;
    const std::string assignment = text.substr(statement, begin - statement) + call;
    if (std::regex_search(assignment, match, gathered)) found.push_back(match.str());
  }
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
