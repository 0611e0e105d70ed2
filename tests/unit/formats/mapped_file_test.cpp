// Mapping, reading and writing files, and their error texts.
#include "rlx/formats/mapped_file.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "rlx/base/output_file.h"
#include "rlx/base/sigbus_guard.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("mapped file: content, move, dropped pages come back") {
  const test::TempDir folder;
  std::string content(100000, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 26);
  const std::string path = folder.write("data.bin", content);
  MappedFile a = MappedFile::open(path, MapAdvice::WillNeed);
  CHECK(a.size() == content.size());
  CHECK(a.path() == path);
  CHECK(a.text() == content);
  MappedFile b = std::move(a);
  CHECK(a.size() == 0);
  b.drop_pages(0, b.size());
  b.drop_pages(5000, 20000);
  b.drop_pages(50000, ~std::size_t{0});
  b.drop_pages(200000, 1);
  CHECK(b.text() == content);
  a = std::move(b);
  CHECK(a.text() == content);
  CHECK(read_file(path) == content);

  CHECK(MappedFile::open(folder.write("empty", "")).size() == 0);
  CHECK(read_file(folder.file("empty")).empty());
}

TEST_CASE("mapped file: errors name the file and the reason") {
  const test::TempDir folder;
  const std::string missing = folder.file("missing.bin");
  CHECK(contains(error_text([&] { MappedFile::open(missing); }),
                 "not found: cannot open \"" + missing + "\": No such file"));
  CHECK(contains(error_text([&] { MappedFile::open(folder.path()); }), "Is a directory"));
  CHECK(contains(error_text([&] { read_file(folder.path()); }), "Is a directory"));
  CHECK(contains(error_text([&] { read_file("/dev/null"); }), "not a regular file"));
  CHECK(contains(error_text([&] { write_file(folder.path() + "/no/such/folder", "x"); }), "cannot write"));
  CHECK_FALSE(is_file(missing));
  write_file(missing, "now");
  CHECK(is_file(missing));
  CHECK(read_file(missing) == "now");
  write_file(missing, "x");
  CHECK(read_file(missing) == "x");
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path("a/", "b") == "a/b");
}

TEST_CASE("mapped file: an optional file that exists and is no file is an error") {
  const test::TempDir folder;
  const auto message = [&](const std::string& name) { return error_text([&] { (void)has_file(folder.file(name)); }); };
  const std::string file = folder.write("file", "x");
  CHECK(has_file(file));
  CHECK_FALSE(has_file(folder.file("none")));
  CHECK_FALSE(has_file(file + "/below"));
  std::filesystem::create_symlink("file", folder.file("link"));
  CHECK(has_file(folder.file("link")));
  std::filesystem::create_symlink("nowhere", folder.file("dead"));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  std::filesystem::create_symlink("/dev/null", folder.file("null"));
  std::filesystem::create_directory(folder.file("folder"));
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(contains(message("dead"), "is a symbolic link to a file that does not exist"));
  CHECK(contains(message("loop"), "Too many levels of symbolic links"));
  CHECK(contains(message("folder"), "is a folder, expected a file"));
  for (const char* name : {"null", "pipe"}) CHECK(contains(message(name), "is a device or a pipe, expected a file"));
  for (const char* name : {"dead", "loop", "folder", "null", "pipe"}) CHECK(contains(message(name), folder.file(name)));
}

TEST_CASE("mapped file: pages that are lost read as zeros where the owner asks for that, and are told") {
  const test::TempDir folder;
  const std::string path = folder.write("data.bin", std::string(100000, 'x'));
  const MappedFile other = MappedFile::open(folder.write("other", std::string(9000, 'y')));
  const char inside = 'a';
  {
    const MappedFile file = MappedFile::open(path);
    const char* middle = file.text().data() + 50000;
    guard_mapping(middle);
    guard_mapping(&inside);  // not one of our mappings
    CHECK_FALSE(damaged_file_at(middle));
    CHECK_FALSE(changed_file_at(middle));
    std::filesystem::resize_file(path, 10000);
    CHECK(changed_file_at(middle) == path);
    CHECK(std::all_of(file.text().begin() + 20000, file.text().end(), [](char c) { return c == 0; }));
    CHECK(std::all_of(file.text().begin(), file.text().begin() + 8192, [](char c) { return c == 'x'; }));
    CHECK(any_damaged_mapping());
    CHECK(damaged_file_at(file.text().data()) == path);
    CHECK_FALSE(damaged_file_at(other.text().data()));
    CHECK_FALSE(damaged_file_at(&inside));
  }
  CHECK_FALSE(any_damaged_mapping());
  const MappedFile again = MappedFile::open(path);
  CHECK_FALSE(damaged_file_at(again.text().data()));
  // Replacing a mapped file by another one does not change the mapping.
  folder.write("new", "z");
  std::filesystem::rename(folder.file("new"), path);
  CHECK_FALSE(changed_file_at(again.text().data()));
}

TEST_CASE("mapped file: a call that reads lost pages throws, and so do later ones") {
  const test::TempDir folder;
  const std::string path = folder.write("data.bin", std::string(100000, 'x'));
  const MappedFile file = MappedFile::open(path), other = MappedFile::open(folder.write("other", "y"));
  const char* const begin = file.text().data();
  GuardedReads::check_readable(begin, file.size());
  GuardedReads::check(begin);
  std::filesystem::resize_file(path, 10000);
  const auto cut = [&] { return error_text([&] { GuardedReads::check_readable(begin + 20000, 100); }); };
  CHECK(contains(cut(), concat_text("\"", path, "\" was made shorter")));
  CHECK(contains(cut(), "load it again"));
  {
    const GuardedReads reads;
    CHECK(begin[90000] == 0);
    CHECK(contains(error_text([&] { reads.check(begin); }), path));
    CHECK(error_text([&] { reads.check(other.text().data()); }).empty());
  }
  GuardedReads::check_readable(other.text().data(), other.size());
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("mapped file: a program that was told to warn goes on, and is told once for each file") {
  const test::TempDir folder;
  const std::string path = folder.write("data.bin", std::string(100000, 'x')), said = folder.file("said");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!std::freopen(said.c_str(), "w", stderr)) ::_exit(7);
    install_sigbus_guard(OnLostPage::Warn);
    const MappedFile file = MappedFile::open(path);
    std::filesystem::resize_file(path, 10);
    const bool zeros = file.text()[90000] == 0 && file.text()[50000] == 0;
    ::_exit(zeros && damaged_file_at(file.text().data()) ? 0 : 9);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  const std::string text = read_file(said);
  CHECK(contains(text, concat_text("rlx: warning: \"", path, "\" was made shorter")));
  CHECK(text.find("warning") == text.rfind("warning"));
}

TEST_CASE("mapped file: a program whose file is cut says so and leaves nothing behind") {
  const test::TempDir folder;
  const std::string path = folder.write("data.bin", std::string(100000, 'x')), said = folder.file("said");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!std::freopen(said.c_str(), "w", stderr)) ::_exit(7);
    install_sigbus_guard(OnLostPage::Say);
    OutputFile out(folder.file("out"));
    out.write("half of it");
    const MappedFile file = MappedFile::open(path);
    std::filesystem::resize_file(path, 10);
    ::_exit(file.text()[50000] == 0 ? 8 : 9);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(contains(read_file(said), concat_text("\"", path, "\" was made shorter")));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files += entry.is_regular_file();
  CHECK(files == 2);
}
#endif

}  // namespace rlx
