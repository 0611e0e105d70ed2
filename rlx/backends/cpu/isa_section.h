// One section of foreach_isa.h: RLX_KERNEL_FILE in namespace rlx::cpu::RLX_ISA, compiled for RLX_TARGET when that is
// defined. It undefines the macros that describe the section. No include guard.
#if defined(RLX_TARGET)
#define RLX_TARGET_PRAGMA_TEXT(text) _Pragma(#text)
#define RLX_TARGET_PRAGMA(text) RLX_TARGET_PRAGMA_TEXT(text)
#if defined(__clang__)
RLX_TARGET_PRAGMA(clang attribute push(__attribute__((target(RLX_TARGET))), apply_to = function))
#else
#pragma GCC push_options
RLX_TARGET_PRAGMA(GCC target(RLX_TARGET RLX_GCC_TUNING))
#if defined(RLX_GCC_LEVEL)
RLX_TARGET_PRAGMA(GCC optimize(RLX_GCC_LEVEL))
#endif
#endif
#endif

#define RLX_LANE_SPACE rlx::cpu::RLX_ISA
#include "rlx/backends/cpu/simd.h"
#include RLX_KERNEL_FILE

#if defined(RLX_TARGET)
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef RLX_TARGET_PRAGMA
#undef RLX_TARGET_PRAGMA_TEXT
#undef RLX_TARGET
#undef RLX_GCC_TUNING
#undef RLX_GCC_LEVEL
#endif
#undef RLX_LANE_SPACE
#undef RLX_ISA
#undef RLX_ISA_ID
#undef RLX_LANES
