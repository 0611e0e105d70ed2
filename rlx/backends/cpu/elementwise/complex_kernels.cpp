// C64 kernels, once per instruction set.
#include "rlx/backends/cpu/elementwise/complex_kernels.h"

#include <math.h>  // NOLINT: kernels call the global names

#include <cmath>
#include <complex>

namespace rlx::cpu {
namespace {

// Products and quotients with infinite or NaN parts, and division by 0.
void exact_complex_result(bool divides, const float* a, const float* b, float* y) {
  const std::complex<double> p(static_cast<double>(a[0]), static_cast<double>(a[1])),
      q(static_cast<double>(b[0]), static_cast<double>(b[1]));
  const std::complex<double> v = divides ? p / q : p * q;
  y[0] = static_cast<float>(v.real());
  y[1] = static_cast<float>(v.imag());
}

// The same for exponentials that overflow or have non-finite parts. Others are unchanged.
void exact_complex_exp(const float* x, float* y) {
  if (x[0] < 700 && std::isfinite(x[1])) return;
  const std::complex<double> v = std::exp(std::complex<double>(static_cast<double>(x[0]), static_cast<double>(x[1])));
  y[0] = static_cast<float>(v.real());
  y[1] = static_cast<float>(v.imag());
}

}  // namespace
}  // namespace rlx::cpu

#define RLX_KERNEL_FILE "rlx/backends/cpu/elementwise/complex.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const ComplexKernels& complex_kernels(Isa isa) { return RLX_FOR_ISA(isa, complex_table()); }

}  // namespace rlx::cpu
