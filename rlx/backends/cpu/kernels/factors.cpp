// Kernels of factors of matrices: the tables of the instruction sets.
#include "rlx/backends/cpu/kernels/factors.h"

#include <algorithm>

#include "rlx/backends/cpu/kernels/families.h"

#define RLX_KERNEL_FILE "rlx/backends/cpu/kernels/factors.inc"
#include "rlx/backends/cpu/foreach_isa.h"

namespace rlx::cpu {

const FactorKernels& factor_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::factor_table();
  if (isa == Isa::Avx2) return avx2::factor_table();
  return sse4::factor_table();
#elif defined(__aarch64__)
  return neon::factor_table();
#else
  return generic::factor_table();
#endif
}

std::size_t factor_scratch(FactorKind kind, FactorType type, const FactorArgs& args) {
  constexpr std::size_t kBytes[] = {4, 8, 8, 16};
  const auto m = static_cast<std::size_t>(std::max(args.rows, args.cols)),
             n = static_cast<std::size_t>(std::min(args.rows, args.cols));
  const auto columns = static_cast<std::size_t>(std::max(args.b_cols, args.b_rows));
  const std::size_t pack = factor_pack(std::max(m, columns)) + 4096;  // and the triangles of base cases
  std::size_t elements = pack;
  switch (kind) {
    case FactorKind::Cholesky:
    case FactorKind::TriangularSolve:
    case FactorKind::Lu: break;
    case FactorKind::Qr: elements += m * n + (m + 64) * 2 * kFactorBlock + 2 * m; break;
    case FactorKind::Eigh: elements += 3 * m * m + (m + 64) * 2 * kFactorBlock + 8 * m; break;
    case FactorKind::Svd:
      elements += 5 * m * n + 4 * n * n + (args.full ? 2 * m * m : 0) + (m + 64) * 2 * kFactorBlock + 16 * m;
      break;
  }
  return elements * kBytes[static_cast<int>(type)] + m * 8 * 16 + 64 * 64;
}

}  // namespace rlx::cpu
