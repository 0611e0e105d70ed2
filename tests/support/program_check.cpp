// Compares random programs with evaluate_bounded.
#include "tests/support/program_check.h"

#include "tests/support/random_checks.h"

namespace rlx::test {

std::string check_program(const Session& session, std::uint64_t seed, Subnormals subnormals) {
  ProgramOptions options;
  options.specials = seed % 4 == 3;
  return failure_on(session, random_program(seed, options), subnormals);
}

}  // namespace rlx::test
