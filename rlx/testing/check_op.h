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
  std::size_t samples = 0;            // number of samples
  std::size_t checks = 0;             // number of comparisons
  std::vector<std::string> problems;  // "sample 'rows': vmap over x0: result 0 is 0.5 apart"
};

struct OpCheckOptions {
  DeviceId device = {};  // where compiled graphs run
  /// The largest allowed difference of a float result, relative to the larger of 1 and the expected value. 0 means 64
  /// units in the last place of its dtype.
  double tolerance = 0;
};

/// Runs every sample of the op, and compares:
/// * the shapes of the reference rule's results with the inferred ones;
/// * decompositions of both policies, and a compiled graph on the device, with the reference rule;
/// * jvp and vjp with central differences of the reference rule, and with each other, where the sample is
///   differentiable: in F64 where the op takes it;
/// * vmap over each operand and over all of them with the slices one by one.
/// Checks of parts that the record marks as `none` are skipped. An exception is recorded as a problem of its sample.
OpCheck check_op(const OpDef& def, const OpCheckOptions& options = {});
/// The same for the op registered as `name`, or for a built-in op. NotFound for an unknown name.
OpCheck check_op(std::string_view name, const OpCheckOptions& options = {});

}  // namespace rlx::testing
