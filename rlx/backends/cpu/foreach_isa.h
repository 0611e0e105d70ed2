// Includes RLX_KERNEL_FILE once per instruction set of this build, each time in namespace rlx::cpu::<isa> and with the
// compiler's target set for that section only. Include all standard headers before this file: the linker could pick an
// inline function of the standard library that was compiled with AVX-512 for every caller.
//
// RLX_ISA of the build (cmake/isa.cmake) may exclude instruction sets with RLX_WITHOUT_<SET>. RLX_FOR_ISA selects among
// the sets that are built. RLX_HAS_BYTE_DOT and RLX_HAS_BF16_DOT tell whether the VNNI and BF16 sections are built.
// RLX_SMALL_BASELINE: the machine of the build has a better set, so GCC optimises the baseline for size, which takes a
// quarter off the time of a file; without fused multiply-adds the results are the same. Only this file and `isa_built`
// (kernels.cpp) read the definitions.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rlx/backends/cpu/intrinsics.h"
#include "rlx/backends/cpu/kernels.h"

// GCC notes that vectors wider than the baseline change the calling convention. All such calls are inlined here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
// Vectors as template arguments lose may_alias, which only loads and stores need.
#pragma GCC diagnostic ignored "-Wignored-attributes"

#if defined(__x86_64__)

#define RLX_ISA sse4
#define RLX_ISA_ID 1
#define RLX_LANES 4
#define RLX_TARGET "sse4.2,popcnt"
#define RLX_GCC_TUNING ""
#if defined(RLX_SMALL_BASELINE)
#define RLX_GCC_LEVEL "Os"
#endif
#include "rlx/backends/cpu/isa_section.h"

#if !defined(RLX_WITHOUT_AVX2)
#define RLX_ISA avx2
#define RLX_ISA_ID 2
#define RLX_LANES 8
#define RLX_TARGET "avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ""
#include "rlx/backends/cpu/isa_section.h"
#endif

#if !defined(RLX_WITHOUT_AVX512)
#define RLX_ISA avx512
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"
#endif

// AVX-512 with VNNI (int8 dot products of four). The target includes AMX int8, which no compiler emits by itself:
// callers of its intrinsics must ask `has_tiles` first.
#if defined(RLX_WITH_BYTE_DOT) && !defined(RLX_WITHOUT_AVX512VNNI)
#define RLX_HAS_BYTE_DOT
#define RLX_BYTE_DOT
#define RLX_ISA avx512vnni
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,amx-tile,amx-int8,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"
#undef RLX_BYTE_DOT
#endif

// AVX-512 with BF16 (bf16 dot products of two), and AMX bf16.
#if defined(RLX_WITH_BF16_DOT) && !defined(RLX_WITHOUT_AVX512BF16)
#define RLX_HAS_BF16_DOT
#define RLX_BF16_DOT
#define RLX_ISA avx512bf16
#define RLX_ISA_ID 3
#define RLX_LANES 16
#define RLX_TARGET "avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,avx2,fma,f16c,bmi,bmi2,popcnt"
#define RLX_GCC_TUNING ",prefer-vector-width=512"
#include "rlx/backends/cpu/isa_section.h"
#undef RLX_BF16_DOT
#endif

#else  // one instruction set: the compiler's target

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

// RLX_FOR_ISA(isa, f(x)) is the expression rlx::cpu::<isa>::f(x). The caller must have checked `isa_supported`.
#if defined(__x86_64__)
#if defined(RLX_WITHOUT_AVX512)
#define RLX_IF_AVX512(isa, ...)
#else
#define RLX_IF_AVX512(isa, ...) (isa) == Isa::Avx512 ? avx512::__VA_ARGS__:
#endif
#if defined(RLX_WITHOUT_AVX2)
#define RLX_IF_AVX2(isa, ...)
#else
#define RLX_IF_AVX2(isa, ...) (isa) == Isa::Avx2 ? avx2::__VA_ARGS__:
#endif
#define RLX_FOR_ISA(isa, ...) \
  (static_cast<void>(isa), RLX_IF_AVX512(isa, __VA_ARGS__) RLX_IF_AVX2(isa, __VA_ARGS__) sse4::__VA_ARGS__)
#elif defined(__aarch64__)
#define RLX_FOR_ISA(isa, ...) (static_cast<void>(isa), neon::__VA_ARGS__)
#else
#define RLX_FOR_ISA(isa, ...) (static_cast<void>(isa), generic::__VA_ARGS__)
#endif
