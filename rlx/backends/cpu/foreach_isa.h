// Includes RLX_KERNEL_FILE once per instruction set this build has, each time inside namespace rlx::cpu::<isa> and with
// the compiler's target set for that section only. Include all standard headers before this file: an inline function of
// the standard library emitted with AVX-512 could be picked by the linker for every caller.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rlx/backends/cpu/kernels/kernels.h"

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
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.2,popcnt")
#endif
#include "rlx/backends/cpu/simd.h"
#include RLX_KERNEL_FILE
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef RLX_ISA
#undef RLX_ISA_ID
#undef RLX_LANES

#define RLX_ISA avx2
#define RLX_ISA_ID 2
#define RLX_LANES 8
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,popcnt")
#endif
#include "rlx/backends/cpu/simd.h"
#include RLX_KERNEL_FILE
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef RLX_ISA
#undef RLX_ISA_ID
#undef RLX_LANES

#define RLX_ISA avx512
#define RLX_ISA_ID 3
#define RLX_LANES 16
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt,prefer-vector-width=512")
#endif
#include "rlx/backends/cpu/simd.h"
#include RLX_KERNEL_FILE
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef RLX_ISA
#undef RLX_ISA_ID
#undef RLX_LANES

#else  // one instruction set: the one the compiler targets

#if defined(__aarch64__)
#define RLX_ISA neon
#define RLX_ISA_ID 4
#else
#define RLX_ISA generic
#define RLX_ISA_ID 0
#endif
#define RLX_LANES 4
#include "rlx/backends/cpu/simd.h"
#include RLX_KERNEL_FILE
#undef RLX_ISA
#undef RLX_ISA_ID
#undef RLX_LANES

#endif

#pragma GCC diagnostic pop
