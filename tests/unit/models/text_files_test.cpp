// The files of folders: globs, ignore files, hidden and binary files, links, limits.
#include "rlx/models/text_files.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "rlx/formats/gzip.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

using namespace rlx;
using namespace rlx::test;

namespace {

std::vector<std::string> names_in(const std::string& folder, const FileSelection& selection = {},
                                  std::vector<LeftOutFile>* left_out = nullptr) {
  std::vector<std::string> out;
  for (const TextFile& f : find_text_files(std::span(&folder, 1), selection, left_out)) {
    CHECK(f.path.starts_with(folder));
    out.push_back(f.path.substr(folder.size() + 1));
  }
  return out;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("text files: folders are walked whole, in order, without hidden and ignored files") {
  const TempDir dir;
  for (const char* name : {"b.txt", "a.md", "sub/c.txt", "sub/deep/d.txt", "sub/skip.log", ".hidden/e.txt", ".f.txt",
                           "build/g.txt", ".git/h.txt", "sub/deep/keep.log"})
    dir.write(name, "text");
  dir.write(".gitignore", "*.log\nbuild/\n");
  dir.write("sub/deep/.gitignore", "!keep.log\n");
  CHECK(names_in(dir.path()) == Names{"a.md", "b.txt", "sub/c.txt", "sub/deep/d.txt", "sub/deep/keep.log"});
  CHECK(names_in(dir.path() + "/sub/..").size() == 5);
  CHECK(names_in(dir.path(), {.globs = {"*.txt", "!sub/deep/"}}) == Names{"b.txt", "sub/c.txt"});
  CHECK(names_in(dir.path(), {.globs = {"sub/*"}}) == Names{"sub/c.txt"});
  CHECK(names_in(dir.path(), {.globs = {"!*.txt"}}) == Names{"a.md", "sub/deep/keep.log"});
  FileSelection all;
  all.hidden = true, all.ignore_files = false;
  CHECK(names_in(dir.path(), all) == Names{".f.txt", ".gitignore", "a.md", "b.txt", ".hidden/e.txt", "build/g.txt",
                                           "sub/c.txt", "sub/skip.log", "sub/deep/.gitignore", "sub/deep/d.txt",
                                           "sub/deep/keep.log"});
  // Ignore files above a folder hold where the repository begins there.
  CHECK(names_in(dir.path() + "/sub") == Names{"c.txt", "deep/d.txt", "deep/keep.log"});
  std::filesystem::remove_all(dir.file(".git"));
  CHECK(names_in(dir.path() + "/sub") == Names{"c.txt", "skip.log", "deep/d.txt", "deep/keep.log"});
  // .ignore decides before .gitignore.
  dir.write(".ignore", "!build/\n");
  CHECK(names_in(dir.path()).back() == "sub/deep/keep.log");
  CHECK(names_in(dir.path()).at(2) == "build/g.txt");
}

TEST_CASE("text files: links are not followed, folders within others are read once, large files are left out") {
  const TempDir dir;
  dir.write("sub/a.txt", "text");
  dir.write("large.txt", std::string(2000, 'x'));
  REQUIRE(::symlink(dir.path().c_str(), dir.file("sub/loop").c_str()) == 0);
  REQUIRE(::symlink(dir.file("sub/a.txt").c_str(), dir.file("link.txt").c_str()) == 0);
  REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);
  std::vector<LeftOutFile> left_out;
  CHECK(names_in(dir.path(), {.max_bytes = 1000}, &left_out) == Names{"sub/a.txt"});
  REQUIRE(left_out.size() == 1);
  CHECK(contains(left_out[0].why.message, "large.txt\" has 2000 bytes, more than 1000"));
  const std::vector<std::string> twice = {dir.path(), dir.file("sub"), dir.file("sub/a.txt"), dir.file("link.txt")};
  const std::vector<TextFile> found = find_text_files(twice, {});
  REQUIRE(found.size() == 3);
  CHECK(found.back().named);
  CHECK(found.back().path == dir.file("link.txt"));
  CHECK(contains(error_text([&] { (void)names_in(dir.file("none")); }), "none\": No such file"));
  CHECK(contains(error_text([&] { (void)names_in(dir.path(), {.globs = {"[a"}}); }), "the glob '[a' is malformed"));
}

TEST_CASE("text files: an ignore file that takes too much work is an error that names it") {
  const TempDir dir;
  dir.write(std::string(200, 'a') + ".txt", "text");
  std::string patterns;
  for (int i = 0; i < 2000; ++i) patterns += "*a*a*a*a*a*a*a*a*a*a*b\n";
  dir.write(".gitignore", patterns);
  CHECK(contains(error_text([&] { (void)names_in(dir.path()); }), "the patterns of the ignore files in"));
  CHECK(names_in(dir.path(), {.ignore_files = false}).size() == 1);
  dir.write(".gitignore", std::string((1 << 20) + 1, '#'));
  std::vector<LeftOutFile> left_out;
  CHECK(names_in(dir.path(), {}, &left_out).size() == 1);
  REQUIRE(left_out.size() == 1);
  CHECK(contains(left_out[0].why.message, ".gitignore\" has more than"));
}

TEST_CASE("text files: what is text, and what is not") {
  const TempDir dir;
  CHECK(read_text_file(dir.write("a.txt", "\xEF\xBB\xBFtext\n")) == "text\n");
  CHECK(read_text_file(dir.write("empty", "")).empty());
  CHECK_FALSE(looks_binary(dir.file("empty")));
  CHECK_FALSE(looks_binary(dir.file("a.txt")));
  CHECK(looks_binary(dir.write("b", std::string_view("\x7f"
                                                     "ELF\0\0",
                                                     6))));
  for (const auto& [content, problem] : {std::pair<std::string, const char*>{"a\ncaf\xe9\n", ":2: not valid UTF-8"},
                                         {std::string("a\0b", 3), "a binary file"},
                                         {"\x28\xb5\x2f\xfd data", "compressed with zstd"},
                                         {"\xff\xfe a", "text in UTF-16"},
                                         {"\x1f\x8b\x08\x00", "compressed data ends too early"}}) {
    dir.write("bad", content);
    const std::string text = error_text([&] { (void)read_text_file(dir.file("bad")); });
    CHECK_MESSAGE(contains(text, problem), text);
  }
  CHECK(contains(error_text([&] { (void)read_text_file(dir.path()); }), "Is a directory"));
}
