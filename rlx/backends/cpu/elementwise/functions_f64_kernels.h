// Vectorised f64 elementwise functions, once per instruction set.
#pragma once

#include "rlx/backends/cpu/generic/generic_functions.h"
#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Block functions; `BlockArgs::fn` selects the function. A result may alias an operand. n is arbitrary.
struct F64Kernels {
  BlockFn<double> unary;   // ActivationKind
  BlockFn<double> binary;  // BinaryKind
};
const F64Kernels& f64_kernels(Isa isa);

/// Whether a vectorised function exists, and its approximate cost per element in ns.
bool f64_has(ActivationKind fn);
bool f64_has(BinaryKind fn);
double f64_cost(ActivationKind fn);
double f64_cost(BinaryKind fn);

}  // namespace rlx::cpu
