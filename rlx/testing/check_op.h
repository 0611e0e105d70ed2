// The generic checks of an op on its samples, for projects with custom ops.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/device/device.h"
#include "rlx/ir/op_def.h"

namespace rlx::testing {

struct OpCheck {
  std::size_t samples = 0;            // how many the op has
  std::size_t checks = 0;             // comparisons made
  std::vector<std::string> problems;  // "sample 'rows': vmap over x0: result 0 is 0.5 apart"
};

struct OpCheckOptions {
  DeviceId device = {};  // where compiled graphs run
  /// The largest difference of a float result, as a part of the larger of 1 and the expected value; 0: 64 units of the
  /// last place of its dtype.
  double tolerance = 0;
};

/// Runs every sample of the op, and compares:
/// * the shapes of the reference rule's results with the inferred ones;
/// * decompositions of both policies, and a compiled graph on the device, with the reference rule;
/// * jvp and vjp with central differences of the reference rule, and with each other, where the sample is
///   differentiable: in F64 where the op takes it;
/// * vmap over each operand and over all of them with the slices one by one.
/// What the record says it lacks (`none`) is left out. An exception is a problem of its sample.
OpCheck check_op(const OpDef& def, const OpCheckOptions& options = {});
/// The same of the op registered as `name`, or of one of this repository. NotFound for an unknown name.
OpCheck check_op(std::string_view name, const OpCheckOptions& options = {});

}  // namespace rlx::testing
