// Which instruction sets this processor runs, from its feature bits. It includes nothing of rlx, because the build
// configuration compiles it too (cmake/native_isa.cpp). So RLX_ISA=native and dispatch use the same checks.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace rlx::cpu {

/// F16C has its own CPUID bit, which clang's feature test does not know. The bit is read once: in a virtual machine
/// CPUID takes microseconds, and kernels are looked up for every compiled matmul.
inline bool machine_has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29)) != 0;
  }();
  return has;
}
inline bool machine_has_sse4() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}
inline bool machine_has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 && machine_has_f16c();
}
inline bool machine_has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 && machine_has_avx2();
}
/// AVX-512 with VNNI (int8 dot products of four).
inline bool machine_has_avx512vnni() { return machine_has_avx512() && __builtin_cpu_supports("avx512vnni") != 0; }
/// AVX-512 with BF16 (bf16 dot products of two).
inline bool machine_has_avx512bf16() { return machine_has_avx512() && __builtin_cpu_supports("avx512bf16") != 0; }

}  // namespace rlx::cpu
#endif
