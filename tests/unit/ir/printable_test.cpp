// Bytes in messages: no raw control byte reaches a terminal, and the width is kept.
#include "rlx/base/printable.h"

#include <doctest/doctest.h>

#include <random>

#include "rlx/base/utf8.h"

using namespace rlx;

TEST_CASE("printable: characters stay, control characters and stray bytes are escaped, long text is cut") {
  CHECK(printable("a\tb", 20) == "a b");
  CHECK(printable("caf\xc3\xa9 \xe6\x97\xa5", 20) == "caf\xc3\xa9 \xe6\x97\xa5");
  CHECK(printable("caf\xe9\x1b[0m", 20) == "caf\\xe9\\x1b[0m");
  CHECK(printable(std::string_view("\0\x7f\xc2\x9b", 4), 20) == "\\x00\\x7f\\xc2\\x9b");
  CHECK(printable("0123456789", 10) == "0123456789");
  CHECK(printable("0123456789a", 10) == "0123456...");
  CHECK(printable("01234\xff\xff\xff", 10) == "01234...");
  CHECK(printable_columns("caf\xc3\xa9\n") == 8);
}

TEST_CASE("printable: random bytes become valid text of the width") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::size_t width = 8 + random() % 60;
    const std::string shown = printable(bytes, width);
    CHECK_FALSE(find_invalid_utf8(shown));
    CHECK(printable_columns(shown) <= width);
    CHECK((printable_columns(bytes) <= width) == (printable_columns(shown) == printable_columns(bytes)));
    for (char c : shown) CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }
}
