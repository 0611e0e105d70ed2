// docs/ops.md: the reference of ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx::cli {

/// The page: every op with its formula, operands, attributes, dtypes, derivatives, devices and the names it has
/// elsewhere; the elementwise functions; functions made of ops; names that are no ops.
std::string ops_page();

// Parts that `rlx ops` prints too.
std::string_view level_name(Level level);
std::string_view precision_name(PrecisionCategory c);
/// The facts of a record, but for its level and precision.
std::string facts_text(const OpDef& def);
std::string_view attr_type_text(AttrType t);
/// The names of an enumerator, with commas.
std::string enumerators_text(const AttrField& f);
/// "tpu: subnormal ...", for each backend and each of its differences about the op.
std::vector<std::string> differences_of(const OpDef& def);

}  // namespace rlx::cli
