// docs/ops.md: the reference of ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/op_def.h"

namespace rlx::cli {

/// The page: every op with its formula, operands, attributes, dtypes, derivatives, devices and names in other
/// libraries; the elementwise functions; the functions that build ops; names that are not ops.
std::string ops_page();

// Parts that `rlx ops` prints too.
std::string_view level_name(Level level);
std::string_view precision_name(PrecisionCategory c);
/// The properties of an op, without its level and precision.
std::string facts_text(const OpDef& def);
std::string_view attr_type_text(AttrType t);
/// The names of an enumerator, with commas.
std::string enumerators_text(const AttrField& f);
/// How the results of each backend differ from the reference: "tpu: subnormal ...".
std::vector<std::string> differences_of(const OpDef& def);

}  // namespace rlx::cli
