// What ops are called elsewhere, which documented names are others by another name, and which were left out.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx::cli {

/// The names of an op, or of an op with one of its enumerators ("exp", "reduce_sum"); empty where a library has none.
struct OtherNames {
  std::string_view text;  // as rlx prints it
  std::string_view numpy, jax, onnx;
};
std::span<const OtherNames> other_names();
/// The line of `text`, or null.
const OtherNames* names_of(std::string_view text);
/// The texts under which an op is printed: one for each enumerator that is part of it, else its name.
std::vector<std::string> texts_of(const OpDef& def);

/// A name of the specification that is no op of its own.
struct DocumentedName {
  std::string_view name, instead;  // what to write, or why there is none
};
/// Names that are views, derivatives or combinations of ops.
std::span<const DocumentedName> names_by_others();
/// Names without a meaning that anybody has written down.
std::span<const DocumentedName> names_left_out();

}  // namespace rlx::cli
