// Whether golden files are rewritten.
#pragma once

namespace rlx::test {

/// True when the program was started with `--update`: golden tests then write their results instead of comparing.
bool update_golden();

}  // namespace rlx::test
