// Strips: matrices of block-quantised weights as products read them, and the kernels of these products.
//
// A strip is as many columns as a vector has lanes, their codes side by side for each four steps of k. It is one stream
// of memory: the numbers d (and m) and small scales of some groups of 32 steps of k, then the codes of these groups.
//   unit   = header, groups; the last unit of a strip may have fewer groups
//   header = F16 d of each group of the unit, or of the unit (and m likewise), by column; then bytes of groups
//   group  = vectors of 4 * lanes bytes: byte 4 c + i of vector j is the code of column c at k = 4 j + i; of nibbles
//   the
//            low four bits are that, the high ones the code at k = 16 + 4 j + i
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

/// The block schemes that there are strips of.
enum class InterleavedKind : std::uint8_t { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K };
inline constexpr int kNumInterleavedKinds = 8;
/// Steps of k that share a scale of x, and a group of codes.
inline constexpr std::int64_t kInterleavedGroup = 32;

/// What the header of a unit holds: of two groups d, or d and m each; of eight groups one d and m and for each group
/// six bits of scale and of min; or one d and for each half of a group a signed scale.
enum class InterleavedScales : std::uint8_t { Halves, HalvesAndMins, Pairs, Signed };

struct InterleavedTraits {
  InterleavedScales scales;
  bool nibbles;  // else a byte a code
  int offset;    // number = scale * (code - offset), less or more a minimum
  constexpr bool mins() const {
    return scales == InterleavedScales::HalvesAndMins || scales == InterleavedScales::Pairs;
  }
  /// Parts of a group with a scale each.
  constexpr int parts() const { return scales == InterleavedScales::Signed ? 2 : 1; }
  constexpr int unit_groups() const {
    return scales == InterleavedScales::Halves || scales == InterleavedScales::HalvesAndMins ? 2 : 8;
  }
  constexpr std::int64_t header_bytes(std::int64_t lanes) const {
    return lanes * (scales == InterleavedScales::Halves ? 4 : scales == InterleavedScales::HalvesAndMins ? 8 : 20);
  }
  constexpr std::int64_t group_bytes(std::int64_t lanes) const { return lanes * (nibbles ? 16 : 32); }
  constexpr std::int64_t unit_bytes(std::int64_t lanes) const {
    return header_bytes(lanes) + unit_groups() * group_bytes(lanes);
  }
  /// Where group `g` has its unit, and its codes, from the beginning of a strip.
  constexpr std::int64_t unit_at(std::int64_t g, std::int64_t lanes) const {
    return g / unit_groups() * unit_bytes(lanes);
  }
  constexpr std::int64_t codes_at(std::int64_t g, std::int64_t lanes) const {
    return unit_at(g, lanes) + header_bytes(lanes) + g % unit_groups() * group_bytes(lanes);
  }
  constexpr std::int64_t interleaved_bytes(std::int64_t groups, std::int64_t lanes) const {
    return (groups + unit_groups() - 1) / unit_groups() * header_bytes(lanes) + groups * group_bytes(lanes);
  }
};

constexpr InterleavedTraits interleaved_traits(InterleavedKind kind) {
  constexpr InterleavedTraits kTraits[kNumInterleavedKinds] = {
      {InterleavedScales::Halves, true, 8},    {InterleavedScales::HalvesAndMins, true, 0},
      {InterleavedScales::Halves, false, 16},  {InterleavedScales::HalvesAndMins, false, 0},
      {InterleavedScales::Halves, false, 128}, {InterleavedScales::Pairs, true, 0},
      {InterleavedScales::Pairs, false, 0},    {InterleavedScales::Signed, false, 32},
  };
  return kTraits[static_cast<int>(kind)];
}

/// Rows as even blocks of at most `most` rows. The split is that of the number of rows alone.
struct EvenBlocks {
  std::int64_t count, base, extra;  // the first `extra` blocks have one row more than `base`
  constexpr EvenBlocks(std::int64_t rows, std::int64_t most)
      : count((rows + most - 1) / most), base(rows / count), extra(rows % count) {}
  constexpr std::int64_t start(std::int64_t block) const { return block * base + (block < extra ? block : extra); }
  constexpr std::int64_t rows(std::int64_t block) const { return base + (block < extra ? 1 : 0); }
  constexpr std::int64_t most_rows() const { return base + (extra > 0 ? 1 : 0); }
};

/// C[M, N] = epilogue(A[M, K] * B), B in strips and A rounded to 8 bits in blocks of 32 (`quantize`). Rows of A are
/// `lda` floats apart, elements of a row are adjacent; K is a multiple of 32. Of element (m, n) no more is lost than
///   sum over blocks b of k: max |A[m, b]| / 254 * sum of |B[b, n]|
/// beside what F32 sums lose; blocks of A without a magnitude of 2^-119 count as zeros. A row of A with an element that
/// is not finite gives NaN throughout; a column with a number d or m that is not finite gives no finite number.
struct InterleavedGemm {
  std::int64_t m = 0, n = 0, k = 0;
  InterleavedKind kind = InterleavedKind::Q4_0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const void* strips = nullptr;
  std::int32_t* codes = nullptr;  // of A, `InterleavedPlan::code_bytes`, shared by all chunks
  float* c = nullptr;
  std::int64_t ldc = 0;
  GemmEpilogue epilogue;
};

/// How such a product is cut. An element is one chain over the groups in the order of k, whatever the cut.
struct InterleavedPlan {
  std::int64_t chunks = 0;  // chunk = row chunk * strip_chunks + strip chunk
  std::int64_t strips = 0, strips_per_chunk = 0, strip_chunks = 0;
  std::int64_t blocks = 0, blocks_per_chunk = 0;  // of rows, one register tile each
  std::int64_t quantize_chunks = 0, blocks_per_quantize = 0;
  std::int64_t code_bytes = 0;
  bool tiles = false;  // the blocks are those of tiles of AMX
};

/// What a plan is made of, of any product with strips.
struct StripCut {
  std::int64_t m = 0, k = 0, lanes = 0, strips = 0;
  std::int64_t blocks = 0, most_blocks = 0, block_rows = 0;  // of rows; those that strips may pass together
  std::int64_t row_bytes = 0, interleaved_bytes = 0;         // of the codes of a row of A; of a strip
  std::int64_t strips_together = 1;                          // of a register tile
  std::int64_t cached = 512 << 10;                           // bytes of codes that stay in L2 while strips pass
  double ops_per_ns = 500;
};
/// The rest of a plan whose blocks and bytes are known; `threads` may be kFinestCut.
void cut_strips(const StripCut& cut, int threads, InterleavedPlan& plan);

/// How products of bytes are summed; the sums are exact, so all give the same bits.
enum class Int8Matmul : std::uint8_t {
  Pairs,  // by the instructions that every machine of the instruction set has
  Dot,    // four products by one instruction (AVX-512 VNNI)
  Tiles,  // and of many rows by tiles (AMX)
};

/// out[r * ld_out + j] = row r of x times key j, a row of K / 32 blocks of Q8_0: as InterleavedGemm has it, bit for
/// bit, with x rounded likewise.
struct BlockScores {
  std::int64_t rows = 0, count = 0, k = 0;  // of x; of keys; elements of a row, a multiple of 32
  const std::int32_t* codes = nullptr;      // of x, from `round_score_row`
  const void* keys = nullptr;
  std::int64_t stride = 0;  // bytes from key to key
  void* strip = nullptr;    // scratch: `score_strip_bytes`
  float* out = nullptr;
  std::int64_t ld_out = 0;
};

/// The kernels of one instruction set.
struct InterleavedKernels {
  Int8Matmul products;
  InterleavedPlan (*plan)(const InterleavedGemm& gemm, int threads);
  /// Rounds the rows of some blocks of A; all chunks come before any chunk of `run`.
  void (*quantize)(const InterleavedGemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  void (*run)(const InterleavedGemm& gemm, const InterleavedPlan& plan, std::int64_t chunk);
  /// The numbers of `strips` strips that follow each other as panels of f32, [k][strips * lanes], each rounded as
  /// dequantize_blocks does.
  void (*decode)(InterleavedKind kind, std::int64_t k, const void* strips, std::int64_t count, float* panel);
  /// Runs `iterations` of the best loop of products of bytes on registers and returns the operations done; for
  /// measuring the peak.
  std::int64_t (*dot_peak)(std::int64_t iterations);
  /// Rounds `row` [K] times `scale` as row `at` of `rows` of `codes`, which are `score_words` for each row.
  void (*round_score_row)(const float* row, float scale, std::int64_t k, std::int64_t at, std::int64_t rows,
                          std::int32_t* codes);
  void (*block_scores)(const BlockScores& scores);
};

/// What BlockScores needs: words of the codes of a row, bytes of a strip.
constexpr std::int64_t score_words(std::int64_t k) { return k / kInterleavedGroup * 10; }
constexpr std::int64_t score_strip_bytes(std::int64_t k, std::int64_t lanes) {
  return interleaved_traits(InterleavedKind::Q8_0).interleaved_bytes(k / kInterleavedGroup, lanes);
}

/// Those of `isa`. Errors: Unsupported for what this machine has not.
const InterleavedKernels& interleaved_kernels(Isa isa, Int8Matmul products);
/// What this machine has beside `isa`, the best last.
std::span<const Int8Matmul> int8_matmul(Isa isa);

}  // namespace rlx::cpu
