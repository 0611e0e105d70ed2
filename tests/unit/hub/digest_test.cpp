// Checksums against published answers, in all ways to cut the bytes.
#include "rlx/hub/digest.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using rlx::Digest;
using rlx::file_digest;

namespace {

std::string sum_of(Digest sum, std::string_view bytes, std::size_t piece) {
  for (std::size_t at = 0; at < bytes.size(); at += piece) sum.add(bytes.substr(at, piece));
  return sum.finish();
}

}  // namespace

TEST_CASE("hub: SHA-256 and SHA-1 of FIPS 180-4, names of git blobs") {
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  CHECK(sum_of(Digest(Digest::Kind::Sha256), "", 1) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum_of(Digest(Digest::Kind::Sha256), "abc", 1) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sum_of(Digest(Digest::Kind::Sha256), two_blocks, 7) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sum_of(Digest(Digest::Kind::Sha1), "abc", 2) == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(sum_of(Digest(Digest::Kind::Sha1), two_blocks, 56) == "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  const std::string million(1000000, 'a');
  CHECK(sum_of(Digest(Digest::Kind::Sha256), million, 999) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sum_of(Digest(Digest::Kind::Sha1), million, 4096) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  // As `git hash-object` says.
  CHECK(sum_of(file_digest(40, 0), "", 1) == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  CHECK(sum_of(file_digest(40, 6), "hello\n", 3) == "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST_CASE("hub: a checksum does not depend on the pieces") {
  std::mt19937 draw(7);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(draw() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(draw());
    for (const Digest::Kind kind : {Digest::Kind::Sha1, Digest::Kind::Sha256})
      CHECK(sum_of(Digest(kind), bytes, 1 + draw() % 130) == sum_of(Digest(kind), bytes, 1000));
  }
}
