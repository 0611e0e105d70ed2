// Elementwise functions computed in the dtype of their operands: integers of every width, comparisons, selects and
// casts.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// y[i] = f(a[i], b[i], c[i]) for i < n. Unused operands may be null. y must not overlap the operands.
using TypedFn = void (*)(const void* a, const void* b, const void* c, void* y, std::int64_t n);

/// The function for elements of dtype `t`; null where there is none.
struct TypedKernels {
  TypedFn (*unary)(ActivationKind fn, DType t);
  TypedFn (*binary)(BinaryKind fn, DType t);
  TypedFn (*compare)(CompareKind fn, DType t);    // Eq, Ne, Lt, Le: results are bytes, 0 or 1
  TypedFn (*magnitude)(CompareKind fn, DType t);  // Lt: |a| < infinity; Eq: |a| == infinity; for floats
  TypedFn (*choose)(int bytes);                   // select: a is Bool; b and c have elements of `bytes` bytes
  TypedFn (*cast)(DType from, DType to);
};
const TypedKernels& typed_kernels(Isa isa);

}  // namespace rlx::cpu
