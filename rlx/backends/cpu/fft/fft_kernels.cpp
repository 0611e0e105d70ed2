// FFT kernels, once per instruction set.
#include "rlx/backends/cpu/fft/fft_kernels.h"

#include <array>
#include <span>

#define RLX_KERNEL_FILE "rlx/backends/cpu/fft/fft.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const FftKernels& fft_kernels(Isa isa) { return RLX_FOR_ISA(isa, fft_table()); }

}  // namespace rlx::cpu
