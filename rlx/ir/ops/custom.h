// The op struct of custom ops, which other projects register.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// An op of another project. `name` selects the record passed to `register_op` (rlx/ir/custom_op.h), and that record
/// interprets `attrs`. Any number of operands and results.
struct Custom { RLX_OP(Custom); std::string name{}; std::vector<std::byte> attrs{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
