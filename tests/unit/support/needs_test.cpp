// Tests that run in parts: every part has its round.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "tests/support/needs.h"

namespace {

// Sets an environment variable until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  void set(const char* value) {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("rounds: n + 1 in a row take every case of a long list") {
  const ScopedVariable all("RLX_ALL_CASES", nullptr), share("RLX_TEST_SHARE", "0/64");
  ScopedVariable round("RLX_TEST_ROUND", nullptr);
  for (const std::size_t n : {2U, 3U, 6U}) {
    const std::size_t rounds = rlx::test::one_in(n) + 1;
    std::set<int> taken;
    for (std::size_t r = 40; r < 40 + rounds; ++r) {
      round.set(std::to_string(r).c_str());
      rlx::test::Share some(n);
      for (int i = 0; i < 200; ++i)
        if (some.next()) taken.insert(i);
    }
    CHECK_MESSAGE(taken.size() == 200, "1 in ", n);
  }
}

TEST_CASE("rounds: eight in a row take every seed, and a full run takes all") {
  const ScopedVariable share("RLX_TEST_SHARE", nullptr);
  ScopedVariable all("RLX_ALL_CASES", nullptr), round("RLX_TEST_ROUND", nullptr);
  for (const std::size_t n : {1U, 12U, 40U, 250U}) {
    std::set<std::uint64_t> taken;
    for (std::size_t r = 3; r < 11; ++r) {
      round.set(std::to_string(r).c_str());
      const auto part = rlx::test::seeds(n);
      CHECK_MESSAGE(part.size() <= n / 8 + 1, n, " seeds, round ", r);
      taken.insert(part.begin(), part.end());
    }
    CHECK(taken.size() == n);
    CHECK(*taken.begin() == 1);
    all.set("1");
    CHECK(rlx::test::seeds(n).size() == n);
    all.set(nullptr);
  }
}
