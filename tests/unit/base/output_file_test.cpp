// Output files appear complete or not at all.
#include "rlx/base/output_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <span>
#include <string>

#include "rlx/base/cache_folder.h"
#include "rlx/base/environment.h"
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

TEST_CASE("output file: a link at a path of the program's own making is replaced, never followed") {
  const test::TempDir folder;
  const std::string precious = folder.write("precious", "old");
  const std::string_view parts[] = {"n", "ew"};
  for (const std::string& to : {precious, folder.file("none"), folder.path()}) {
    const std::string link = folder.file("link");
    fs::remove(link);
    fs::create_symlink(to, link);
    replace_file(link, parts, OutputLinks::Replace);
    CHECK_FALSE(fs::is_symlink(link));
    CHECK(read_file(link) == "new");
    replace_file(link, std::span(parts).first(1), OutputLinks::Replace);
    CHECK(read_file(link) == "n");
  }
  CHECK(read_file(precious) == "old");
  CHECK_FALSE(fs::exists(folder.file("none")));
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  for (const std::string& bad : {folder.file("pipe"), folder.path(), std::string("/dev/null")})
    CHECK(contains(error_text([&] { replace_file(bad, parts, OutputLinks::Replace); }), "cannot replace \"" + bad));
}

TEST_CASE("output file: what a killed process left is deleted, what a living one writes is not") {
  const test::TempDir folder;
  const auto temporary_files = [&] {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) n += entry.path().extension() == ".tmp";
    return n;
  };
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      OutputFile file(folder.file("a"));
      file.write(std::string(100000, 'x'));
      if (::write(ready[1], "x", 1) == 1) ::pause();
    } catch (...) {
    }
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]), ::close(ready[1]);
  CHECK(temporary_files() == 1);
  folder.write(".rlx-1-x.tmp", "not a name of ours");
  fs::create_symlink("/dev/null", folder.file(".rlx-7-7.tmp"));
  // Each process looks at a folder once, so each look is one of a new process.
  const auto write_in_child = [&] {
    const pid_t writer = ::fork();
    if (writer == 0) {
      try {
        write_file(folder.file("b"), "b");
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    REQUIRE(status == 0);
  };
  write_in_child();
  CHECK(temporary_files() == 3);
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(temporary_files() == 3);
  write_in_child();
  CHECK(temporary_files() == 2);
  CHECK(read_file(folder.file("b")) == "b");
}

TEST_CASE("output file: an append that fails leaves the old text") {
  const test::TempDir folder;
  const std::string path = folder.file("log");
  append_to_file(path, "one\n");
  append_to_file(path, "two\n");
  CHECK(read_file(path) == "one\ntwo\n");
  struct rlimit was {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
  const struct rlimit few {
    12, was.rlim_max
  };
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &few) == 0);
  const std::string refused = error_text([&] { append_to_file(path, "three, longer\n"); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &was) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(contains(refused, "cannot write \"" + path + "\": File too large"));
  CHECK(read_file(path) == "one\ntwo\n");
  CHECK(contains(error_text([&] { append_to_file(folder.file("no/x"), "x"); }), "No such file"));
}

TEST_CASE("cache folders: made for this user alone, refused where others may write") {
  const test::TempDir folder;
  const std::string path = folder.file("a/b");
  prepare_cache_folder(path + "/", "the folder of tests");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  prepare_cache_folder(path, "the folder of tests");
  const auto refused = [&] { return error_text([&] { prepare_cache_folder(path, "the folder of tests"); }); };
  REQUIRE(::chmod(path.c_str(), 0757) == 0);
  CHECK(contains(refused(), "the folder of tests \"" + path + "\" is refused: every user may write to it"));
  CHECK(contains(refused(), "RLX_SHARED_CACHES=1"));
  {
    const RuntimeOverrides told("RLX_SHARED_CACHES", "1");
    CHECK(refused().empty());
  }
  REQUIRE(::chmod(path.c_str(), 0775) == 0);
  CHECK(refused().empty());  // a group of the user's own
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 0, 4321) == 0);
    CHECK(contains(refused(), "a group of other users may write to it"));
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    CHECK(refused().empty());
    REQUIRE(::chown(path.c_str(), 4321, 0) == 0);
    CHECK(contains(refused(), "another user, its owner, may write to it"));
  }
  CHECK(contains(error_text([&] { prepare_cache_folder(folder.write("f", "x"), "the folder of tests"); }),
                 "cannot create the folder of tests"));
  CHECK(contains(error_text([] { prepare_cache_folder("", "the folder of tests"); }), "cannot create"));
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
