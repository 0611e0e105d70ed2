// The samples of ops that docs and `rlx ops` show and run. They are read from a table of texts (op_samples.txt),
// because the samples themselves are in rlx::testing, which the command does not link.
#pragma once

#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/testing/op_samples.h"

namespace rlx::cli {

/// The samples of an op of this repository. The table does not say which operands are differentiable.
std::vector<testing::Sample> shown_samples(const OpDef& def);

}  // namespace rlx::cli
