// Includes RLX_KERNEL_FILE once per instruction set this build has, each time inside namespace rlx::cpu::<isa> and with
// the compiler's target set for that section only. Include all standard headers before this file: an inline function of
// the standard library emitted with AVX-512 could be picked by the linker for every caller.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/math/erfinv_fit.h"

#if defined(__x86_64__)
// The header's own "undefined" vectors draw a false warning from GCC 12 where they are inlined.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <cpuid.h>
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// GCC notes that vectors wider than the baseline change the calling convention; all such calls are inlined here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(__x86_64__)

#define RLX_ISA sse4
#define RLX_ISA_ID 1
#define RLX_LANES 4
#define RLX_TARGET "sse4.2,popcnt"
#define RLX_GCC_TUNING ""
#include "rlx/backends/cpu/isa_section.h"

#define RLX_ISA avx2
#define RLX_ISA_ID 2
#define RLX_LANES 8
#define RLX_TARGET "avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ""
#include "rlx/backends/cpu/isa_section.h"

#define RLX_ISA avx512
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"

// The section before, and sums of four products of bytes. Tiles too, which no compiler uses of its own accord: who
// calls their intrinsics asks the machine first.
#if defined(RLX_WITH_BYTE_DOT)
#define RLX_BYTE_DOT
#define RLX_ISA avx512vnni
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,amx-tile,amx-int8,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"
#undef RLX_BYTE_DOT
#endif

// That section, and sums of two products of bf16, by one instruction or by tiles.
#if defined(RLX_WITH_BF16_DOT)
#define RLX_BF16_DOT
#define RLX_ISA avx512bf16
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"
#undef RLX_BF16_DOT
#endif

#else  // one instruction set: the one the compiler targets

#if defined(__aarch64__)
#define RLX_ISA neon
#define RLX_ISA_ID 4
#else
#define RLX_ISA generic
#define RLX_ISA_ID 0
#endif
#define RLX_LANES 4
#include "rlx/backends/cpu/isa_section.h"

#endif

#pragma GCC diagnostic pop
