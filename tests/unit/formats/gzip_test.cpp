// gzip members written by the gzip program, and the errors of damaged ones.
#include "rlx/formats/gzip.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>

#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// `printf 'hello hello hello\n' | gzip -n`
std::string hello() {
  const std::uint8_t bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
                                0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x90, 0x5c,
                                0x00, 0x3b, 0x7c, 0x8a, 0xdf, 0x12, 0x00, 0x00, 0x00};
  return std::string(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

}  // namespace

TEST_CASE("gzip: members one after the other come out as one text") {
  CHECK(is_gzip(hello()));
  CHECK_FALSE(is_gzip("hello"));
  CHECK(gunzip(hello(), "f") == "hello hello hello\n");
  CHECK(gunzip(hello() + hello(), "f") == "hello hello hello\nhello hello hello\n");
}

TEST_CASE("gzip: content that is far longer than the file is refused") {
  std::string packed(1 << 16, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string zeros(std::size_t{4} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  CHECK(gunzip(packed, "f") == zeros);
  const std::string said = error_text([&] { gunzip(packed, "f.gz", 1 << 20); });
  CHECK(contains(said, "f.gz: the file has "));
  CHECK(contains(said, "unpack it with gunzip"));
}

TEST_CASE("gzip: cut anywhere or changed anywhere is an error that names the file") {
  const std::string good = hello();
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK(contains(error_text([&] { gunzip(good.substr(0, n), "f.gz"); }), "f.gz: "));
  for (std::size_t at = 10; at < good.size(); ++at) {  // bytes before 10 are flags and times, without content
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    CHECK(contains(error_text([&] { gunzip(bad, "f.gz"); }), "f.gz: the compressed data "));
  }
  CHECK(
      contains(error_text([&] { gunzip(good + "x", "f.gz"); }), "f.gz: the file has bytes after the compressed data"));
}

}  // namespace rlx
