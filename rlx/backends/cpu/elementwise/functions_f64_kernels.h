// Elementwise functions of doubles with vectors of each instruction set.
#pragma once

#include "rlx/backends/cpu/generic/generic_functions.h"
#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Block functions that take which function from `BlockArgs::fn`. A result may lie over an operand; any n.
struct WideKernels {
  BlockFn<double> unary;   // ActivationKind
  BlockFn<double> binary;  // BinaryKind
};
const WideKernels& wide_kernels(Isa isa);

/// Whether there is a vector form, and about how many ns an element of it takes.
bool wide_has(ActivationKind fn);
bool wide_has(BinaryKind fn);
double wide_cost(ActivationKind fn);
double wide_cost(BinaryKind fn);

}  // namespace rlx::cpu
