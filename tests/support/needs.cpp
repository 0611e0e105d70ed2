// Skips or fails tests with missing requirements.
#include "tests/support/needs.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/paths.h"

namespace rlx::test {
namespace {
bool skipped = false;
constexpr bool sanitized = repetitions(8) != 8;
bool all_cases() { return std::getenv("RLX_ALL_CASES") != nullptr; }
}  // namespace

std::string model_dir() {
  const char* chosen = std::getenv("RLX_MODEL_DIR");
  const std::string folder = chosen != nullptr ? chosen : source_path(".models/all-minilm-l6-v2");
  return std::filesystem::exists(folder + "/model.safetensors") ? folder : "";
}

void skip(const std::string& what) {
  if (std::getenv("RLX_REQUIRE_ALL_TESTS") != nullptr) {
    FAIL_CHECK("this test may not be skipped here, but it lacks: ", what);
  } else {
    MESSAGE("skipped, it lacks: ", what);
    skipped = true;
  }
}

std::size_t test_round() {
  const char* number = std::getenv("RLX_TEST_ROUND");
  return number != nullptr ? std::strtoul(number, nullptr, 10) : 0;
}

std::vector<std::uint64_t> seeds(std::size_t n) {
  const bool in_part = sanitized || std::getenv("RLX_TEST_ROUND") != nullptr;
  const std::size_t first = in_part && !all_cases() ? test_round() % 8 * n / 8 : 0;
  const std::size_t last = in_part && !all_cases() ? first + n / 8 + 1 : n;
  std::vector<std::uint64_t> out;
  for (std::size_t seed = first + 1; seed <= last && seed <= n; ++seed) out.push_back(seed);
  return out;
}

std::size_t one_in(std::size_t n) {
  if (all_cases()) return 1;
  return sanitized ? 2 * n : std::getenv("RLX_TEST_SHARE") != nullptr ? n : 1;
}

bool anything_skipped() { return skipped; }

}  // namespace rlx::test
