// Elementwise functions in the dtype itself: integers of every width, comparisons, choices and casts.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/op_kind.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

/// y[i] = f(a[i], b[i], c[i]) for i < n; what a function has no use for may be null. y lies apart from the operands.
using TypedFn = void (*)(const void* a, const void* b, const void* c, void* y, std::int64_t n);

/// A function of elements of dtype `t`, null where there is none.
struct TypedKernels {
  TypedFn (*unary)(ActivationKind fn, DType t);
  TypedFn (*binary)(BinaryKind fn, DType t);
  TypedFn (*compare)(CompareKind fn, DType t);    // Eq, Ne, Lt, Le: results are bytes, 0 or 1
  TypedFn (*magnitude)(CompareKind fn, DType t);  // |a| beside infinity, of floats: Lt and Eq
  TypedFn (*choose)(int bytes);                   // a is bytes, b and c elements of so many
  TypedFn (*cast)(DType from, DType to);
};
const TypedKernels& typed_kernels(Isa isa);

}  // namespace rlx::cpu
