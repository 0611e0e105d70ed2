// Kernels of wide products, once per instruction set.
#include "rlx/backends/cpu/kernels/wide_gemm.h"

#include <algorithm>
#include <type_traits>

#include "rlx/backends/cpu/kernels/families.h"

namespace rlx::cpu {

namespace {

std::int64_t wide_parts(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

}  // namespace

// The plan for panels of `mr` rows and `nr` columns of elements of `bytes`.
WidePlan plan_wide(const WideGemm& g, int threads, std::int64_t mr, std::int64_t nr, std::int64_t bytes) {
  WidePlan p;
  const std::int64_t m = g.a_row.extent, n = g.b_col.extent, k = g.a_depth.extent, batches = g.a_batch.extent;
  const std::int64_t one = 1;
  p.a_panels = wide_parts(m, mr);
  p.b_panels = wide_parts(n, nr);
  p.a_bytes = static_cast<std::size_t>(batches * p.a_panels * mr * k * bytes + 64);
  p.b_bytes = static_cast<std::size_t>(batches * p.b_panels * nr * k * bytes + 64);
  const bool finest = threads == kFinestCut;
  p.a_per_chunk = finest ? 1 : std::max(one, 32768 / std::max(one, mr * k));
  p.b_per_chunk = finest ? 1 : std::max(one, 32768 / std::max(one, nr * k));
  p.a_chunks = wide_parts(batches * p.a_panels, p.a_per_chunk);
  p.b_chunks = wide_parts(batches * p.b_panels, p.b_per_chunk);
  // A block of rows of A and the sums of a chunk stay in the second cache while panels of B pass by; smaller ones where
  // there are threads to share them out to.
  p.row_panels = finest ? 1 : std::min(p.a_panels, std::max(one, 256 / mr));
  p.col_panels = finest ? 1 : std::min(p.b_panels, std::max(one, 3840 / (nr * bytes)));
  const auto chunks = [&] {
    return batches * wide_parts(p.a_panels, p.row_panels) * wide_parts(p.b_panels, p.col_panels);
  };
  while (threads > 1 && chunks() < 4 * threads && p.row_panels * p.col_panels > 1)
    (p.row_panels * mr > p.col_panels * nr ? p.row_panels : p.col_panels) =
        wide_parts(p.row_panels * mr > p.col_panels * nr ? p.row_panels : p.col_panels, 2);
  p.row_blocks = wide_parts(p.a_panels, p.row_panels);
  p.col_blocks = wide_parts(p.b_panels, p.col_panels);
  p.chunks = batches * p.row_blocks * p.col_blocks;
  p.scratch_bytes = static_cast<std::size_t>(p.row_panels * mr * p.col_panels * nr * bytes + 4096);
  return p;
}

}  // namespace rlx::cpu

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/wide_gemm.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const WideKernels& wide_kernels(Isa isa, bool in_double) {
  const Isa checked = kernels_for(isa).isa;
#if defined(__x86_64__)
  switch (checked) {
    case Isa::Avx512: return in_double ? avx512::wide_table<double>() : avx512::wide_table<float>();
    case Isa::Avx2: return in_double ? avx2::wide_table<double>() : avx2::wide_table<float>();
    default: return in_double ? sse4::wide_table<double>() : sse4::wide_table<float>();
  }
#elif defined(__aarch64__)
  static_cast<void>(checked);
  return in_double ? neon::wide_table<double>() : neon::wide_table<float>();
#else
  static_cast<void>(checked);
  return in_double ? generic::wide_table<double>() : generic::wide_table<float>();
#endif
}

}  // namespace rlx::cpu
