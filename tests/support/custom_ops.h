// Ops registered like those of another project, so that the generic tests cover them too.
#pragma once

#include <string_view>
#include <vector>

#include "rlx/ir/custom_op.h"

namespace rlx::test {

/// A record that tests modify before they register it: the identity for any shape and dtype. It is a primitive of level
/// Mir and category Stated without derivatives, batching and cost. `name` is stored as a view.
OpDef plain_record(std::string_view name);

/// Registers once, and returns by name:
/// * test.scaled_tanh(x) = scale tanh(x), scale an f64 attribute: own rules, a cpu kernel for F32 and F64, no
///   decomposition. The reference rule and derivatives take any float.
/// * test.sum_and_difference(a, b) = a + b, a - b: everything from its decomposition, no kernel.
/// * test.bare(x) = x: shape and reference rule only.
std::vector<const OpDef*> custom_ops();

/// The ops that generic tests run: all built-in ops and custom_ops().
std::vector<const OpDef*> ops_under_test();

}  // namespace rlx::test
