// Matmuls: operands, plan, and the records of kernels that the driver (driver.h) runs.
#pragma once

#include <utility>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/backends/cpu/matmul/costs.h"
#include "rlx/backends/cpu/sum_blocks.h"
#include "rlx/tensor/dtype.h"

namespace rlx::cpu {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// Null stays null: an operand without elements has no address.
inline char* at_bytes(void* p, std::int64_t bytes) { return p == nullptr ? nullptr : static_cast<char*>(p) + bytes; }
inline const char* at_bytes(const void* p, std::int64_t bytes) {
  return p == nullptr ? nullptr : static_cast<const char*>(p) + bytes;
}

/// Rows split evenly into blocks of at most `most` rows. The split depends on the number of rows alone.
struct EvenBlocks {
  std::int64_t count, base, extra;  // the first `extra` blocks have one row more than `base`
  constexpr EvenBlocks(std::int64_t rows, std::int64_t most)
      : count((rows + most - 1) / most), base(rows / count), extra(rows % count) {}
  constexpr std::int64_t start(std::int64_t block) const { return block * base + (block < extra ? block : extra); }
  constexpr std::int64_t rows(std::int64_t block) const { return base + (block < extra ? 1 : 0); }
  constexpr std::int64_t most_rows() const { return base + (extra > 0 ? 1 : 0); }
};

enum class InterleavedKind : std::uint8_t;  // quant/interleaved_kernels.h

/// C[.., M, N] = epilogue(A[.., M, K] * B[.., K, N]) with any strides, in elements. K runs over the contracted axes,
/// the last one fastest; without contracted axes K = 1. There is one matmul for each index of the outer axes. Rows of C
/// are contiguous. `a_type`, `b_type` and `c_type` are the dtypes: all F64; or each F32, F16 or BF16; or integers,
/// either each of at most 32 bits or all of 64, or I8 or U8 operands with I32 C; or all C64 or C128. The sum of an
/// element is made in blocks of kSumBlock steps of k, each a chain of multiply-adds, the same for every M, plan and
/// register tile; records of words say what theirs are. It is rounded once, to C. Integer sums wrap.
///
/// Kernels of complex numbers work on parts, as `as_parts` describes their operands.
struct MatmulOperands {
  std::int64_t m = 0, n = 0;
  const void* a = nullptr;
  std::int64_t a_m_stride = 0;
  const void* b = nullptr;
  std::int64_t b_n_stride = 1;
  void* c = nullptr;
  std::int64_t ldc = 0;
  DType a_type = DType::F64, b_type = DType::F64, c_type = DType::F64;
  bool c_transposed = false;  // C is transposed: its rows are contiguous, its columns are `ldc` apart; not complex
  /// B is packed, in whole panels: for bf16 pairs as in matmul/bf16_kernels.h, else as `pack_b_f32`, `pack_b_16` or
  /// matmul/packed_b.h pack the type of the record (`packed_b_kernel`). Then there is one contracted axis, along which
  /// rows of A are contiguous, and there are no outer axes.
  bool b_packed = false;
  const float* b_scale = nullptr;  // packed I8: of the columns
  InterleavedKind b_blocks{};      // of interleaved panels, which are packed B too
  /// Optional, with packed B: start of the packed weight that the next matmul reads. This matmul prefetches its first
  /// cache lines after its last panel.
  const void* prefetch_next = nullptr;
  int num_contracted = 0, num_outer = 0;
  GemmAxis contracted[kGemmMaxAxes];
  GemmAxis outer[kGemmMaxAxes];
  /// F32 results only, not with `c_transposed`. `residual` and `mul` have the strides of C. All matmuls share the bias.
  GemmEpilogue epilogue{};
  bool epilogue_reads_c = false;  // `residual` or `mul` may be C
};

/// Matmuls of all outer axes.
inline std::int64_t num_matmuls(const MatmulOperands& p) {
  std::int64_t outer = 1;
  for (int i = 0; i < p.num_outer; ++i) outer *= p.outer[i].extent;
  return outer;
}
/// C = A * B of F32 with packed B; all matrices dense. The pointers are to be set.
inline MatmulOperands packed_b_operands(std::int64_t m, std::int64_t n, std::int64_t k) {
  MatmulOperands p;
  p.m = m, p.n = n, p.a_m_stride = k, p.ldc = n;
  p.a_type = p.b_type = p.c_type = DType::F32;
  p.b_packed = true;
  p.num_contracted = 1;
  p.contracted[0] = {k, 1, 1, 0};
  return p;
}

/// Columns [n0, n0 + cols) of an F32 matmul with packed B of F32, where `b` has these columns.
inline MatmulOperands columns_of(const MatmulOperands& all, std::int64_t n0, std::int64_t cols, const void* b) {
  MatmulOperands p = all;
  p.n = cols, p.b = b, p.c = static_cast<float*>(p.c) + n0;
  for (const float** at : {&p.epilogue.bias, &p.epilogue.residual, &p.epilogue.mul})
    if (*at != nullptr) *at += n0;
  return p;
}

/// Most rows of a matmul whose C is transposed.
inline constexpr std::int64_t kTransposedRows = 8;
/// A matmul with few columns as a skinny GEMM, C^T = B^T A^T, which reads its other operand once.
inline void transpose_matmul(MatmulOperands& p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_m_stride, p.b_n_stride);
  std::swap(p.a_type, p.b_type);
  for (int i = 0; i < p.num_contracted; ++i) std::swap(p.contracted[i].a, p.contracted[i].b);
  for (int i = 0; i < p.num_outer; ++i) std::swap(p.outer[i].a, p.outer[i].b);
  p.c_transposed = true;
}
/// Describes a matmul of complex numbers by their parts. A row of A becomes (re, im, re, ..); a row of B serves two
/// steps of k, as (re, im) and as i (re, im). The last contracted axis then has extent 2 and counts the parts. Strides
/// of A and C and the columns count parts; strides of B still count complex numbers.
inline void as_parts(MatmulOperands& p) {
  p.n *= 2, p.ldc *= 2, p.a_m_stride *= 2;
  for (int i = 0; i < p.num_contracted; ++i) p.contracted[i].a *= 2;
  for (int i = 0; i < p.num_outer; ++i) p.outer[i].a *= 2, p.outer[i].c *= 2;
  p.contracted[p.num_contracted++] = {2, 1, 0, 0};
}

/// Iterates over the first `num_axes` contracted axes from step k on, in runs of the last axis, whose elements are one
/// stride apart.
struct Contracted {
  const MatmulOperands& p;
  std::int64_t index[kGemmMaxAxes] = {};
  std::int64_t at_a = 0, at_b = 0;  // of the next step
  int axes;
  Contracted(const MatmulOperands& product, std::int64_t k, int num_axes);
  GemmAxis inner() const { return axes > 0 ? p.contracted[axes - 1] : GemmAxis{}; }
  /// Steps up to the end of the last axis.
  std::int64_t run() const { return axes > 0 ? inner().extent - index[axes - 1] : 1; }
  void advance(std::int64_t steps);
};

/// How a matmul is split into chunks, which are ranges of register tiles. No bit of a result depends on the plan.
struct MatmulPlan {
  std::int64_t chunks = 0;  // chunk = (outer index * row_chunks + row chunk) * panel_chunks + panel chunk
  std::int64_t k = 1;
  std::int64_t panels = 0, panels_per_chunk = 0, panel_chunks = 0;
  std::int64_t blocks = 0, blocks_per_chunk = 0, row_chunks = 0;
  std::int64_t rows_per_chunk = 0, rows_per_pack = 0;  // packed B: in place of the blocks
  bool tiles = false;                                  // blocks of AMX tiles
  bool skinny = false;                                 // int8: B is read in place
  // A is packed first when the tiles cannot read it: `pack_chunks` calls of `pack` fill `pack_bytes` bytes that all
  // chunks share. With 0 chunks A is read in place.
  std::int64_t pack_chunks = 0, pack_bytes = 0, blocks_per_pack = 0;
  std::int64_t pack_stride[kGemmMaxAxes] = {};  // of the outer axes, in elements (bf16 pairs: matrices); 0: broadcast
  std::size_t scratch_bytes = 0;                // per concurrently running thread
};

// -- records --

/// Steps [0, k) of `count` rows or columns become panel[k][width] of the sum type, padded with zeros: element (k, j) is
/// element `at + k * k_stride + j * stride` of `from`, which has dtype `type`. For complex B each step fills two rows
/// of the panel; `count` and `width` count parts.
using MatmulPack = void (*)(DType type, const void* from, std::int64_t at, std::int64_t k_stride, std::int64_t stride,
                            std::int64_t k, std::int64_t count, void* panel, std::int64_t width);

inline constexpr std::int64_t kTileGroup = 4;
inline constexpr std::int64_t kAllSteps = std::int64_t{1} << 40;
/// A call of a register tile: out[i][v] = (adds ? out[i][v] : 0) + sum over k of a[i * lda + kk * a_step] *
/// b[kk * ldb + v], one chain in the order of k; whole vectors. Elements have the sum type, packed B its own type.
struct MatmulTileCall {
  const void* a = nullptr;
  std::int64_t lda = 0, a_step = 1;
  const void* b = nullptr;
  std::int64_t ldb = 0, k = 0;
  void* out = nullptr;
  std::int64_t ldo = 0;
  bool adds = false;
  void* keep = nullptr;  // MatmulTileKind::Keep stores the rows of b there, side by side
  // The end of a tile of MatmulTileKind::Rows of F32: the complete chains are added to `out`, which has the blocks of k
  // before; then columns are multiplied by `scale`; then `bias` is added. Each step rounds.
  bool adds_chains = false;
  const float *scale = nullptr, *bias = nullptr;
  // Prefetched meanwhile: `ahead_lines` cache lines every `ahead_every` steps of k, a multiple of kTileGroup, each time
  // `ahead_step` bytes further on.
  const char* ahead = nullptr;
  std::int64_t ahead_step = 0, ahead_lines = 0, ahead_every = kAllSteps;
};
using MatmulTile = void (*)(const MatmulTileCall& call);
enum class MatmulTileKind : std::uint8_t {
  Strided,  // any strides
  Rows,     // a contiguous along k, b packed, of the stored type of the record; what the compiler knows is free
  Packed,   // a packed, with the rows of a step side by side, and b packed
  Keep,     // Strided, and packs the panel of B as it reads it; only for panels of the full width
};
inline constexpr int kMatmulTileKinds = 4, kMatmulMaxVecs = 3, kMatmulMaxRows = 8;

/// Few rows with unpacked B whose rows are contiguous: sums[i][j] of all of k, in whole vectors. `sums` has room for
/// twice the rows where there is more than one block of k.
struct MatmulGemv {
  const void* a = nullptr;
  std::int64_t lda = 0, a_step = 1, rows = 0;
  DType b_type = DType::F32;
  const void* b = nullptr;
  std::int64_t at = 0, ldb = 0;  // first element of b; distance between its rows, or its columns for `gemv_columns`
  std::int64_t k = 0, cols = 0;
  void* sums = nullptr;
  std::int64_t ld = 0;
};

/// What decides how a matmul by a record of words is cut.
struct WordCut {
  std::int64_t lanes = 0;                                    // columns of a panel
  std::int64_t blocks = 0, most_blocks = 0, block_rows = 0;  // of rows; most blocks that panels are applied to together
  std::int64_t row_bytes = 0, panel_bytes = 0;               // a packed row of A; a panel
  std::int64_t panels_per_tile = 1;                          // of a register tile
  WordCosts costs{};
};
/// Panels [first, last) and blocks of rows [b0, b1).
struct WordPart {
  std::int64_t first, last, b0, b1;
};

inline constexpr std::int64_t kMostGroupRows = 64;
/// What an instruction set does for some types. A new type or instruction set is a new record; the driver does not
/// change. Functions that are null are missing: the driver then takes the register tiles.
struct MatmulKernel {
  const char* name;
  std::int64_t sum_bytes;  // of an element of the sum type
  std::int64_t parts;  // an element of B is so many columns, and a row of B so many steps of k: 2 for complex numbers
  // The register tile: rows, vectors, sums of a vector. `any_vecs`: there are tiles of each number of vectors, else of
  // one and of all. `packs_a_always`: only Packed tiles exist, for any ldb.
  int rows, vecs, lanes;
  bool any_vecs, packs_a_always;
  /// Steps of k of a panel that pass over a block of rows while they stay in cache; may be more than a block of sums.
  std::int64_t pass;
  /// Rows of A that stay in L2 while all panels of a chunk pass, at most kMostGroupRows; 0: all rows pass each panel.
  std::int64_t group_rows;
  /// With at most so many rows `gemv_rows` is faster than register tiles that read B in place.
  std::int64_t gemv_most_rows;
  /// Chunks per thread: many small ones, so that a slow thread leaves more of them to the others.
  std::int64_t chunks_per_thread;
  /// The stored type of packed B, and the steps of k between two prefetch requests for its next panel.
  PackedBType packed_b;
  std::int64_t packed_b_request_every;
  MatmulPack pack_a, pack_b;
  MatmulTile tile[kMatmulTileKinds][kMatmulMaxVecs][kMatmulMaxRows];
  /// Adds rows of sums to `to`, or stores them there (`fresh`).
  void (*add_rows)(void* to, std::int64_t ld_to, const void* sums, std::int64_t ld, std::int64_t rows,
                   std::int64_t cols, bool fresh);
  /// Converts sums and stores them to rows from m on and columns from n0 on of C, whose first element is at `at`,
  /// through the epilogue.
  void (*store)(const MatmulOperands& p, const void* sums, std::int64_t ld, std::int64_t m, std::int64_t rows,
                std::int64_t n0, std::int64_t cols, std::int64_t at);
  void (*gemv_rows)(const MatmulGemv& g);
  /// At most kFewRows rows, and at most a vector of columns of B that are contiguous along k. a is packed where a_step
  /// is not 1. `lanes` columns are stored.
  void (*gemv_columns)(const MatmulGemv& g);

  // Records of words: A is packed into words of several steps of k, B is packed (bf16 pairs, block-quantized weights).
  // Their tiles share more than a call of a register tile has, and these functions take the place of all above.
  /// Also sets `plan.pack_bytes`. `plan.k` is set, m and n are not 0.
  WordCut (*word_cut)(const MatmulOperands& p, MatmulPlan& plan);
  /// Packs blocks of rows [first, last).
  void (*pack_words)(const MatmulOperands& p, const MatmulPlan& plan, std::int64_t first, std::int64_t last,
                     void* packed);
  void (*multiply_words)(const MatmulOperands& p, const MatmulPlan& plan, const WordPart& part, const void* packed);

  /// Records with loops of their own: run-time bf16 and int8, which pack B as they go. As in driver.h.
  MatmulPlan (*plan)(const MatmulOperands& p, int threads);
  void (*pack)(const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk, void* packed);
  void (*run)(const MatmulOperands& p, const MatmulPlan& plan, std::int64_t chunk, const void* packed, void* scratch);

  std::int64_t width() const { return vecs * lanes; }
  /// Whether elements of `t` have the sum type. `t` is a type of these kernels.
  bool holds(DType t) const { return static_cast<std::int64_t>(size_bytes(t)) == sum_bytes * parts; }
};
inline constexpr std::int64_t kFewRows = 4;

/// Types of sums. F32 is also that of F16 and BF16; I32 of integers of at most 32 bits.
enum class MatmulSums : std::uint8_t { F32, F64, I32, I64, C64, C128 };
inline constexpr int kNumMatmulSums = 6;
/// The type of sums for results of dtype `c`.
MatmulSums matmul_sums(DType c);
inline const MatmulKernel& matmul_kernel(const KernelTable& kernels, MatmulSums sums) {
  return kernels.matmul[static_cast<int>(sums)];
}
inline constexpr int kNumPackedBKernels = 4;
/// The record for packed B of elements of `type`, which is not BF16Pairs. That of F32 is also that of F32 sums.
inline const MatmulKernel& packed_b_kernel(const KernelTable& kernels, PackedBType type) {
  return kernels.packed_b[static_cast<int>(type)];
}

}  // namespace rlx::cpu
