// Selection of factorisation kernels, and the scratch that they need.
#include "rlx/backends/cpu/linalg/factors_kernels.h"

#include <algorithm>

namespace rlx::cpu {

const FactorKernels& factor_kernels(Isa isa, FactorType type) {
  switch (type) {
    case FactorType::F32: return factor_kernels_f32(isa);
    case FactorType::F64: return factor_kernels_f64(isa);
    case FactorType::C64: return factor_kernels_c64(isa);
    case FactorType::C128: break;
  }
  return factor_kernels_c128(isa);
}

std::size_t factor_scratch(FactorKind kind, FactorType type, const FactorArgs& args) {
  constexpr std::size_t kBytes[] = {4, 8, 8, 16};
  const auto m = static_cast<std::size_t>(std::max(args.rows, args.cols)),
             n = static_cast<std::size_t>(std::min(args.rows, args.cols));
  const auto columns = static_cast<std::size_t>(std::max(args.b_cols, args.b_rows));
  const std::size_t all = args.full ? m : n, block = 3 * kFactorBlock * m + 2 * kFactorBlock * kFactorBlock;
  const std::size_t long_row = m + 16, row = n + 16;  // whole vectors
  std::size_t elements = factor_pack(std::max(m, columns));
  switch (kind) {
    case FactorKind::Cholesky:
    case FactorKind::TriangularSolve: break;
    case FactorKind::Lu: elements += kFactorColumns * m; break;
    case FactorKind::Qr: elements += m * n + n + block; break;
    case FactorKind::Eigh: elements += 2 * n * n + n * row + (7 + 2 * kFactorSweeps) * n + block; break;
    case FactorKind::Svd:
      elements += 2 * m * n + n * n + 3 * n * row + 2 * all * long_row + (3 + 4 * kFactorSweeps) * n + 3 * m + block;
      break;
  }
  // Space for numbers of 8 bytes, and alignment between parts.
  return elements * kBytes[static_cast<int>(type)] + m * 8 * 16 + 64 * 64;
}

}  // namespace rlx::cpu
