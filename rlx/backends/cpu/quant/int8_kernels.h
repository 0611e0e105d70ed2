// int8 GEMM: signed or unsigned bytes with i32 accumulators. Sums are exact modulo 2^32.
//
// A is packed once; each chunk packs some panels of B at a time for itself. VNNI multiplies unsigned by signed bytes:
// packed A then has unsigned values and packed B signed ones (shifted by 128 where needed), and corrections remove the
// effect of the shift from the sums. AMX tiles accept either sign, without a shift. Elsewhere packed values are i16.
// Sums are exact, so all ways give the same bits.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// The record of C = A * B with I8 or U8 operands and I32 C.
/// Errors: Unsupported where this machine lacks the instructions.
const MatmulKernel& byte_kernel(Isa isa, Int8Matmul kind);

}  // namespace rlx::cpu
