// The pages of docs/: their C++ is part of programs that run as tests, and links between files of the repository are
// valid.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const char* folder, const char* ending) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(rlx::test::source_path(folder)))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  return found;
}

// files_of in this folder and all folders below it.
std::vector<fs::path> files_below(const char* folder, const char* ending) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(rlx::test::source_path(folder)))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  return found;
}

std::string content(const fs::path& path) { return rlx::test::read_file(path.string()); }

}  // namespace

TEST_CASE("docs: every C++ block is part of an example, which compiles and runs as a test") {
  std::string examples;
  for (const fs::path& path : files_of("examples", ".cpp")) examples += content(path) + '\0';
  std::size_t num_blocks = 0;
  for (const fs::path& page : files_of("docs", ".md")) {
    const std::string text = content(page), open = "```cpp\n";
    for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
      at += open.size();
      const std::size_t end = text.find("```", at);
      REQUIRE_MESSAGE(end != std::string::npos, page.string(), ": a block without an end");
      const std::string block = text.substr(at, end - at);
      ++num_blocks;
      CHECK_MESSAGE(examples.find(block) != std::string::npos, page.string(), ": in no example:\n", block);
      at = end + 3;
    }
  }
  CHECK(num_blocks > 10);
}

TEST_CASE("docs: what an example prints is what its page shows") {
  for (const auto& shown : {std::pair("docs/training.md", "examples/08_train.expected.txt")}) {
    const char *page = shown.first, *output = shown.second;
    CHECK_MESSAGE(
        content(rlx::test::source_path(page)).find(content(rlx::test::source_path(output))) != std::string::npos, page,
        " does not show ", output);
  }
}

TEST_CASE("docs: the text blocks of the C++ tutorial are what its program prints") {
  const std::string page = content(rlx::test::source_path("docs/cpp.md")), open = "```text\n";
  std::string shown;
  for (std::size_t at = 0; (at = page.find(open, at)) != std::string::npos;) {
    at += open.size();
    const std::size_t end = page.find("```", at);
    REQUIRE(end != std::string::npos);
    shown += page.substr(at, end - at);
    at = end;
  }
  CHECK(shown == content(rlx::test::source_path("examples/20_cpp_tutorial.expected.txt")));
}

TEST_CASE("docs: links to files of the repository lead somewhere") {
  std::vector<fs::path> pages = files_of(".", ".md");
  for (const char* folder : {"docs", "rlx"})
    for (const fs::path& page : files_below(folder, ".md")) pages.push_back(page);
  for (const char* folder : {"bench", "cli", "python", "tests"})
    for (const fs::path& page : files_of(folder, ".md")) pages.push_back(page);
  std::size_t num_links = 0;
  for (const fs::path& page : pages) {
    const std::string text = content(page);
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
      at += 2;
      const std::string target = text.substr(at, text.find_first_of(")#\n ", at) - at);
      // An address, or an index and a call: `branches[i](*operands)`.
      if (target.empty() || target.find(':') != std::string::npos || target.front() == '*') continue;
      ++num_links;
      CHECK_MESSAGE(fs::exists(page.parent_path() / target), page.string(), " links to ", target);
    }
  }
  CHECK(num_links > 10);
}

TEST_CASE("docs: benches are named by the path they are run by") {
  std::vector<fs::path> pages = files_of("docs", ".md");
  for (const char* page : {"CONTRIBUTING.md", "README.md"}) pages.push_back(rlx::test::source_path(page));
  for (const fs::path& page : pages) {
    const std::string text = content(page), open = "`bench/";
    for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
      const std::string script = text.substr(at + 1, text.find_first_of("` ", at + 1) - at - 1);
      at += open.size();
      const bool stands_for_any = script == "bench/" || script == "bench/NAME.cpp";
      CHECK_MESSAGE((stands_for_any || fs::is_regular_file(rlx::test::source_path(script))), page.string(), " names ",
                    script, ": programs are build/release/bench/NAME");
    }
  }
  for (const fs::path& source : files_of("bench", ".cpp"))
    CHECK_MESSAGE(content(source).substr(0, 600).find("sage: bench_") == std::string::npos, source.string());
}

TEST_CASE("docs: the index names every page") {
  const std::string index = content(rlx::test::source_path("docs/README.md"));
  for (const fs::path& page : files_of("docs", ".md"))
    if (page.filename() != "README.md")
      CHECK_MESSAGE(index.find("(" + page.filename().string() + ")") != std::string::npos, page.string());
}

TEST_CASE("docs: pages keep to their size") {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  const std::pair<const char*, int> limits[] = {
      {"README.md", 150}, {"ARCHITECTURE.md", 200}, {"ROADMAP.md", 100}, {"docs/glossary.md", 120}};
  for (const auto& limit : limits) {
    CAPTURE(limit.first);
    CHECK(lines(content(rlx::test::source_path(limit.first))) <= limit.second);
  }
  // Each release is a second-level section.
  const std::string changes = content(rlx::test::source_path("CHANGELOG.md"));
  for (std::size_t at = changes.find("\n## "); at != std::string::npos;) {
    const std::size_t end = changes.find("\n## ", at + 1);
    const std::string release = changes.substr(at, end == std::string::npos ? end : end - at);
    CHECK_MESSAGE(lines(release) <= 60, "CHANGELOG.md: more than 60 lines of", release.substr(3, 20));
    at = end;
  }
  for (const fs::path& page : files_below("rlx", ".md"))
    CHECK_MESSAGE(lines(content(page)) <= 100, page.string(), " is longer than a page");
}
