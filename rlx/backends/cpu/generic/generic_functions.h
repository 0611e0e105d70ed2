// Blocks of elementwise functions in wide types: a loop compiled around each row of the function table.
#pragma once

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::cpu {

/// What a block function may need besides elements.
struct BlockArgs {
  int bits = 0;  // width of the operands' dtype
  FunctionParams params;
  int fn = 0;  // of kernels that choose for themselves: an ActivationKind or a BinaryKind
};

/// out[i] = f(a[i], b[i], c[i]) for i < n.
template <class A>
using BlockFn = void (*)(const A* a, const A* b, const A* c, A* out, int n, const BlockArgs& args);

/// The function of `op` on values of dtype `t` held as A (double, int64, uint64 or complex<double>); null when it has
/// none.
template <class A>
BlockFn<A> activation_block(const ops::Activation& op, DType t);

/// The same of a function of two operands.
template <class A>
BlockFn<A> binary_block(BinaryKind fn);

}  // namespace rlx::cpu
