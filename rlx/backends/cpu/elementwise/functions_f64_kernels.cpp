// f64 elementwise functions, once per instruction set.
#include "rlx/backends/cpu/elementwise/functions_f64_kernels.h"

#include <math.h>  // NOLINT: kernels call the global names

#include "rlx/elementwise/functions.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/elementwise/functions_f64.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const F64Kernels& f64_kernels(Isa isa) { return RLX_FOR_ISA(isa, f64_table()); }

double f64_cost(ActivationKind fn) {
  if (const elementwise::Function* f = elementwise::find_function(enum_name(fn))) return f->cost_f64;
  using A = ActivationKind;
  switch (fn) {
    case A::Relu:
    case A::Neg:
    case A::Abs:
    case A::Round:
    case A::Floor:
    case A::Ceil:
    case A::Trunc:
    case A::Sign:
    case A::LeakyRelu:
    case A::HardSigmoid:
    case A::HardSwish:
    case A::Softsign:
    case A::Square: return 0.3;
    case A::Sqrt:
    case A::Rsqrt:
    case A::Recip: return 0.8;
    case A::Asin:
    case A::Acos:
    case A::Atan:
    case A::Sin:
    case A::Cos: return 1.2;
    case A::Tan:
    case A::Cbrt:
    case A::Sinc: return 2.5;
    default: return 0;
  }
}
double f64_cost(BinaryKind fn) {
  using B = BinaryKind;
  switch (fn) {
    case B::Add:
    case B::Sub:
    case B::Mul:
    case B::Div:
    case B::Max:
    case B::Min: return 0.4;
    case B::Pow:
    case B::Atan2:
    case B::Hypot:
    case B::LogAddExp: return 3;
    default: return 0;
  }
}
bool f64_has(ActivationKind fn) { return f64_cost(fn) > 0; }
bool f64_has(BinaryKind fn) { return f64_cost(fn) > 0; }

}  // namespace rlx::cpu
