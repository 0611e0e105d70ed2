// The compiler's intrinsics. They take a second to parse, half of the compile time of a small kernel file. The
// precompiled header of the kernels begins with this file (cmake/module.cmake).
#pragma once

#if defined(__x86_64__)
// The header's own "undefined" vectors cause a false warning of GCC 12 where they are inlined.
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
