// Values of op samples, and samples with other sizes and dtypes, for generic tests and for random programs.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/testing/drawn_values.h"
#include "tests/support/random_program.h"

namespace rlx::test {

using testing::draw;
using testing::draw_operands;

/// All samples of an op.
std::vector<Sample> samples_of(const OpDef& def);

/// The sample with other sizes: one extent at a time grows as far as `elements` elements of work allow, to an odd
/// number where the op takes any extent. At most three; none where nothing can grow.
std::vector<Sample> large_samples(const Sample& sample, std::int64_t elements = 6000);
/// The sample with its F32 operands in each other dtype that the op takes. The same for I32 operands that are data, and
/// for the dtype attribute of an op without operands.
std::vector<Sample> dtype_samples(const Sample& sample);
/// The sample with one of its extents redrawn, where its op takes that and its size stays near `elements`; else
/// unchanged.
Sample resized_sample(const Sample& sample, Dice& dice, std::int64_t elements);

}  // namespace rlx::test
