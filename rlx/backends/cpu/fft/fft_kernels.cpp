// Kernels of Fourier transforms, for each instruction set.
#include "rlx/backends/cpu/fft/fft_kernels.h"

#include <array>
#include <span>

#define RLX_KERNEL_FILE "rlx/backends/cpu/fft/fft.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const FftKernels& fft_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::Avx512 ? avx512::fft_table() : isa == Isa::Avx2 ? avx2::fft_table() : sse4::fft_table();
#elif defined(__aarch64__)
  return neon::fft_table();
#else
  return generic::fft_table();
#endif
}

}  // namespace rlx::cpu
