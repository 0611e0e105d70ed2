// Elementwise functions of doubles with vectors of each instruction set.
#pragma once

#include "rlx/backends/cpu/generic/generic_functions.h"
#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// Block functions that take which function from `BlockArgs::fn`. A result may lie over an operand; any n.
struct F64Kernels {
  BlockFn<double> unary;   // ActivationKind
  BlockFn<double> binary;  // BinaryKind
};
const F64Kernels& f64_kernels(Isa isa);

/// Whether there is a vector form, and about how many ns an element of it takes.
bool f64_has(ActivationKind fn);
bool f64_has(BinaryKind fn);
double f64_cost(ActivationKind fn);
double f64_cost(BinaryKind fn);

}  // namespace rlx::cpu
