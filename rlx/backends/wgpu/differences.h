// Where WGSL results differ from the reference rules (device/difference.h). Kernels handle other cases that WGSL leaves
// open (NaN, conversions, remainders, functions) by bit operations.
#pragma once

#include "rlx/device/difference.h"

namespace rlx::wgpu {

inline constexpr OpKind kFlushing[] = {OpKind::Activation, OpKind::Binary,  OpKind::Reduce,
                                       OpKind::Cumulative, OpKind::Scatter, OpKind::DotGeneral};
inline constexpr OpKind kReordered[] = {OpKind::Reduce, OpKind::Cumulative, OpKind::DotGeneral};

inline constexpr Difference kDifferences[] = {
    {Difference::What::Subnormals, kFlushing,
     "subnormal operands may count as 0 and subnormal results may be 0, as WGSL allows: true of Chromium's "
     "rasteriser, not of Mesa's",
     true},
    {Difference::What::OrderOfTerms, kReordered,
     "terms are combined in another order, so a partial sum or product may overflow where the sequential order does "
     "not"},
};

}  // namespace rlx::wgpu
