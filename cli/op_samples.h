// The samples of ops that pages show and try: a table of texts (op_samples.txt), since the samples themselves are in
// rlx::testing, which the command does without.
#pragma once

#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/testing/op_samples.h"

namespace rlx::cli {

/// The samples of an op of this repository. What is differentiable is not kept.
std::vector<testing::Sample> shown_samples(const OpDef& def);

}  // namespace rlx::cli
