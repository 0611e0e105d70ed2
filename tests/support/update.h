// Whether golden files are to be rewritten.
#pragma once

namespace rlx::test {

/// True when the program was started with `--update`: golden tests write what they got instead of comparing.
bool update_golden();

}  // namespace rlx::test
