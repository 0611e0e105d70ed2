// Block functions in the generic compute types: one compiled loop per row of the function table.
#pragma once

#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"

namespace rlx::cpu {

/// Parameters of a block function besides its elements.
struct BlockArgs {
  int bits = 0;  // width of the operands' dtype
  FunctionParams params;
  int fn = 0;  // for kernels that select the function themselves: an ActivationKind or a BinaryKind
};

/// out[i] = f(a[i], b[i], c[i]) for i < n.
template <class A>
using BlockFn = void (*)(const A* a, const A* b, const A* c, A* out, int n, const BlockArgs& args);

/// The block function of `op` for dtype `t`, computed in A (double, int64, uint64 or complex<double>); null when there
/// is none.
template <class A>
BlockFn<A> activation_block(const ops::Activation& op, DType t);

/// The same for a function of two operands.
template <class A>
BlockFn<A> binary_block(BinaryKind fn);

}  // namespace rlx::cpu
