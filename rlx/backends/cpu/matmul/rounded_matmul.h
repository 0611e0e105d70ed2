// Matmuls that first round the activation x into memory shared by all threads: with block-quantized and bf16 weights.
#pragma once

#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/matmul/epilogue.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"

namespace rlx::cpu {

/// InterleavedGemm with InterleavedKernels, or Bf16Gemm with Bf16Kernels.
template <class Gemm, class Kernels>
struct RoundedMatmul {
  Gemm gemm;
  InterleavedPlan plan;
  const Kernels* kernels = nullptr;
  const Common* common = nullptr;

  Gemm placed() const {
    Gemm g = gemm;
    g.quants = reinterpret_cast<std::int32_t*>(common->base);
    return g;
  }
  static void quantize(const RoundedMatmul& p, std::int64_t chunk) { p.kernels->quantize(p.placed(), p.plan, chunk); }
  static void run(const RoundedMatmul& p, std::int64_t chunk) { p.kernels->run(p.placed(), p.plan, chunk); }
};

/// Sets extents, operands and epilogue from the node. The kernels are set already.
template <class Gemm, class Kernels>
void point_rounded(LowerContext& c, RoundedMatmul<Gemm, Kernels>& p) {
  const View x = c.in(0), y = c.out();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a matmul with a packed weight does not fold to a matrix");
  p.gemm.m = rows->rows, p.gemm.n = y.dim(-1), p.gemm.k = x.dim(-1);
  p.gemm.lda = rows->ld, p.gemm.ldc = p.gemm.n;
  c.point(p.gemm.a, x);
  c.point(p.gemm.panels, c.in(1));
  c.point(p.gemm.c, y);
  point_epilogue(c, *match_epilogue(c.graph(), c.id()), p.gemm.n, p.gemm.epilogue);
}

/// Adds the tasks: rounding of x, and the matmul.
template <class Gemm, class Kernels>
void add_rounded(LowerContext& c, RoundedMatmul<Gemm, Kernels>& p, const MatmulEstimate& estimate) {
  using Product = RoundedMatmul<Gemm, Kernels>;
  p.plan = p.kernels->plan(p.gemm, c.threads());
  p.common = c.common(static_cast<std::size_t>(p.plan.packed_a_bytes));
  const auto m = static_cast<double>(p.gemm.m), n = static_cast<double>(p.gemm.n), k = static_cast<double>(p.gemm.k);
  c.step<&Product::quantize>(p, p.plan.quantize_chunks, estimate.a_ns * m * k);
  c.step<&Product::run>(p, p.plan.chunks, estimate.run_ns(m, n, k));
}

}  // namespace rlx::cpu
