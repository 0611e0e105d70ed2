// The names of ops in NumPy, JAX and ONNX; names that other ops cover; names that are left out.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx::cli {

/// The names of an op, or of an op with one of its enumerators ("exp", "reduce_sum"), in other libraries; empty if a
/// library has none.
struct OtherNames {
  std::string_view text;  // as rlx prints it
  std::string_view numpy, jax, onnx;
};
std::span<const OtherNames> other_names();
/// The line of `text`, or null.
const OtherNames* names_of(std::string_view text);
/// The names under which an op is printed: one for each enumerator where the enum is the printed name, else the op's
/// name.
std::vector<std::string> texts_of(const OpDef& def);

/// A documented name that is not an op.
struct DocumentedName {
  std::string_view name, instead;  // what to write instead, or why the op does not exist
};
/// Names that are views, derivatives or combinations of ops.
std::span<const DocumentedName> names_by_others();
/// Names without a documented meaning, and those that need other packages.
std::span<const DocumentedName> names_left_out();

}  // namespace rlx::cli
