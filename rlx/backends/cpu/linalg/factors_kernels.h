// Matrix factorisations: Cholesky, triangular solve, LU, QR, eigenvalues, singular values. Matrices are row-major,
// dense and batched. One call works on matrices [first, last) of the batch on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// The matrices of one node and the requested results, in the order of the op's record. Results of Eigh and Svd that
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
/// Element types.
enum class FactorType : std::uint8_t { F32, F64, C64, C128 };
inline constexpr int kNumFactorTypes = 4;

/// Columns of a block of reflections, and the size of the largest triangle that is not split further.
inline constexpr std::int64_t kFactorBlock = 32;
/// Columns that LU factors without a GEMM; sweeps of rotations that are applied together.
inline constexpr std::int64_t kFactorColumns = 16, kFactorSweeps = 32;
/// Depth and width of a packed block of a GEMM, in elements; and the elements that packing for a GEMM needs.
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

/// One function per type, each in a file of its own, because they take long to compile.
const FactorKernels& factor_kernels_f32(Isa isa);
const FactorKernels& factor_kernels_f64(Isa isa);
const FactorKernels& factor_kernels_c64(Isa isa);
const FactorKernels& factor_kernels_c128(Isa isa);
const FactorKernels& factor_kernels(Isa isa, FactorType type);
/// Bytes of scratch of a kernel call, 64-byte aligned.
std::size_t factor_scratch(FactorKind kind, FactorType type, const FactorArgs& args);

}  // namespace rlx::cpu
