// The check for NaN on the adversarial test device, where no result is there before it was waited for.
#include <doctest/doctest.h>

#include "tests/adversarial/adversarial_device.h"
#include "tests/support/nan_runs.h"

namespace rlx {

TEST_CASE("adversarial: the check for NaN names op, element, line and iteration") {
  for (const test::AdversarialOptions& mode : test::adversarial_modes()) {
    const test::AdversarialScope scope(mode);
    CHECK(test::check_nan_runs(Session(test::AdversarialScope::kDevice), false) > 12);
  }
}

}  // namespace rlx
