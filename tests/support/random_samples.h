// Values of op samples, and samples in other sizes and dtypes: material of generic tests and of random programs.
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

/// The sample in other sizes: one extent at a time made as long as `elements` elements of work allow, odd where the op
/// takes any extent. At most three, none where nothing can grow.
std::vector<Sample> large_samples(const Sample& sample, std::int64_t elements = 6000);
/// The sample with its F32 operands (or its I32 ones, where they are data; without operands, the dtype that it states)
/// in each other dtype that the op takes.
std::vector<Sample> dtype_samples(const Sample& sample);
/// The sample with one of its extents drawn anew, where its op takes that and it stays about as small as `elements`
/// say; else as it is.
Sample resized_sample(const Sample& sample, Dice& dice, std::int64_t elements);

}  // namespace rlx::test
