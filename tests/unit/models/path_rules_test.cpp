// Patterns of .gitignore files and globs: the documented forms, a plain matcher as oracle, and bounded work.
#include "rlx/models/search/path_rules.h"

#include <doctest/doctest.h>

#include <random>

using namespace rlx;

namespace {

bool pattern_matches(const std::string& pattern, const std::string& path, bool folder = false) {
  WorkBudget budget(1 << 20, 0);
  return PathPattern(pattern).matches(path, folder, budget);
}

// The rules as they are written down, without a thought of work. No sets and backslashes.
bool oracle_name(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return oracle_name(pattern.substr(1), name) || (!name.empty() && oracle_name(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         oracle_name(pattern.substr(1), name.substr(1));
}
std::vector<std::string> oracle_parts(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == '/')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}
bool oracle_path(const std::vector<std::string>& pattern, std::size_t p, const std::vector<std::string>& path,
                 std::size_t at) {
  if (p == pattern.size()) return at == path.size();
  if (pattern[p] == "**") {
    if (p + 1 == pattern.size()) return at < path.size();
    for (std::size_t next = at; next <= path.size(); ++next)
      if (oracle_path(pattern, p + 1, path, next)) return true;
    return false;
  }
  return at < path.size() && oracle_name(pattern[p], path[at]) && oracle_path(pattern, p + 1, path, at + 1);
}
bool oracle(std::string pattern, const std::string& path, bool folder) {
  if (pattern.ends_with('/')) {
    if (!folder) return false;
    pattern.pop_back();
  }
  const bool anchored = pattern.find('/') != std::string::npos;
  if (pattern.starts_with('/')) pattern.erase(0, 1);
  if (!anchored) return oracle_path({pattern}, 0, {oracle_parts(path).back()}, 0);
  return oracle_path(oracle_parts(pattern), 0, oracle_parts(path), 0);
}

}  // namespace

TEST_CASE("path rules: the forms of .gitignore files") {
  struct PatternCase {
    const char *pattern, *path;
    bool folder, matches;
  };
  const PatternCase cases[] = {
      {"a.txt", "a.txt", false, true},    {"a.txt", "x/y/a.txt", false, true}, {"a.txt", "a.txt.gz", false, false},
      {"*.o", "x/main.o", false, true},   {"*.o", "main.obj", false, false},   {"*", "x/anything", false, true},
      {"/a", "a", false, true},           {"/a", "x/a", false, false},         {"x/a", "x/a", false, true},
      {"x/a", "y/x/a", false, false},     {"build/", "x/build", true, true},   {"build/", "build", false, false},
      {"**/a", "a", false, true},         {"**/a", "x/y/a", false, true},      {"x/**", "x/y/z", false, true},
      {"x/**", "x", true, false},         {"x/**/a", "x/a", false, true},      {"x/**/a", "x/y/z/a", false, true},
      {"x/**/a", "xa", false, false},     {"x/*", "x/y", false, true},         {"x/*", "x/y/z", false, false},
      {"?at", "cat", false, true},        {"?at", "at", false, false},         {"[a-c]x", "bx", false, true},
      {"[!a-c]x", "bx", false, false},    {"[^a-c]x", "dx", false, true},      {"[]x]", "]", false, true},
      {"[a-]", "-", false, true},         {"a[/]b", "a/b", false, false},      {"\\*x", "*x", false, true},
      {"\\*x", "ax", false, false},       {"\\!x", "!x", false, true},         {"[\\]]", "]", false, true},
      {"x**y", "xaay", false, true},      {"/x**y", "xa/ay", false, false},    {"**/x/**", "a/x/b", false, true},
      {"*a*b*", "xxaxxbxx", false, true}, {"*a*b*", "xxbxxaxx", false, false}, {"/**", "a/b", false, true},
  };
  for (const PatternCase& c : cases) {
    CAPTURE(c.pattern);
    CAPTURE(c.path);
    CHECK(pattern_matches(c.pattern, c.path, c.folder) == c.matches);
  }
  for (const char* malformed : {"", "/", "!", "[a", "a\\", "[a\\", "[!"}) {
    CAPTURE(malformed);
    CHECK(PathPattern(malformed).malformed());
    CHECK_FALSE(pattern_matches(malformed, "a"));
  }
  CHECK(PathPattern("!a").negated());
}

TEST_CASE("path rules: the last pattern that matches decides, comments and blanks are none") {
  const PathRules rules = PathRules::parse_lines("# a comment\n\n*.log\r\n!keep.log\n/top \ntrail\\ \n\\#x\n");
  CHECK(rules.patterns().size() == 5);
  WorkBudget budget(1 << 20, 0);
  CHECK(rules.verdict("x/a.log", false, budget) == PathVerdict::Match);
  CHECK(rules.verdict("x/keep.log", false, budget) == PathVerdict::Negated);
  CHECK(rules.verdict("top", false, budget) == PathVerdict::Match);
  CHECK(rules.verdict("trail ", false, budget) == PathVerdict::Match);
  CHECK(rules.verdict("#x", false, budget) == PathVerdict::Match);
  CHECK(rules.verdict("x/top", false, budget) == PathVerdict::None);
}

TEST_CASE("path rules: random patterns match as written down") {
  std::mt19937 random(7);
  const auto draw = [&](std::string_view from, std::size_t most) {
    std::string out;
    for (std::size_t n = 1 + random() % most; out.size() < n;) out += from[random() % from.size()];
    return out;
  };
  int matched = 0, tried = 0;
  while (tried < 20000) {
    const std::string pattern = draw("ab*?/*/", 8), path = draw("aabb/", 7);
    // Empty names and three stars are written by nobody, and paths have none.
    if (pattern.find("//") != pattern.npos || pattern.find("***") != pattern.npos || path.find("//") != path.npos ||
        path.starts_with('/') || path.ends_with('/') || pattern == "/")
      continue;
    const bool folder = (random() & 1) != 0;
    const bool expected = oracle(pattern, path, folder);
    ++tried, matched += expected ? 1 : 0;
    CHECK_MESSAGE(pattern_matches(pattern, path, folder) == expected, pattern, " and ", path);
  }
  CHECK(matched > 1000);
}

TEST_CASE("path rules: a pattern that is made to be slow takes the product of the lengths, or its budget") {
  std::string stars, name(4000, 'a');
  for (int i = 0; i < 500; ++i) stars += "*a";
  WorkBudget enough(1 << 23, 0), little(1 << 10, 0);
  CHECK_FALSE(PathPattern(stars + "*b").matches(name, false, enough));
  CHECK(enough.steps() > 0);
  CHECK(PathPattern(stars).matches(name, false, enough));
  CHECK_FALSE(PathPattern(stars).matches(name, false, little));
  CHECK(little.steps() == 0);
}
