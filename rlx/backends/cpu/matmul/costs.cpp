// Constants per processor family.
#include "rlx/backends/cpu/matmul/costs.h"

#include "rlx/backends/cpu/entries.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rlx::cpu {
namespace {

MatmulCosts costs_of_machine() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  // Intel with full 512-bit units (detected by AVX512-FP16): a panel comes from an L3 of some 30 GB/s per core, so the
  // next panel must be prefetched during all of this one. 92 % of the FMA peak instead of 85 (Xeon of model 207). A
  // weight that is read once: 19 GB/s with 1 to 3 KB ahead, 16 with 6 KB (Xeon of model 167).
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 23)) != 0) return {false, 16, 16, 3072};
  // Zen 5 (detected by AVX-VNNI) consumes a panel twice as fast as Zen 4. Prefetching in the same panel measured 1.15
  // to 1.4x over no prefetch; prefetching the next panel would exceed the miss buffers.
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0) return {true, 4, 0};
#endif
  return {};
}

}  // namespace

const MatmulCosts& matmul_costs() {
  static const MatmulCosts kCosts = costs_of_machine();
  return kCosts;
}

MatmulEstimate matmul_estimate(Isa isa, MatmulWork work, bool tiles) {
  const double f32 = gemm_flops_per_ns(isa);
  switch (work) {
    case MatmulWork::PackedF32: return {f32, 4 / 50.0};
    case MatmulWork::PackedHalf: return {f32, 2 / 50.0, 0.1};
    case MatmulWork::PackedI8: return {f32, 1 / 50.0};
    case MatmulWork::RuntimeF32: return {f32 / 1.3, 1.3 * 4 / 50, 0.3};
    case MatmulWork::RuntimeHalf: return {f32, 0.3, 0.6};
    case MatmulWork::RuntimeF64: return {f32 / 2, 0.3, 1.2};
    case MatmulWork::RuntimeI8: return {4 * f32, 0, 0.05, 0.1};
    case MatmulWork::RuntimeI32: return {f32 / 2, 0.3, 0.6};
    case MatmulWork::RuntimeI64: return {f32 / 8, 0.3, 1.2};
    case MatmulWork::RuntimeC64: return {f32 / 4, 0.3, 1.2};
    case MatmulWork::RuntimeC128: return {f32 / 8, 0.3, 2.4};
    case MatmulWork::PairsRuntime: return {tiles ? 1000.0 : 300.0, 0.3, 0.3};
    case MatmulWork::PairsExact: return {tiles ? 1000.0 : 300.0, 1 / 30.0, 0.3};
    case MatmulWork::PairsRounded: return {tiles ? 1500.0 : 300.0, 1 / 60.0, 0.1};
    case MatmulWork::BlocksInt8: return {4 * f32, 1 / 60.0, 0.15};
    case MatmulWork::BlocksF32: return {f32, 1 / 60.0};
  }
  return {f32};
}

}  // namespace rlx::cpu
