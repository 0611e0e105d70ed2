// Tests that need something a machine may lack: the one place that decides between skipping and failing.
#pragma once

#include <string>

namespace rlx::test {

/// Folder of the all-MiniLM-L6-v2 model (RLX_MODEL_DIR, else .models/ of the repository), or "" when it is not there.
std::string model_dir();

/// Call before leaving a test early because `what` is missing. Prints that, and fails the test when
/// RLX_REQUIRE_ALL_TESTS is set, as scripts/test.sh does.
void skip(const std::string& what);

}  // namespace rlx::test
