// Words of ours that the field's words have replaced do not come back, and no file of ours includes a header by the
// path that it had before it moved.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/paths.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

struct RetiredWords {
  std::unordered_map<std::string, std::string> identifiers;  // the old one, the new one
  std::vector<std::pair<std::string, std::string>> phrases;  // lower case
};

RetiredWords parse_words(const std::string& text) {
  RetiredWords out;
  bool phrases = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      phrases = line == "[phrases]";
      continue;
    }
    const std::size_t bar = line.find(" | ");
    REQUIRE_MESSAGE(bar != std::string::npos, line);
    std::string old_word = line.substr(0, bar), new_word = line.substr(bar + 3);
    if (phrases)
      out.phrases.emplace_back(std::move(old_word), std::move(new_word));
    else
      out.identifiers.emplace(std::move(old_word), std::move(new_word));
  }
  return out;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// One message for each retired word in `text`: its line, the word, the field's word. Lines that declare a deprecated
// name may hold it.
std::vector<std::string> retired_in(const RetiredWords& words, const std::string& text, bool is_code) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find("deprecated") != std::string::npos) continue;
    const auto note = [&](const std::string& old_word, const std::string& new_word) {
      found.push_back(std::to_string(number) + ": '" + old_word + "' is now '" + new_word + "'");
    };
    for (std::size_t i = 0; is_code && i < line.size();) {
      std::size_t end = i;
      while (end < line.size() && in_word(line[end])) ++end;
      if (const auto at = words.identifiers.find(line.substr(i, end - i)); at != words.identifiers.end())
        note(at->first, at->second);
      i = std::max(end, i + 1);
    }
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& [old_phrase, new_phrase] : words.phrases)
      if (line.find(old_phrase) != std::string::npos) note(old_phrase, new_phrase);
  }
  return found;
}

RetiredWords words() { return parse_words(test::read_file(test::source_path("tests/unit/lint/retired_words.txt"))); }

struct Source {
  std::string path, text;
  bool is_code;
};

// Sources and pages, but for this lint, the tests of deprecated names, and the log.
std::vector<Source> sources() {
  std::vector<Source> out;
  for (const char* folder : {"rlx", "cli", "python", "tests", "bench", "examples", "docs", "cmake", "scripts"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(test::source_path(folder))) {
      const std::string path = entry.path().string(), ending = entry.path().extension().string();
      const bool is_code =
          ending == ".h" || ending == ".cpp" || ending == ".inc" || ending == ".py" || ending == ".pyi";
      if (!is_code && ending != ".md" && ending != ".sh" && ending != ".cmake" && ending != ".js") continue;
      const auto has = [&](std::string_view part) { return path.find(part) != std::string::npos; };
      if (has("/docs/log/") || has("retired_words_test") || has("deprecated_names_test") || has("test_renamed.py"))
        continue;
      out.push_back({path, test::read_file(path), is_code});
    }
  return out;
}

}  // namespace

TEST_CASE("lint: the check of retired words sees what it must see") {
  const RetiredWords some =
      parse_words("# note\n[identifiers]\nOldName | NewName\n[phrases]\nold phrase | new phrase\n");
  CHECK(retired_in(some, "int OldName = 1;\nint OldNames, MyOldName;\n// an Old Phrase\n", true) ==
        std::vector<std::string>{"1: 'OldName' is now 'NewName'", "3: 'old phrase' is now 'new phrase'"});
  CHECK(retired_in(some, "using OldName [[deprecated(\"now NewName\")]] = NewName;\n", true).empty());
  CHECK(retired_in(some, "OldName of a page\n", false).empty());
}

TEST_CASE("lint: the new name of a retired identifier exists") {
  std::unordered_set<std::string> used;
  for (const Source& source : sources()) {
    if (!source.is_code) continue;
    for (std::size_t i = 0; i < source.text.size();) {
      std::size_t end = i;
      while (end < source.text.size() && in_word(source.text[end])) ++end;
      if (end > i) used.insert(source.text.substr(i, end - i));
      i = std::max(end, i + 1);
    }
  }
  for (const auto& renamed : words().identifiers)
    CHECK_MESSAGE(used.contains(renamed.second), renamed.first, " is said to be now ", renamed.second,
                  ", which no source has");
}

TEST_CASE("lint: retired words do not return") {
  const RetiredWords retired = words();
  CHECK(retired.identifiers.size() > 400);
  CHECK(retired.phrases.size() > 15);
  for (const Source& source : sources())
    for (const std::string& found : retired_in(retired, source.text, source.is_code))
      FAIL_CHECK(source.path, ":", found);
}

TEST_CASE("lint: headers that moved are included by their new paths") {
  std::unordered_map<std::string, std::string> moved;
  std::istringstream table(test::read_file(test::source_path("cmake/moved_headers.txt")));
  for (std::string line; std::getline(table, line);)
    if (const std::size_t gap = line.find(' '); !line.empty() && line[0] != '#')
      moved.emplace("rlx/" + line.substr(0, gap), "rlx/" + line.substr(gap + 1));
  CHECK(moved.size() >= 35);
  for (const Source& source : sources()) {
    if (!source.is_code) continue;
    std::istringstream lines(source.text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("#include \"")) continue;
      const auto at = moved.find(line.substr(10, line.find('"', 10) - 10));
      if (at != moved.end()) FAIL_CHECK(source.path, " includes ", at->first, ", which is now ", at->second);
    }
  }
}

}  // namespace rlx
