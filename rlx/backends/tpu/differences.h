// Where XLA's results differ from the reference rules (device/difference.h), for the functions that XLA computes
// itself. functions.cpp replaces functions whose errors are too large.
#pragma once

#include "rlx/device/difference.h"

namespace rlx::tpu {

inline constexpr OpKind kFlushing[] = {OpKind::Activation, OpKind::Binary,    OpKind::Compare,    OpKind::Cast,
                                       OpKind::Reduce,     OpKind::ArgReduce, OpKind::Cumulative, OpKind::Scatter,
                                       OpKind::TopK,       OpKind::Sort,      OpKind::DotGeneral};
inline constexpr OpKind kActivation[] = {OpKind::Activation}, kBinary[] = {OpKind::Binary};
inline constexpr OpKind kReordered[] = {OpKind::Reduce, OpKind::Cumulative, OpKind::DotGeneral};

inline constexpr Difference kDifferences[] = {
    {Difference::What::Subnormals, kFlushing,
     "subnormal operands count as 0, also in comparisons and sorts, and subnormal results are 0 (XLA on the CPU)"},
    {Difference::What::PowOfSubnormal, kBinary, "`pow` of a subnormal base is off by up to a half (XLA on the CPU)"},
    {Difference::What::ReluOfZero, kActivation, "`relu(-0)` is 0: its StableHLO is maximum, which compilers fuse"},
    {Difference::What::OrderOfTerms, kReordered,
     "terms are combined in another order, so a partial sum or product may overflow where the sequential order does "
     "not"},
};

}  // namespace rlx::tpu
