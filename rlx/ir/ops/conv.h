// Op structs of convolution and windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

namespace ops {

/// Cross-correlation of x with filters w. Inputs: x, w.
struct Conv { RLX_OP(Conv); std::vector<std::int64_t> strides{}, low{}, high{}, lhs_dilation{}, rhs_dilation{}; std::int64_t groups = 1, batch_groups = 1; std::vector<std::int64_t> lhs_spec{}, rhs_spec{}, out_spec{}; };
/// A reduction of every window of x.
struct ReduceWindow { RLX_OP(ReduceWindow); ReduceKind fn = ReduceKind::Sum; std::vector<std::int64_t> window{}, strides{}, low{}, high{}, base_dilation{}, window_dilation{}; };
/// source put where the window's selected element of x lies, added. Inputs: x, source.
struct SelectAndScatter { RLX_OP(SelectAndScatter); ReduceKind select = ReduceKind::Max; std::vector<std::int64_t> window{}, strides{}, low{}, high{}; };
/// x resampled along `axes`.
struct Interpolate { RLX_OP(Interpolate); std::vector<std::int64_t> axes{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
