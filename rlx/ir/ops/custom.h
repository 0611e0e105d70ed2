// The op struct of ops of other projects.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rlx/ir/op_kind.h"

// clang-format off
namespace rlx {

namespace ops {

/// An op of another project: `name` picks the record given to `register_op` (ir/custom_op.h), which knows what `attrs`
/// means. Any number of operands and results.
struct Custom { RLX_OP(Custom); std::string name{}; std::vector<std::byte> attrs{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
