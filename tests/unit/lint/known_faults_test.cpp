// The list of known faults names a test case for each number, and every named case exists.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/support/paths.h"

using namespace rlx;

namespace {

constexpr int kKnownFaults = 32;

// The errors of the list, one line each; `source` gives the text of a test file.
template <class Source>
std::vector<std::string> faults_of_list(const std::string& list, const Source& source) {
  std::vector<std::string> out;
  std::istringstream in(list);
  int expected = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::string number = "A" + std::to_string(++expected);
    if (!line.starts_with(number + "  ")) out.push_back(number + " has no line, or not in its place: " + line);
    const std::size_t bar = line.find(" | ");
    const std::string where = bar == std::string::npos ? "" : line.substr(bar + 3);
    if (where.starts_with("later: ")) continue;
    const std::size_t colon = where.find(": ");
    if (colon == std::string::npos)
      out.push_back(number + " names no test");
    else if (source(where.substr(0, colon)).find("TEST_CASE(\"" + where.substr(colon + 2) + "\")") == std::string::npos)
      out.push_back(number + ": no such case: " + where);
  }
  if (expected != kKnownFaults) out.push_back(std::to_string(expected) + " lines");
  return out;
}

}  // namespace

TEST_CASE("every known fault has a test that would find it") {
  for (const std::string& fault :
       faults_of_list(test::read_file(test::source_path("tests/unit/lint/known_faults.txt")),
                      [](const std::string& file) { return test::read_file(test::source_path(file)); }))
    FAIL_CHECK(fault);
}

TEST_CASE("the list of known faults: what is missing is found") {
  const auto source = [](const std::string&) { return std::string("TEST_CASE(\"a: b\") {"); };
  std::string list;
  for (int i = 1; i <= kKnownFaults; ++i) list += "A" + std::to_string(i) + "  words | file.cpp: a: b\n";
  CHECK(faults_of_list(list, source).empty());
  CHECK(faults_of_list(list + "A33  more | later: x\n", source).size() == 1);
  CHECK(faults_of_list(list.substr(list.find('\n') + 1), source).size() ==
        kKnownFaults);  // all numbers shifted, one missing
  CHECK(faults_of_list(list.replace(list.find("a: b"), 4, "a: c"), source).size() == 1);
}
