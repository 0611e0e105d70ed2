// Skipping or failing for what is missing.
#include "tests/support/needs.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/paths.h"

namespace rlx::test {
namespace {
bool skipped = false;
}

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

std::size_t one_in(std::size_t n) {
  const bool sanitized = repetitions(8) != 8;
  if (std::getenv("RLX_ALL_CASES") != nullptr) return 1;
  return sanitized ? 2 * n : std::getenv("RLX_TEST_SHARE") != nullptr ? n : 1;
}

bool anything_skipped() { return skipped; }

}  // namespace rlx::test
