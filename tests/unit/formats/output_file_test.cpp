// Output files appear complete or not at all.
#include "rlx/formats/output_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "rlx/formats/mapped_file.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_text;

std::size_t num_entries(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("output file: the old content stays until the new one is complete, and stays without that") {
  const test::TempDir folder;
  const std::string path = folder.write("data", "old");
  const std::string big(200000, 'x');
  {
    OutputFile file(path);
    file.write("new ");
    file.write(big);
    CHECK(read_file(path) == "old");
    file.commit();
    CHECK(read_file(path) == "new " + big);
  }
  { OutputFile(path).write(big); }
  CHECK(read_file(path) == "new " + big);
  { OutputFile(folder.file("other")).write("x"); }
  CHECK(num_entries(folder.path()) == 1);
  OutputFile(folder.file("empty")).commit();
  CHECK(read_file(folder.file("empty")).empty());
}

TEST_CASE("output file: what a signal handler removes does not come back") {
  const test::TempDir folder;
  {
    OutputFile a(folder.file("a")), b(folder.file("b"));
    a.write("x");
    CHECK(num_entries(folder.path()) == 2);
    b.commit();
    CHECK(num_entries(folder.path()) == 2);
    remove_unfinished_files();
    CHECK(num_entries(folder.path()) == 1);
  }
  CHECK(num_entries(folder.path()) == 1);
  CHECK(is_file(folder.file("b")));
}

TEST_CASE("output file: links stay links, permissions stay, special files are written directly") {
  const test::TempDir folder;
  const std::string path = folder.write("sub/data", "old");
  fs::create_symlink("sub/data", folder.file("link"));
  fs::create_symlink(folder.file("sub/none"), folder.file("dangling"));
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  write_file(folder.file("link"), "new");
  write_file(folder.file("dangling"), "made");
  CHECK(read_file(path) == "new");
  CHECK(read_file(folder.file("sub/none")) == "made");
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(fs::is_symlink(folder.file("dangling")));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0640);
  write_file("/dev/null", "x");
  CHECK(contains(error_text([&] { write_file("/dev/full", "x"); }), "cannot write \"/dev/full\": No space left"));
}

TEST_CASE("output file: folders, missing folders and files that may not be written are refused at once") {
  const test::TempDir folder;
  CHECK(contains(error_text([&] { OutputFile(folder.path()); }), "Is a directory"));
  CHECK(contains(error_text([&] { OutputFile(folder.file("no/x")); }), "cannot write \"" + folder.file("no/x")));
  const std::string path = folder.write("data", "old");
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  if (::geteuid() != 0)  // root can write to the folder
    CHECK(contains(error_text([&] { OutputFile{path}; }), "Permission denied"));
  CHECK(num_entries(folder.path()) == 1);
}

}  // namespace rlx
