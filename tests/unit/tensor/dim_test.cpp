// Symbolic dimensions: one canonical form, exact arithmetic, text that reads back.
#include "rlx/tensor/dim.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "rlx/error.h"

using namespace rlx;

namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

void expect_text(const Dim& d, std::string_view text) {
  CHECK(d.text() == text);
  auto back = parse_dim(text);
  REQUIRE(back);
  CHECK(*back == d);
}

// A random expression, and its value for n = 12 and m = 7.
struct DrawnDims {
  Dim dim;
  std::int64_t value;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

DrawnDims draw(std::mt19937& random, int depth) {
  switch (depth == 0 ? random() % 3 : random() % 9) {
    case 0: return {n, 12};
    case 1: return {m, 7};
    case 2: {
      auto v = static_cast<std::int64_t>(random() % 9) - 2;
      return {Dim(v), v};
    }
    default: break;
  }
  DrawnDims a = draw(random, depth - 1), b = draw(random, depth - 1);
  auto divisor = static_cast<std::int64_t>(random() % 5 + 1);
  switch (random() % 7) {
    case 0: return {a.dim + b.dim, a.value + b.value};
    case 1: return {a.dim - b.dim, a.value - b.value};
    case 2: return {a.dim * b.dim, a.value * b.value};
    case 3: return {floordiv(a.dim, Dim(divisor)), floor_div(a.value, divisor)};
    case 4: return {mod(a.dim, Dim(divisor)), a.value - divisor * floor_div(a.value, divisor)};
    case 5: return {min(a.dim, b.dim), std::min(a.value, b.value)};
    default: return {max(a.dim, b.dim), std::max(a.value, b.value)};
  }
}

}  // namespace

TEST_CASE("dim: equal expressions are equal however they were written") {
  CHECK((n + 1) * 2 == 2 * n + 2);
  CHECK(n * m == m * n);
  CHECK(n + m - n == m);
  CHECK(n - n == Dim(0));
  CHECK((n - n).is_static(0));
  CHECK((n + m) * (n - m) == n * n - m * m);
  CHECK(min(n, m) == min(m, n));
  CHECK(max(n, n) == n);
  CHECK(floordiv(6 * n, Dim(3)) == 2 * n);
  CHECK(mod(6 * n, Dim(3)) == Dim(0));
  CHECK(floordiv(Dim(-7), Dim(2)) == Dim(-4));
  CHECK(mod(Dim(-7), Dim(2)) == Dim(1));
  CHECK_FALSE(n == m);
  CHECK_FALSE(n == Dim(1));
}

TEST_CASE("dim: text is canonical and reads back") {
  expect_text(Dim(-3), "-3");
  expect_text(2 * m * n + 1, "2*m*n + 1");
  expect_text(1 - n, "-n + 1");
  expect_text(floordiv(n + 1, Dim(16)) * 16, "16*floordiv(n + 1, 16)");
  expect_text(mod(n, m), "mod(n, m)");
  expect_text(max(n, Dim(4)) - min(m, n), "max(4, n) - min(m, n)");
  for (std::string_view bad :
       {"", " ", "n +", "n n", "(n", "()", "2n", "n/2", "floordiv(n)", "floordiv(n, 0)", "mod(n, -1)", "foo(n, m)",
        "min(n, m", "n + 99999999999999999999", "n)", "-", "\xc3\xa9"})
    CHECK_FALSE(parse_dim(bad));
  CHECK_FALSE(parse_dim(std::string(1000, '-') + "1"));
  CHECK_FALSE(parse_dim(std::string(1000, '(') + "1" + std::string(1000, ')')));
  CHECK(parse_dim("(n)") == n);
  CHECK(parse_dim("2*(n + 1)*(m - (n + 1))") == 2 * (n + 1) * (m - (n + 1)));
  CHECK(parse_dim("floordiv((n + 1)*2, (3))") == floordiv((n + 1) * 2, 3));
  CHECK(parse_dim("9223372036854775807")->value() == std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(parse_dim("9223372036854775808"));
}

TEST_CASE("dim: exact division says when there is none") {
  CHECK(exact_div(4 * n + 2, Dim(2)) == 2 * n + 1);
  CHECK(exact_div(n * m + m, m) == n + 1);
  CHECK(exact_div(n, n) == Dim(1));
  CHECK_FALSE(exact_div(4 * n + 1, Dim(2)));
  CHECK_FALSE(exact_div(n, m));
  CHECK_FALSE(exact_div(n, Dim(0)));
}

TEST_CASE("dim: values, symbols and what has no value yet") {
  CHECK((n * 2 + m).symbols() == std::vector<std::string>{"m", "n"});
  CHECK(floordiv(n, m).symbols() == std::vector<std::string>{"m", "n"});
  CHECK((n * 2 + m).bind({{"n", 5}}) == m + 10);
  CHECK((n * 2 + m).bind({{"n", 5}, {"m", 1}}).value() == 11);
  CHECK_THROWS_WITH_AS((n + 1).value(), doctest::Contains("n + 1 has no value"), Error);
  CHECK_THROWS_WITH_AS(Dim::symbol("2n"), doctest::Contains("is not a symbol name"), Error);
  CHECK_THROWS_WITH_AS(floordiv(n, Dim(0)), doctest::Contains("must be positive"), Error);
  CHECK_THROWS_WITH_AS(mod(n, m).bind({{"n", 3}, {"m", 0}}), doctest::Contains("must be positive"), Error);
}

TEST_CASE("dim: overflow and explosion are errors") {
  const Dim big(std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_WITH_AS(big + 1, doctest::Contains("overflows"), Error);
  CHECK_THROWS_WITH_AS(big * 2, doctest::Contains("overflows"), Error);
  CHECK_THROWS_WITH_AS((big * n) * 2, doctest::Contains("overflows"), Error);
  Dim product(1);
  CHECK_THROWS_WITH_AS(
      [&] {
        for (int i = 0; i < 40; ++i) product = product * (Dim::symbol("a" + std::to_string(i)) + 1);
      }(),
      doctest::Contains("terms"), Error);
}

TEST_CASE("dim: random expressions have the value of their parts, and their text reads back") {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    DrawnDims d = draw(random, 3);
    INFO(d.dim.text());
    CHECK(d.dim.bind({{"n", 12}, {"m", 7}}) == Dim(d.value));
    auto back = parse_dim(d.dim.text());
    REQUIRE(back);
    CHECK(*back == d.dim);
    // Binding in two steps gives the same value.
    CHECK(d.dim.bind({{"n", 12}}).bind({{"m", 7}}) == Dim(d.value));
  }
}

TEST_CASE("dim: arithmetic at the ends of 64 bits is exact or an error") {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                         kHigh = std::numeric_limits<std::int64_t>::max();
  CHECK(mod(Dim(kLow), Dim(3)) == Dim(1));
  CHECK_THROWS_AS((void)(n * Dim(kHigh) + n), Error);
  CHECK_THROWS_AS((void)exact_div(Dim(kLow), Dim(-1)), Error);
  CHECK_THROWS_AS((void)exact_div(n * Dim(kLow), n * Dim(-1)), Error);
  CHECK(*exact_div(n * Dim(6), Dim(-2)) == n * Dim(-3));
}

TEST_CASE("functions nest to a bound, and text doubles to a bound: beyond it an error instead of a hang") {
  Dim nested = n;
  int depth = 0;
  try {
    for (; depth < 200'000; ++depth) nested = floordiv(nested + 1, 2);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::InvalidArgument);
    CHECK(std::string(e.what()).find("nests") != std::string::npos);
  }
  CHECK(depth == 48);
  CHECK(nested.evaluate({{"n", 1000}}) == 1);
  CHECK(parse_dim(nested.text()) == nested);

  Dim doubled = n;
  CHECK_THROWS_AS(for (int i = 0; i < 40; ++i) doubled = min(doubled + 1, doubled * 2 + mod(doubled, Dim(7)));, Error);
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "floordiv(";
  CHECK(!parse_dim(text + "n"));
}
