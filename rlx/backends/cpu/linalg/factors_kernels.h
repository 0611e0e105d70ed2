// Factors of matrices: Cholesky, triangular systems, LU, QR, eigenvalues, singular values; row-major, dense, a batch of
// them. One call works on matrices [first, last) of the batch, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// One node: which matrices, and what is asked for. Results in the order of the op's record; of Eigh and Svd those that
/// nobody reads are null.
struct FactorArgs {
  std::int64_t rows = 0, cols = 0;  // of a
  std::int64_t b_rows = 0, b_cols = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out[3] = {};
  bool full = false;
  bool left = true, lower = true, transpose = false, conjugate = false, unit_diagonal = false;
};

enum class FactorKind : std::uint8_t { Cholesky, TriangularSolve, Lu, Qr, Eigh, Svd };
inline constexpr int kNumFactorKinds = 6;
/// The dtypes, by what a number is.
enum class FactorType : std::uint8_t { F32, F64, C64, C128 };
inline constexpr int kNumFactorTypes = 4;

/// Columns of a block of reflections; and the largest triangle that is not cut further.
inline constexpr std::int64_t kFactorBlock = 32;
/// Columns that LU factors without a product; sweeps of rotations that are done together.
inline constexpr std::int64_t kFactorColumns = 16, kFactorSweeps = 32;
/// Depth and width of a packed block of a product, in elements; how many a product of that order needs.
inline constexpr std::int64_t kFactorDepth = 256, kFactorWidth = 128;
constexpr std::size_t factor_pack(std::size_t order) {
  const std::size_t depth = order < kFactorDepth ? order : kFactorDepth;
  const std::size_t width = order < kFactorWidth ? (order + 31) / 32 * 32 : kFactorWidth;
  return depth * width + 64;
}

struct FactorKernels {
  using Run = void (*)(const FactorArgs&, std::int64_t first, std::int64_t last, std::byte* scratch);
  Run run[kNumFactorKinds] = {};
};

/// Of one dtype; each is a file of its own, since they take long to compile.
const FactorKernels& factor_kernels_f32(Isa isa);
const FactorKernels& factor_kernels_f64(Isa isa);
const FactorKernels& factor_kernels_c64(Isa isa);
const FactorKernels& factor_kernels_c128(Isa isa);
const FactorKernels& factor_kernels(Isa isa, FactorType type);
/// Bytes of scratch that a call of such a kernel writes to, 64-byte aligned.
std::size_t factor_scratch(FactorKind kind, FactorType type, const FactorArgs& args);

}  // namespace rlx::cpu
