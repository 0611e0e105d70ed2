// Mapping, reading and writing files, and their error texts.
#include "rlx/formats/mapped_file.h"

#include <doctest/doctest.h>

#include <utility>

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

}  // namespace rlx
