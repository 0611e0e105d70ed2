// The main function of every test program.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <cstring>

#include <doctest/doctest.h>

#include "tests/support/needs.h"
#include "tests/support/update.h"

namespace rlx::test {
namespace {
bool update_wanted = false;
}
bool update_golden() { return update_wanted; }
}  // namespace rlx::test

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--update") == 0) rlx::test::update_wanted = true;
  ::setenv("HF_HUB_OFFLINE", "1", 1);  // no test asks a real hub, whatever it names
  doctest::Context context(argc, argv);
  const int status = context.run();
  return status == 0 && rlx::test::anything_skipped() ? rlx::test::kSkippedStatus : status;
}
